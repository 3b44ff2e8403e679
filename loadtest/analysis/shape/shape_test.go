package shape

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// with returns a point with the 95% interval +-half of its yield.
func with(load, yield, half float64) Point {
	low, high := yield-half, yield+half
	return Point{Load: load, Yield: yield, Low: &low, High: &high, Batches: 20}
}

func curve(half float64, loadsAndYields ...float64) []Point {
	var out []Point
	for i := 0; i < len(loadsAndYields); i += 2 {
		out = append(out, with(loadsAndYields[i], loadsAndYields[i+1], half))
	}
	return out
}

func bare(points []Point) []Point {
	for i := range points {
		points[i].Low, points[i].High = nil, nil
	}
	return points
}

func TestKneeOfCurves(t *testing.T) {
	usl := func(n float64) float64 { return 100 * n / (1 + 0.02*(n-1) + 0.0001*n*(n-1)) }
	tests := []struct {
		name     string
		f        Curve
		from, to float64
		want     float64 // 0: no knee
		why      string
	}{
		{"plateau", func(n float64) float64 { return math.Min(10*n, 640) }, 1, 256, 64, ""},
		{"plateau that declines", func(n float64) float64 { return math.Min(10*n, 640) - math.Max(0, n-64) }, 1, 256, 64, ""},
		{"plateau on a long ladder", func(n float64) float64 { return math.Min(10*n, 320) }, 1, 4096, 32, ""},
		// y = x/(c+x) from 0 to b: the slope equals the slope of the chord at sqrt(c(c+b)) - c
		{"hyperbola", func(n float64) float64 { return n / (10 + n) }, 0, 100, math.Sqrt(10*110) - 10, ""},
		// this law is highest at sqrt((1-sigma)/kappa) = 98.995 clients with 2519; its slope equals
		// the slope of the chord, (2519-100)/97.995, where 100 (1-sigma-kappa n^2) = slope *
		// (1+sigma(n-1)+kappa n(n-1))^2
		{"universal scalability law", usl, 1, 400, 36.856, ""},
		{"straight", func(n float64) float64 { return 10 * n }, 1, 256, 0, "straight"},
		{"nearly straight", func(n float64) float64 { return n / (1 + 0.001*n) }, 1, 256, 0, "straight"},
		{"a corner at the very end", func(n float64) float64 { return math.Min(10*n, 2500) }, 1, 256, 0, "straight"},
		{"flat", func(float64) float64 { return 7 }, 1, 256, 0, "does not rise"},
		{"falling", func(n float64) float64 { return -n }, 1, 256, 0, "does not rise"},
		{"a pole", func(n float64) float64 { return 1 / (n - n) }, 1, 256, 0, "not finite"},
		{"one load", func(n float64) float64 { return n }, 5, 5, 0, "all the same"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			k, why := KneeOf(c.f, c.from, c.to, 8, nil)
			if c.want == 0 {
				if k != nil || !strings.Contains(why, c.why) {
					t.Errorf("knee %+v, why %q", k, why)
				}
				return
			}
			if k == nil {
				t.Fatal(why)
			}
			if math.Abs(k.Load-c.want) > 0.01*c.want || k.Yield != c.f(k.Load) || k.Low != nil {
				t.Errorf("knee at %v (yield %v, bend %.3f), want %v", k.Load, k.Yield, k.Bend, c.want)
			}
		})
	}
	if k, why := KneeOf(usl, 1, 400, 3, nil); k != nil || why != "3 loads were tested: a knee needs 4" {
		t.Errorf("of three loads: %v %q", k, why)
	}
}

// The least bend, 0.1, is the bend of N/(1+sN) with an efficiency of two thirds at the heaviest
// load: s = 1/2 there, in units of that load.
func TestLeastBend(t *testing.T) {
	for efficiency, want := range map[float64]bool{0.66: true, 0.67: false} {
		s := 1/efficiency - 1
		k, why := KneeOf(func(n float64) float64 { return n / (1 + s*n) }, 0, 1, 8, nil)
		if (k != nil) != want {
			t.Errorf("efficiency %v: knee %+v, %s", efficiency, k, why)
		}
	}
}

