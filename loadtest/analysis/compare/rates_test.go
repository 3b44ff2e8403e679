package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/fact"
)

// A rate is a case in which the percentage of groups that are called different is measured.
type rate struct {
	what      string
	n         int // runs of each group
	noise     lot
	effect    float64 // B/A
	unblocked bool    // without knowledge of neighboring runs
	apart     bool    // all of A before all of B
}

// measure repeats the deciding comparison, and returns the percentage of differences found.
func (c rate) measure(times int) float64 {
	r := rand.New(rand.NewPCG(uint64(c.n), uint64(len(c.what))))
	called := 0
	m := MetricOf("throughput")
	var loads []load
	for range times {
		a := c.noise
		a.r, a.factor, a.bare = r, 1, true
		b := a
		b.factor = c.effect
		span := float64(200 * c.n)
		groups := []Group{a.group("A", c.n, interleaved(0), span), b.group("B", c.n, interleaved(1), span)}
		if c.apart {
			half := func(offset float64) func(int) float64 {
				return func(i int) float64 { return offset + float64(100*i) }
			}
			groups = []Group{a.group("A", c.n, half(0), span), b.group("B", c.n, half(span/2), span)}
		}
		if loads == nil {
			loads = common(groups)
		}
		paired := blocks(&groups[0], &groups[1])
		if c.unblocked {
			paired = nil
		}
		s := sample(&groups[0], &groups[1], paired, func(r *Run) (float64, bool) { return number(r, m, loads) })
		shift := s.shift(m, wanders(s.levels), means())
		if shift.P != nil && *shift.P <= 0.05 {
			called++
		}
	}
	return 100 * float64(called) / float64(times)
}

// TestRates measures the share of groups without a difference that are called different, and the
// share of groups with a difference that are called so: the figures of docs/methods.md, which has
// the same lines.
func TestRates(t *testing.T) {
	shared, own := lot{noise: 0.03, steps: 1}, lot{own: 0.03, steps: 5}
	both := lot{noise: 0.03, own: 0.03, steps: 5}
	drift := shared
	drift.drift = 0.2
	page := require.File(t, "../../../docs/methods.md")
	for _, c := range []struct {
		rate
		least, most float64
	}{
		{rate{what: "the same, noise common to all steps of a run", n: 9, noise: shared, effect: 1}, 0, 5.6},
		{rate{what: "the same, noise of each of 5 steps by itself", n: 9, noise: own, effect: 1}, 0, 5.6},
		{rate{what: "5% more, noise common to all steps of a run", n: 9, noise: shared, effect: 1.05}, 88, 100},
		{rate{what: "5% less, noise common to all steps of a run", n: 9, noise: shared, effect: 0.95}, 90, 100},
		{rate{what: "5% more, noise of each of 5 steps by itself", n: 9, noise: own, effect: 1.05}, 99, 100},
		{rate{what: "5% more, both kinds of noise", n: 9, noise: both, effect: 1.05}, 75, 100},
		{rate{what: "5% more, noise common to all steps of a run", n: 5, noise: shared, effect: 1.05}, 40, 80},
		{rate{what: "5% more, noise common to all steps of a run", n: 10, noise: shared, effect: 1.05}, 91, 100},
		{rate{what: "the same, drift of 20% over the campaign", n: 9, noise: drift, effect: 1}, 0, 6.5},
		{rate{what: "5% more, drift of 20% over the campaign", n: 9, noise: drift, effect: 1.05}, 75, 100},
		{rate{what: "5% more, drift of 20%, blocks not known", n: 9, noise: drift, effect: 1.05, unblocked: true}, 0, 40},
		{rate{what: "the same, drift of 20%, all A before all B", n: 9, noise: drift, effect: 1, apart: true}, 50, 100},
	} {
		t.Run(fmt.Sprintf("%s %d", c.what, c.n), func(t *testing.T) {
			t.Parallel()
			times := 4000
			if testing.Short() || raceEnabled {
				times = 400
			} else if c.effect == 1 {
				times = 10_000
			}
			got := c.measure(times)
			line := fmt.Sprintf("| %s | %d + %d | %.1f%% |", c.what, c.n, c.n, got)
			t.Log(line)
			slack := 0.0
			if times == 400 {
				slack = 4
			}
			if got < c.least-slack || got > c.most+slack {
				t.Errorf("called different in %.1f%%, want %.1f to %.1f", got, c.least, c.most)
			}
			if times > 400 && !strings.Contains(string(page), line) {
				t.Errorf("docs/methods.md lacks the line\n%s", line)
			}
		})
	}
}

