package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

// table makes points of a curve without noise.
func table(yield func(n float64) float64, clients ...float64) []Point {
	var all []Point
	for _, n := range clients {
		all = append(all, Point{Clients: n, Yield: yield(n)})
	}
	return all
}

func TestModelsAreFoundAgain(t *testing.T) {
	clients := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	law := func(lambda, sigma, kappa float64) func(float64) float64 {
		return func(n float64) float64 { return lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1)) }
	}
	for _, c := range []struct {
		name  string
		yield func(float64) float64
		want  []float64
		max   float64
	}{
		{Line, func(n float64) float64 { return 3e6 * n }, []float64{3e6}, 0},
		{Plateau, func(n float64) float64 { return min(3e6*n, 4e8) }, []float64{3e6, 4e8}, 0},
		{Amdahl, law(1e7, 0.02, 0), []float64{1e7, 0.02}, 0},
		{USL, law(1e7, 0.02, 0.00001), []float64{1e7, 0.02, 0.00001}, math.Sqrt(0.98 / 0.00001)},
		{USL, law(995.6486, 0.02671591, 0.0007690945), []float64{995.6486, 0.02671591, 0.0007690945}, math.Sqrt((1 - 0.02671591) / 0.0007690945)},
		{Decline, func(n float64) float64 { return min(3e6*n, 4e8, 4e8-2e5*(n-300)) }, []float64{3e6, 4e8, 300, 2e5}, 4e8 / 3e6},
		{Poly4, func(n float64) float64 { return 100 + n - 0.001*n*n + 1e-7*n*n*n + 1e-11*n*n*n*n }, []float64{100, 1, -0.001, 1e-7, 1e-11}, 0},
	} {
		f, err := Of(table(c.yield, clients...), Options{Resamples: 200})
		require.NoError(t, err)
		if f.Best != c.name {
			t.Errorf("%s: %s describes it best", c.name, f.Best)
		}
		m := f.Named(c.name)
		for i, want := range c.want {
			near(t, c.name+" "+m.Parameters[i].Name, m.Parameters[i].Value, want, 1e-6)
		}
		near(t, c.name+" at 70", m.At(70), c.yield(70), 1e-6)
		near(t, c.name+" R2", m.R2, 1, 1e-9)
		if c.max > 0 {
			if m.Max == nil {
				t.Fatalf("%s: no maximum: %s", c.name, m.NoMax)
			}
			near(t, c.name+" maximum", m.Max.Clients.Value, c.max, 1e-6)
			near(t, c.name+" its height", m.Max.Yield.Value, c.yield(c.max), 1e-6)
		}
	}
}

func TestSameAnswerTwice(t *testing.T) {
	a, _ := Of(seed(), Options{Resamples: 200})
	b, _ := Of(seed(), Options{Resamples: 200})
	for i, m := range a.All() {
		if d := cmp.Diff(m.Parameters, b.All()[i].Parameters); d != "" {
			t.Errorf("%s: two answers to the same points:\n%s", m.Name, d)
		}
	}
	points := seed()
	for i, j := 0, len(points)-1; i < j; i, j = i+1, j-1 {
		points[i], points[j] = points[j], points[i]
	}
	c, _ := Of(points, Options{Resamples: 200})
	for i, m := range a.All() {
		if d := cmp.Diff(m.Parameters, c.All()[i].Parameters); d != "" {
			t.Errorf("%s: the order of the points matters:\n%s", m.Name, d)
		}
		near(t, m.Name+" first residual", c.All()[i].Residuals[19], m.Residuals[0], 1e-12)
	}
}