func TestKneeInterval(t *testing.T) {
	plateau := func(p float64) Curve { return func(n float64) float64 { return math.Min(10*n, p) } }
	var resampled []Curve
	for i := range 201 {
		resampled = append(resampled, plateau(600+float64(i)*0.4)) // corners from 60 to 68
	}
	k, _ := KneeOf(plateau(640), 1, 256, 8, resampled)
	if k.Low == nil || math.Abs(*k.Low-60.2) > 0.05 || math.Abs(*k.High-67.8) > 0.05 {
		t.Fatalf("interval %v to %v, want 60.2 to 67.8", k.Low, k.High)
	}
	for i := range 40 {
		resampled[i] = func(n float64) float64 { return n } // a fifth of the curves has no knee
	}
	if k, _ = KneeOf(plateau(640), 1, 256, 8, resampled); k.Low != nil {
		t.Errorf("interval %v to %v although a fifth of the curves has no knee", *k.Low, *k.High)
	}
}

func TestKneeAmongPoints(t *testing.T) {
	tests := []struct {
		name   string
		points []Point
		want   float64
		why    string
	}{
		{"plateau", curve(1, 1, 10, 2, 20, 4, 40, 8, 80, 16, 81, 32, 80, 64, 80), 8, ""},
		{"plateau, no intervals", bare(curve(1, 1, 10, 2, 20, 4, 40, 8, 80, 16, 81, 32, 80, 64, 80)), 8, ""},
		{"a peak", curve(1, 1, 10, 2, 20, 4, 40, 8, 80, 16, 50, 32, 20), 8, ""},
		{"both ways", curve(1, 1, 10, 4, 40, 8, 80, 16, 81, 8, 79, 4, 40, 1, 10), 8, ""},
		{"straight", curve(1, 1, 10, 2, 20, 4, 40, 8, 80, 16, 160), 0, "do not bend"},
		{"straight within noise", curve(60, 1, 10, 4, 60, 8, 120, 12, 130, 16, 160), 0, "do not bend"},
		{"flat", curve(1, 1, 80, 2, 80, 4, 80, 8, 80), 0, "does not rise"},
		{"three loads", curve(1, 1, 10, 2, 20, 4, 20, 4, 21), 0, "3 loads were tested: a knee needs 4"},
		{"nothing", nil, 0, "0 loads were tested: a knee needs 4"},
	}
	for _, c := range tests {
		k, why := KneeAmong(c.points)
		if got := (&Knee{}); c.want != 0 {
			if k != nil {
				got = k
			}
			if got.Load != c.want {
				t.Errorf("%s: knee at %v, want %v (%s)", c.name, got.Load, c.want, why)
			}
		} else if k != nil || !strings.Contains(why, c.why) {
			t.Errorf("%s: knee %+v, why %q", c.name, k, why)
		}
	}
}

// On straight curves with noise a knee is rarely found: 200 curves, seven steps each, 3% noise in
// means of 20 batches.
func TestNoKneeInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	claimed := 0
	for range 200 {
		var points []Point
		for load := 1.0; load <= 64; load *= 2 {
			points = append(points, with(load, 10*load*(1+0.03*r.NormFloat64()), 10*load*0.06))
		}
		if k, _ := KneeAmong(points); k != nil {
			claimed++
		}
	}
	page := require.File(t, "../../../docs/methods.md")
	if want := fmt.Sprintf("On 200 straight curves of seven steps with 3%% noise, %d knees were claimed",
		claimed); !strings.Contains(string(page), want) {
		t.Errorf("docs/methods.md does not say: %s", want)
	}
}

