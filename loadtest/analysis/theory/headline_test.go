package theory

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// A noisyCurve is a service of known yields, with correlated noise of neighboring seconds as on a
// busy machine.
type noisyCurve struct {
	kind    string
	loads   []int
	yield   func(n float64) float64 // bytes per second
	failed  func(n float64) bool    // all operations fail; nil: no failures
	noise   float64                 // standard deviation of a second, as a share
	rho     float64                 // correlation of neighboring seconds
	scatter float64                 // standard deviation of a whole step, as a share
	hold    int                     // seconds
}

// Kinds of curves.
const (
	flatNoise = "flat"
	growing   = "growing"
	plateau   = "plateau"
	peaked    = "peak"
	collapses = "collapse"
	twoSteps  = "two steps"
	oneStep   = "one step"
	refused   = "all refused"
)

// drawCurve draws a curve of the given kind: up to 12 loads, holds of 6 to 30 s, noise of 1% to 10%
// with a correlation of up to 0.7.
func drawCurve(r *rand.Rand, kind string) noisyCurve {
	c := noisyCurve{kind: kind, noise: between(r, 0.01, 0.1), rho: 0.7 * r.Float64(), scatter: 0.005 * r.Float64(), hold: 6 + r.IntN(25)}
	for n, steps := 1.0, 5+r.IntN(8); len(c.loads) < steps; n *= 1.3 + 0.7*r.Float64() {
		c.loads = append(c.loads, int(math.Ceil(n))+len(c.loads))
	}
	most := float64(c.loads[len(c.loads)-1])
	at, left := most*(0.1+0.5*r.Float64()), 0.1+0.6*r.Float64()
	c.yield = map[string]func(float64) float64{
		flatNoise: func(float64) float64 { return 1 },
		growing:   func(n float64) float64 { return n / (1 + n/most/4) / most },
		plateau:   func(n float64) float64 { return min(n, at) / at },
		peaked:    func(n float64) float64 { return 2 * n / at / (1 + n*n/at/at) },
		collapses: func(n float64) float64 { return map[bool]float64{true: n / at, false: left}[n <= at] },
		twoSteps:  func(n float64) float64 { return 1 + left*n },
		oneStep:   func(float64) float64 { return 1 },
		refused:   func(float64) float64 { return 1 },
	}[kind]
	switch kind {
	case twoSteps:
		c.loads = c.loads[:2]
	case oneStep:
		c.loads = c.loads[:1]
	case refused:
		c.failed = func(float64) bool { return true }
	}
	return c
}