func TestWrongPointsAreNamed(t *testing.T) {
	good := Point{Clients: 1, Yield: 1}
	for _, c := range []struct {
		points []Point
		want   string
	}{
		{nil, "no points"},
		{[]Point{good, {Clients: 0, Yield: 1}}, "point 2: 0 clients"},
		{[]Point{{Clients: -4, Yield: 1}}, "point 1: -4 clients"},
		{[]Point{{Clients: math.NaN(), Yield: 1}}, "point 1: NaN clients"},
		{[]Point{good, good, {Clients: 3, Yield: math.Inf(1)}}, "point 3 (3 clients): a yield of +Inf"},
		{[]Point{{Clients: 3, Yield: math.NaN()}}, "point 1 (3 clients): a yield of NaN"},
		{[]Point{{Clients: 3, Yield: -1}}, "point 1 (3 clients): a yield of -1"},
		{[]Point{{Clients: 3, Yield: 1, Error: math.NaN()}}, "a standard error of NaN"},
		{[]Point{{Clients: 3, Yield: 1, Busy: -1}}, "a number of busy clients of -1"},
		{[]Point{{Clients: 3, Yield: 1, Batches: []float64{1, math.Inf(1)}}}, "batch 2 is +Inf"},
		{[]Point{{Clients: 3}, {Clients: 4}}, "all 2 points have a yield of 0"},
		{make([]Point, mostPoints+1), "too many"},
	} {
		_, err := Of(c.points, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := Of([]Point{good}, Options{Think: math.NaN()}); err == nil {
		t.Error("a think time that is no number is taken")
	}
}

func TestTooFewPointsAreCounted(t *testing.T) {
	flat := func(float64) float64 { return 7 }
	f, err := Of(table(flat, 5), Options{})
	if err != nil || len(f.All()) != 0 || f.Best != "" || !strings.Contains(f.Detail, "line needs 4 points, there are 1") {
		t.Errorf("one point: %v, %+v", err, f)
	}
	f, err = Of(table(flat, 1, 2, 3, 4, 5, 6, 7), Options{})
	if err != nil || f.USL == nil || f.Poly4 != nil || cmp.Diff(f.Lacking, []string{"poly4 needs 8 points, there are 7"}) != "" {
		t.Errorf("seven points: %v, %+v", err, f)
	}
	same := table(flat, 4, 4, 4, 4, 4, 4, 4, 4, 4)
	f, err = Of(same, Options{})
	if err != nil || len(f.All()) != 0 || !strings.Contains(f.Detail, "plateau needs 3 different numbers of clients, there are 1") {
		t.Errorf("one load only: %v, %+v", err, f)
	}
	few := table(flat, 4, 5, 6)
	for i := range few {
		few[i].Error = 1
	}
	if f, err = Of(few, Options{}); err != nil || f.Line == nil || f.Best != Line {
		t.Errorf("three points whose errors are known: %v, %+v", err, f)
	}
}

// For any points, figures are finite and intervals contain their value.
func TestOddCurves(t *testing.T) {
	one := func(x float64) Point { return Point{Clients: x, Yield: 1} }
	odd := map[string][]Point{
		"all equal": table(func(float64) float64 { return 7 }, 1, 2, 3, 4, 5, 6, 7, 8, 9),
		"huge":      table(func(n float64) float64 { return 1e15 * math.Sqrt(n) }, 1e15, 2e15, 3e15, 4e15, 5e15, 6e15, 7e15, 8e15),
		"tiny":      table(func(n float64) float64 { return n * 1e-9 }, 1e-9, 2e-9, 3e-9, 4e-9, 5e-9, 6e-9, 7e-9, 8e-9),
		"near together": {one(1), one(math.Nextafter(1, 2)), one(1 + 1e-15), one(1 + 1e-14), one(1 + 1e-13), one(1 + 1e-12), one(1 + 1e-11),
			one(1 + 1e-10)},
		"one lonely": table(func(n float64) float64 { return math.Floor(n / 9) }, 1, 2, 3, 4, 5, 6, 7, 8, 9),
		"falling":    table(func(n float64) float64 { return 100 / n }, 1, 2, 4, 8, 16, 32, 64, 128, 256),
		"far apart":  table(func(n float64) float64 { return n }, 1e-30, 1e-20, 1e-10, 1, 1e10, 1e20, 1e29, 1e30),
	}
	for name, points := range odd {
		f, err := Of(points, Options{Resamples: 200})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sane(t, name, f)
		for _, m := range f.All() {
			if m.Max != nil {
				t.Errorf("%s: %s has a maximum at %v", name, m.Name, m.Max.Clients.Value)
			}
		}
	}
}

// sane checks that all figures can be printed and are plausible.
func sane(t *testing.T, name string, f *Fits) {
	t.Helper()
	sum := 0.0
	for _, m := range f.All() {
		sum += m.Weight
		numbers := append([]float64{m.R2, m.AICc, m.Weight, m.From, m.To, m.At(m.From), m.At(m.To)}, m.Residuals...)
		all := m.Parameters
		if m.Max != nil {
			all = append(all, m.Max.Clients, m.Max.Yield)
			if c := m.Max.Clients; !(*c.Low >= m.From && *c.High <= m.To) {
				t.Errorf("%s: %s: maximum at %v to %v, tested %v to %v", name, m.Name, *c.Low, *c.High, m.From, m.To)
			}
		} else if m.NoMax == "" {
			t.Errorf("%s: %s: no maximum and no reason", name, m.Name)
		}
		for _, e := range all {
			numbers = append(numbers, e.Value)
			if e.Low != nil {
				numbers = append(numbers, *e.Low)
			}
			if e.High != nil {
				numbers = append(numbers, *e.High)
			}
			if e.Low != nil && *e.Low > e.Value || e.High != nil && *e.High < e.Value {
				t.Errorf("%s: %s: %s %v is outside of its interval", name, m.Name, e.Name, e.Value)
			}
		}
		for _, v := range numbers {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %s: a figure of %v: %+v", name, m.Name, v, m)
			}
		}
	}
	if len(f.All()) > 0 && math.Abs(sum-1) > 1e-9 {
		t.Errorf("%s: Akaike weights add up to %v", name, sum)
	}
}

func BenchmarkOf(b *testing.B) {
	points := seed()
	for b.Loop() {
		if _, err := Of(points, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