// For a station with one server, service time S, and a closed load without pauses, X/R is largest
// at the load at which X just reaches 1/S: at one client. With think time Z the asymptotes cross at
// (S+Z)/S clients (Denning and Buzen, 1978).
func TestPowerAndSaturation(t *testing.T) {
	const s, z = 0.1, 0.9
	var points []Point
	r := 0.0
	for n := 1.0; n <= 40; n++ { // exact mean value analysis
		queue := 0.0
		if n > 1 {
			queue = (n - 1) / (r + z) * r
		}
		r = s * (1 + queue)
		points = append(points, Point{Load: n, Yield: n / (r + z), Latency: r})
	}
	if got := Saturation(points, 1/s); math.Abs(got-10) > 1e-9 {
		t.Errorf("asymptotes cross at %v clients, want 10", got)
	}
	best := -1
	for i := range points {
		if best < 0 || points[i].Yield/points[i].Latency > points[best].Yield/points[best].Latency {
			best = i
		}
	}
	if got := Power(points); got != best || points[got].Load < 5 || points[got].Load > 10 {
		t.Errorf("most power at %v clients", points[got].Load)
	}
	if got := Power(curve(1, 1, 10, 2, 20)); got != -1 {
		t.Errorf("point %d without any latency", got)
	}
	if got := Saturation([]Point{{Load: 1}}, 10); got != 0 {
		t.Errorf("saturation %v where nothing moved", got)
	}
}

