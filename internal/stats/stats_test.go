package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// points returns x as a series of points of the same length 1.
func points(x []float64) []Point {
	p := make([]Point, len(x))
	for i, v := range x {
		p[i] = Point{v, 1}
	}
	return p
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestStudent(t *testing.T) { // from the tables of the t distribution
	for degrees, want := range map[int]float64{1: 12.706, 2: 4.303, 9: 2.262, 30: 2.042, 40: 2.0211, 60: 2.0003, 120: 1.9799, 1e9: 1.95996} {
		near(t, "97.5% point", Student(float64(degrees)), want, 0.0005)
		near(t, "its p", StudentP(want, float64(degrees)), 0.05, 0.0001)
	}
	if !math.IsInf(Student(0), 1) {
		t.Error("no degrees of freedom, no interval")
	}
}

// NIST/SEMATECH e-Handbook, 1.3.5.2: 195 measurements of ZARR13 have mean
// 9.261460, deviation 0.022789 and the interval 9.258242 to 9.264679; here the
// same from numbers made with that mean and deviation.
func TestMeanInterval(t *testing.T) {
	x := make([]float64, 195)
	for i := range x {
		x[i] = float64(i % 13)
	}
	mean, deviation := Mean(x), Deviation(x)
	for i := range x {
		x[i] = 9.261460 + (x[i]-mean)/deviation*0.022789
	}
	v, ok := MeanInterval(x)
	if !ok {
		t.Fatal("no interval")
	}
	near(t, "low", v.Low, 9.258242, 2e-6)
	near(t, "high", v.High, 9.264679, 2e-6)
	if _, ok := MeanInterval([]float64{1}); ok {
		t.Error("one number has an interval")
	}
}

func TestQuantile(t *testing.T) { // R: quantile(c(4,1,3,2,10), c(0,.1,.25,.5,.9,1))
	x := []float64{4, 1, 3, 2, 10}
	for q, want := range map[float64]float64{0: 1, 0.1: 1.4, 0.25: 2, 0.5: 3, 0.9: 7.6, 1: 10} {
		near(t, "quantile", Quantile(x, q), want, 1e-12)
	}
	if !math.IsNaN(Quantile(nil, 0.5)) || x[0] != 4 {
		t.Error("nothing has a quantile, or the argument was sorted")
	}
}

func TestLag1(t *testing.T) {
	near(t, "alternating", Lag1([]float64{1, -1, 1, -1, 1, -1, 1, -1}), -7.0/8, 1e-12)
	near(t, "constant", Lag1([]float64{2, 2, 2}), 0, 0)
	r := rand.New(rand.NewPCG(1, 1))
	near(t, "autoregressive", Lag1(autoregressive(r, 20000, 0.7)), 0.7, 0.02)
}

// autoregressive returns n numbers of mean 0 and deviation 1, each of which keeps the share rho of
// the number before.
func autoregressive(r *rand.Rand, n int, rho float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
		if i > 0 {
			x[i] = rho*x[i-1] + math.Sqrt(1-rho*rho)*x[i]
		}
	}
	return x
}

func TestBatch(t *testing.T) {
	for name, c := range map[string]struct {
		lengths []float64
		want    int
	}{
		"none": {nil, 0}, "one": {[]float64{1}, 1}, "short": {[]float64{0.2}, 0}, "short joins": {[]float64{0.2, 1, 0.3}, 1},
		"halves": {[]float64{0.5, 1, 0.5}, 3}, "many": {slices.Repeat([]float64{1}, 3600), 20}, "nothing": {[]float64{0, 0}, 0},
	} {
		var series []Point
		for i, w := range c.lengths {
			series = append(series, Point{float64(i), w})
		}
		got := Batch(series, 20, 0.5)
		if len(got) != c.want {
			t.Errorf("%s: %d batches, want %d", name, len(got), c.want)
		}
		if len(got) > 0 {
			near(t, name+": the mean is kept", weighted(got), weighted(series), 1e-9)
		}
	}
}

func weighted(p []Point) float64 {
	mean, _, _ := BatchInterval(p)
	return mean
}

// If neighbors in a series resemble each other, intervals from batch means contain the true mean
// with about their nominal frequency. Intervals from single seconds do not.
func TestBatchIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const runs = 2000
	var batched, single int
	for range runs {
		x := autoregressive(r, 600, 0.6)
		if _, v, ok := BatchInterval(Batch(points(x), 20, 0)); ok && v.Contains(0) {
			batched++
		}
		if v, ok := MeanInterval(x); ok && v.Contains(0) {
			single++
		}
	}
	t.Logf("600 s, neighbors correlated by 0.6: batches hold the mean in %.1f%%, seconds in %.1f%%", 100*float64(batched)/runs,
		100*float64(single)/runs)
	if b := float64(batched) / runs; b < 0.92 || b > 0.97 {
		t.Errorf("batches: %v", b)
	}
	if s := float64(single) / runs; s > 0.75 {
		t.Errorf("single seconds cover %v: then why batches?", s)
	}
}