// run writes a run of the curve and analyzes it.
func (c noisyCurve) run(t *testing.T, r *rand.Rand) *analysis.Findings {
	t.Helper()
	const bytes = 1e9
	s := resultstest.Service{Lambda: 3, File: 1, Clients: c.loads, Duration: c.hold}
	step, level, last := 0, 0.0, 0.0
	s.Interval = func(iv *measure.Interval) {
		if iv.Step != step {
			step, level, last = iv.Step, 1+c.scatter*r.NormFloat64(), r.NormFloat64()
		}
		last = c.rho*last + math.Sqrt(1-c.rho*c.rho)*r.NormFloat64()
		n := float64(c.loads[iv.Step-1])
		iv.Moved = int64(max(0, bytes*c.yield(n)*level*(1+c.noise*last)))
		iv.Done = max(iv.Done, 1)
		if c.failed != nil && c.failed(n) {
			iv.Failed, iv.Done, iv.Moved = map[storage.Class]int64{storage.Refused: iv.Done}, 0, 115
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, s.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := analysis.Analyze(run)
	require.NoError(t, err)
	return f
}

// A headlineTally counts the results in headlines for one kind of curve.
type headlineTally struct{ runs, held, inside, knees, fits, enough int }

// count compares f with the known curve.
func (n *headlineTally) count(t *testing.T, c noisyCurve, f *analysis.Findings) {
	t.Helper()
	n.runs++
	if len(f.Headline) > 100 || f.Headline == "" || strings.Contains(f.Headline, "\n") || !strings.HasPrefix(f.Verdict, f.Headline) {
		t.Errorf("%s: headline %q of %q", c.kind, f.Headline, f.Verdict)
	}
	o := f.Optimum
	if c.kind == refused {
		if o != nil || f.Knee != nil || f.Fits != nil || f.Power != nil {
			t.Errorf("%s: optimum %+v, knee %+v, fits %+v", c.kind, o, f.Knee, f.Fits)
		}
		return
	}
	best, top := 0.0, 0.0
	for i := range f.Curve {
		best, top = max(best, c.yield(float64(f.Curve[i].Clients))), max(top, *f.Curve[i].ThroughputHigh)
	}
	held := false
	for _, load := range c.loads {
		held = held || c.yield(float64(load)) >= best*(1-1e-9) && load >= o.ClientsLow && load <= o.ClientsHigh
	}
	if held {
		n.held++
	} else {
		t.Logf("%s, noise %.1f%%, rho %.2f, %d s: %s", c.kind, 100*c.noise, c.rho, c.hold, f.Headline)
	}
	if c.yield(float64(o.Clients)) >= 0.9*best {
		n.enough++
	}
	if o.Inside {
		n.inside++
	}
	if f.Fits != nil && f.Fits.Unfit == "" {
		n.fits++
	}
	if o.Throughput > top {
		t.Errorf("%s: an optimum of %g, at most %g was measured", c.kind, o.Throughput, top)
	}
	if p := o.Peak; p != nil && (*p.Low < float64(c.loads[0]) || *p.High > float64(c.loads[len(c.loads)-1])) {
		t.Errorf("%s: a peak at %g (%g to %g)", c.kind, p.Value, *p.Low, *p.High)
	}
	if k := f.Knee; k != nil {
		n.knees++
		if k.Throughput > top || k.Clients <= c.loads[0] || k.Clients > c.loads[len(c.loads)-1] ||
			k.Saturation > float64(c.loads[len(c.loads)-1]) {
			t.Errorf("%s: knee %+v, at most %g was measured", c.kind, k, top)
		}
	}
}

// TestHeadlinesAreTrue compares headlines with known curves, with noise as on busy machines: the
// range of equal loads contains the truly best load, no knee is reported for noise, no maximum is
// reported if the curve has no maximum, and no number is higher than the measurement.
func TestHeadlinesAreTrue(t *testing.T) {
	tier.Slow(t, "analyzes hundreds of runs")
	runs := map[string]int{flatNoise: 100, growing: 25, plateau: 25, peaked: 25, collapses: 25, twoSteps: 40, oneStep: 10, refused: 5}
	r := rand.New(rand.NewPCG(15, 4))
	all := headlineTally{}
	for _, kind := range []string{flatNoise, growing, plateau, peaked, collapses, twoSteps, oneStep, refused} {
		var n headlineTally
		for range runs[kind] {
			c := drawCurve(r, kind)
			n.count(t, c, c.run(t, r))
		}
		t.Logf("%s: %+v", kind, n)
		if kind == flatNoise && n.knees > max(1, n.runs/100) {
			t.Errorf("%d knees are claimed in %d runs of noise", n.knees, n.runs)
		}
		if (kind == flatNoise || kind == plateau || kind == growing) && n.inside*10 > n.runs {
			t.Errorf("%s: %d maxima are claimed in %d runs", kind, n.inside, n.runs)
		}
		if kind != refused {
			all.runs, all.held, all.enough = all.runs+n.runs, all.held+n.held, all.enough+n.enough
		}
	}
	if all.held*100 < all.runs*95 || all.enough*100 < all.runs*95 {
		t.Errorf("of %d runs, the range holds the best load in %d, and %d of the loads that lead give 90%% of it", all.runs, all.held, all.enough)
	}
	t.Logf("of %d runs, the range holds the best load in %d, and %d of the loads that lead give 90%% of it", all.runs, all.held, all.enough)
}