func TestCollapse(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []Point
		want   *Breakdown
	}{
		{"decline", curve(1, 1, 10, 8, 80, 16, 60, 32, 45), nil},
		{"collapse", curve(1, 1, 10, 8, 80, 16, 60, 32, 30, 64, 20), &Breakdown{Point: 3, Left: 0.375, Certain: true, Recovered: -1}},
		{"stalled with clients connected", curve(0.1, 1, 10, 8, 80, 16, 0), &Breakdown{Point: 2, Stalled: true, Certain: true, Recovered: -1}},
		{"not certain", curve(15, 1, 10, 8, 80, 16, 37), nil},
		{"recovered", curve(1, 1, 10, 8, 80, 16, 10, 32, 79), &Breakdown{Point: 2, Left: 0.125, Certain: true, Recovered: 3}},
		{"no intervals", bare(curve(1, 1, 10, 8, 80, 16, 37)), &Breakdown{Point: 2, Left: 0.4625, Recovered: -1}},
		{"on the way down only", curve(1, 1, 10, 8, 80, 16, 81, 8, 20), nil},
		{"nothing", nil, nil},
	} {
		best := -1
		if o, ok := OptimumOf(c.points); ok {
			best = o.Best
		}
		got := Collapse(c.points, best)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestHysteresis(t *testing.T) {
	got := Hysteresis(curve(1, 1, 10, 8, 80, 16, 81, 32, 60, 16, 50, 8, 79, 1, 10))
	want := []Return{{16, 2, 4, (50.0 - 81) / 81, true}, {8, 1, 5, -1.0 / 80, false}, {1, 0, 6, 0, false}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if math.Abs(got[i].Change-want[i].Change) > 1e-12 || got[i].Load != want[i].Load || got[i].Up != want[i].Up ||
			got[i].Down != want[i].Down || got[i].Certain != want[i].Certain {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	for name, points := range map[string][]Point{
		"only up": curve(1, 1, 10, 2, 20, 4, 40), "at random": curve(1, 4, 40, 1, 10, 4, 41, 2, 20, 1, 9), "none": nil,
	} {
		if got := Hysteresis(points); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := Hysteresis(bare(curve(1, 1, 10, 8, 80, 16, 81, 8, 20))); len(got) != 1 || got[0].Certain {
		t.Errorf("certain without intervals: %+v", got)
	}
}

func TestWithin(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name          string
		loads, values []float64
		limit         Limit
		from, to      float64 // NaN: no such load
		broken, cross float64
		lightest      bool
		again         float64
	}{
		{"held everywhere", []float64{1, 2, 4}, []float64{1, 2, 3}, Limit{"<", 10}, 1, 4, nan, nan, true, nan},
		{"held nowhere", []float64{1, 2, 4}, []float64{11, 12, 13}, Limit{"<", 10}, nan, nan, nan, nan, false, nan},
		{"crossed", []float64{1, 2, 4}, []float64{1, 8, 12}, Limit{"<", 10}, 1, 2, 4, 3, true, nan},
		{"just at the limit", []float64{1, 2, 4}, []float64{1, 10, 12}, Limit{"<=", 10}, 1, 2, 4, 2, true, nan},
		{"just at the limit, strictly", []float64{1, 2, 4}, []float64{1, 10, 12}, Limit{"<", 10}, 1, 1, 2, 2, true, nan},
		{"held from some load on", []float64{1, 2, 4, 8}, []float64{1, 8, 12, 9}, Limit{">", 7}, 2, 8, nan, nan, false, nan},
		{"held again", []float64{1, 2, 4, 8}, []float64{1, 12, 2, 12}, Limit{"<", 10}, 1, 1, 2, 1 + 9.0/11, true, 4},
		{"unordered, the worst counts", []float64{4, 1, 2, 2, 1}, []float64{20, 1, 9, 11, 2}, Limit{"<", 10}, 1, 1, 2, 1 + 8.0/9, true, nan},
		{"unknown values", []float64{1, 2, 4}, []float64{1, nan, 12}, Limit{"<", 10}, 1, 1, 4, 1 + 3*9.0/11, true, nan},
		{"nothing", nil, nil, Limit{"<", 10}, nan, nan, nan, nan, false, nan},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Within(c.loads, c.values, c.limit)
			for name, pair := range map[string]struct {
				got  *float64
				want float64
			}{"from": {r.From, c.from}, "to": {r.To, c.to}, "broken": {r.Broken, c.broken}, "crossing": {r.Crossing, c.cross},
				"again": {r.Again, c.again}} {
				switch {
				case pair.got == nil && math.IsNaN(pair.want):
				case pair.got == nil || math.Abs(*pair.got-pair.want) > 1e-12:
					t.Errorf("%s: %v, want %v", name, pair.got, pair.want)
				}
			}
			if r.Lightest != c.lightest {
				t.Errorf("kept at the lightest load: %v", r.Lightest)
			}
		})
	}
}

// For any points, nothing panics and every returned index is valid.
func FuzzShape(f *testing.F) {
	f.Add([]byte{})
	f.Add(binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())))
	f.Add([]byte("1234567812345678123456781234567812345678123456781234567812345678"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var all []float64
		for ; len(raw) >= 2; raw = raw[2:] {
			n := binary.LittleEndian.Uint16(raw)
			x := float64(n % 512)
			switch n {
			case 0xffff:
				x = math.NaN()
			case 0xfffe:
				x = math.Inf(1)
			case 0xfffd:
				x = math.MaxFloat64
			case 0xfffc:
				x = -1
			}
			all = append(all, x)
		}
		var points []Point
		for ; len(all) >= 5; all = all[5:] {
			p := Point{Load: all[0], Yield: all[1], Latency: all[3], Errors: all[4] / 512, Batches: int(math.Min(all[4], 100))}
			if all[2] != 0 {
				low, high := p.Yield-all[2], p.Yield+all[2]
				p.Low, p.High = &low, &high
			}
			points = append(points, p)
		}
		best := -1
		o, ok := OptimumOf(points)
		if ok {
			best = o.Best
		}
		within := func(i int) {
			if i < -1 || i >= len(points) {
				t.Fatalf("place %d of %d points", i, len(points))
			}
		}
		within(best)
		if ok && (math.IsNaN(o.Level) || !slices.Contains(o.Equals, o.Least) || !slices.Contains(o.Equals, o.Best)) {
			t.Fatalf("optimum %+v", o)
		}
		within(Power(points))
		KneeAmong(points)
		if s := Saturation(points, 100); math.IsNaN(s) || math.IsInf(s, 0) {
			t.Fatalf("saturation %v", s)
		}
		if b := Collapse(points, best); b != nil {
			within(b.Point)
			within(b.Recovered)
		}
		for _, h := range Hysteresis(points) {
			within(h.Up)
			within(h.Down)
		}
		var loads, values []float64
		for _, p := range points {
			loads, values = append(loads, p.Load), append(values, p.Latency)
		}
		Within(loads, values, Limit{"<", 100})
		if len(loads) > 1 {
			KneeOf(func(x float64) float64 { return x * values[0] }, loads[0], loads[1], len(loads), nil)
			Smooth(loads, values, 3)
		}
	})
}