// TestFamilyOfSteps checks that, if all steps are compared and no step differs, a difference is
// found in at most 5% of the comparisons, for any number of steps.
func TestFamilyOfSteps(t *testing.T) {
	tier.Slow(t, "repeats a comparison many times")
	r := rand.New(rand.NewPCG(12, 12))
	const times = 300
	any := 0
	for range times {
		a := lot{r: r, own: 0.03, factor: 1, steps: 5}
		c := compareTwo(t, two(a, a, 9))
		found := false
		for _, s := range c.Pairs[0].Steps {
			for _, m := range s.Metrics {
				found = found || m.Result == Better || m.Result == Worse
			}
		}
		if found {
			any++
		}
	}
	if share := float64(any) / times; share > 0.075 {
		t.Errorf("some step is called different in %.1f%% of comparisons of the same", 100*share)
	}
}

// TestWanders checks that wanders returns true for about 5% of levels without drift, and detects a
// drift of seven times the noise.
func TestWanders(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	const times = 5000
	for _, c := range []struct{ drift, least, most float64 }{{0, 0.035, 0.065}, {7, 0.95, 1}} {
		called := 0
		for range times {
			level := make([]float64, 9)
			for i := range level {
				level[i] = r.NormFloat64() + c.drift*float64(i)/8
			}
			if wanders(level) {
				called++
			}
		}
		if share := float64(called) / times; share < c.least || share > c.most {
			t.Errorf("drift of %v deviations: %v", c.drift, share)
		}
	}
	if wanders([]float64{1, 1, 1, 1, 1, 1, 1}) || wanders([]float64{1, 2, 3}) || wanders(nil) ||
		wanders([]float64{1, math.NaN(), 3, 4, 5, 6, 7}) {
		t.Error("no level wanders there")
	}
}

// TestBlockedComparison checks that runs that took turns under a drift are compared within blocks,
// and so are their steps, and that runs without a drift or without turns are not.
func TestBlockedComparison(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	a := lot{r: r, noise: 0.01, own: 0.01, factor: 1, steps: 2, drift: 0.5}
	b := a
	b.factor = 1.1
	p := compareTwo(t, two(a, b, 9)).Pairs[0]
	if !p.Blocked || p.Blocks != 9 || p.Result != Better || p.Overall.RunsA != 9 || !fact.Has(p.Facts, "compare.method.blocks") {
		t.Errorf("%+v", p)
	}
	if s := p.Steps[1].Metrics[0]; s.Value < 1.05 || s.Value > 1.15 || *s.High-*s.Low > 0.1 || *s.P > 0.005 {
		t.Errorf("a step, within blocks: %+v", s)
	}
	a.drift, b.drift = 0, 0
	if p := compareTwo(t, two(a, b, 9)).Pairs[0]; p.Blocked || p.Blocks != 9 || !fact.Has(p.Facts, "compare.method.no_drift") {
		t.Errorf("without drift: %+v", p)
	}
	half := func(offset float64) func(int) float64 { return func(i int) float64 { return offset + float64(i) } }
	apart := []Group{a.group("A", 9, half(0), 18), b.group("B", 9, half(9), 18)}
	if p := compareTwo(t, apart).Pairs[0]; p.Blocks != 0 {
		t.Errorf("all of A before all of B: %d blocks", p.Blocks)
	}
	// Runs of one campaign are paired by number, in any order of time; the block of a lost run is
	// left out.
	for _, g := range apart {
		for i, run := range g.Runs {
			run.Of("campaign", i+1, nil)
		}
	}
	apart[1].Runs = apart[1].Runs[1:]
	if p := compareTwo(t, apart).Pairs[0]; p.Blocks != 8 {
		t.Errorf("a run of one campaign is missing: %d blocks", p.Blocks)
	}
}