// MSER equals its definition, implemented as published.
func TestMSERIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		size := 1 + r.IntN(6)
		x := autoregressive(r, size*(10+r.IntN(60))+r.IntN(size), 0.5)
		for i := range x {
			x[i] += 5 * math.Exp(-float64(i)/float64(1+r.IntN(50)))
		}
		k := len(x) / size
		var z []float64
		for i := range k {
			z = append(z, Mean(x[i*size:(i+1)*size]))
		}
		least, at := math.Inf(1), 0
		for d := 0; d <= k-5; d++ {
			sum, mean := 0.0, Mean(z[d:])
			for _, v := range z[d:] {
				sum += (v - mean) * (v - mean)
			}
			if g := sum / float64((k-d)*(k-d)); g < least {
				least, at = g, d
			}
		}
		got, ok := MSER(x, size)
		if want := (Truncation{at * size, 2*at <= k}); !ok || got != want {
			t.Fatalf("%d numbers in batches of %d: %+v, want %+v", len(x), size, got, want)
		}
	}
}

func TestMSERFindsWarmUp(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	const runs = 1000
	var early, late, level, growing int
	for range runs {
		x, flat, grow := make([]float64, 600), make([]float64, 600), make([]float64, 600)
		for i := range x {
			noise := 0.03 * r.NormFloat64()
			x[i] = 1 - math.Exp(-float64(i)/30) + noise // 1% is missing after 138 s
			flat[i] = 1 + noise
			grow[i] = float64(i)/600 + noise
		}
		cut, _ := MSER(x, 5)
		if cut.Cut < 60 {
			early++
		}
		if cut.Cut > 300 {
			late++
		}
		if c, _ := MSER(flat, 5); c.Steady && c.Cut <= 60 {
			level++
		}
		if c, _ := MSER(grow, 5); !c.Steady {
			growing++
		}
	}
	t.Logf("of %d warm-ups: %d cut too early, %d in the second half; level series left nearly whole: %d; "+
		"ever growing ones called not steady: %d", runs, early, late, level, growing)
	if early > 0 || late > runs/20 || level < runs*8/10 || growing < runs*95/100 {
		t.Error("see above")
	}
}

// Noise is taken for a trend in about 5% of the cases, also if neighbors resemble each other; true
// trends are found.
func TestSlope(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const runs = 4000
	for _, c := range []struct{ rho, slope, least, most float64 }{
		{0, 0, 0.02, 0.06}, {0.3, 0, 0.02, 0.09}, {0.5, 0, 0.02, 0.13}, {0, 4, 0.9, 1}, {0.3, 5, 0.85, 1},
	} {
		found := 0
		for range runs {
			x := autoregressive(r, 20, c.rho)
			for i := range x {
				x[i] += 100 + c.slope*float64(i)/20
			}
			if tr, ok := Slope(points(x)); ok && tr.Certain() {
				found++
			}
		}
		share := float64(found) / runs
		t.Logf("correlation %.1f, change of %.0f deviations over 20 batches: called a trend in %.1f%%", c.rho, c.slope, 100*share)
		if share < c.least || share > c.most {
			t.Errorf("%+v: %v", c, share)
		}
	}
	warm := make([]float64, 20)
	for i := range warm {
		warm[i] = 1 - math.Exp(-float64(i)/6) + 0.01*float64(i%2)
	}
	if tr, ok := Slope(points(warm)); !ok || !tr.Certain() {
		t.Errorf("a warm-up over the whole series: %+v", tr)
	}
}

// Slope agrees with gonum's line and correlation, on points of different length. The residuals
// alternate, so that neighbors are not correlated.
func TestSlopeIsLeastSquares(t *testing.T) {
	series := []Point{{4, 1}, {3, 2}, {7, 1}, {5, 1}, {9, 1}, {7, 3}, {12, 1}, {9, 1}}
	at := []float64{0.5, 2, 3.5, 4.5, 5.5, 7.5, 9.5, 10.5}
	var values []float64
	for _, p := range series {
		values = append(values, p.Value)
	}
	tr, ok := Slope(series)
	_, slope := stat.LinearRegression(at, values, nil, false)
	r := stat.Correlation(at, values, nil)
	if !ok || tr.Correlation != 0 {
		t.Fatalf("%+v", tr)
	}
	near(t, "change", tr.Change, slope*11, 1e-9)
	near(t, "p", tr.P, StudentP(r*math.Sqrt(6/(1-r*r)), 6), 1e-9)
	if perfect, _ := Slope(points([]float64{1, 2, 3, 4, 5, 6})); perfect.P != 0 || math.Abs(perfect.Ratio-6/3.5) > 1e-9 {
		t.Errorf("a perfect line: %+v", perfect)
	}
	if level, _ := Slope(points([]float64{3, 3, 3, 3, 3})); level.P != 1 || level.Change != 0 {
		t.Errorf("a level line: %+v", level)
	}
}

// Wikipedia's example of the method: 0.01 0.04 0.03 0.005 become 0.03 0.06 0.06 0.02.
func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, math.NaN(), 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, math.NaN(), 0.06, 0.02} {
		if math.IsNaN(want) != math.IsNaN(got[i]) || math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%v", got)
		}
	}
}
