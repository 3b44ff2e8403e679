package compare

import (
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
)

// TestShiftsInWords checks that ratios of 2 and more are multiples, also in tables.
func TestShiftsInWords(t *testing.T) {
	m, share := MetricOf("throughput"), MetricOf("error_ratio")
	for _, c := range []struct{ got, want string }{
		{m.Change(1.052), "5.2% higher"}, {m.Change(0.5), "50.0% lower"}, {m.Change(1), "no higher"},
		{m.Change(92.66), "93 x as high"}, {m.Change(2), "2.0 x as high"}, {m.Change(0.01), "1/100 x as high"},
		{m.Change(math.MaxFloat64), "2e+308 x as high"},
		{m.Signed(1.052), "+5.2%"}, {m.Signed(92.66), "93 x"}, {m.Signed(0.0001), "1/10000 x"}, {m.Signed(0.9), "-10.0%"},
		{share.Change(3), "300% points higher"}, {share.Signed(-0.1), "-10.0% points"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// consistent fails t if a comparison has contradictory results for a pair.
func consistent(t *testing.T, c *Comparison) {
	t.Helper()
	m := MetricOf(c.Metrics[0])
	for i := range c.Pairs {
		p := &c.Pairs[i]
		o := &p.Overall
		told := p.Result == Better || p.Result == Worse || p.Result == Different
		switch {
		case (o.P == nil) != (o.Low == nil) || (o.P == nil) != (o.Adjusted == nil):
			t.Errorf("p without an interval, or the reverse: %+v", o)
		case o.P == nil && p.Result != TooFew && p.Result != Equal, o.P != nil && p.Result == TooFew:
			t.Errorf("%s with p %v", p.Result, o.P)
		case o.P != nil && p.Result != Equal && told != (*o.Adjusted <= 0.05):
			t.Errorf("%s with p %v", p.Result, *o.Adjusted)
		case told && !(m.up(*o.Low) > 0 || m.up(*o.High) < 0):
			t.Errorf("%s, and the interval is %v to %v", p.Result, *o.Low, *o.High)
		case told != (fact.Has(p.Facts, "compare.better") || fact.Has(p.Facts, "compare.worse") || fact.Has(p.Facts, "compare.different")):
			t.Errorf("%s: %s", p.Result, p.Verdict)
		}
	}
	if err := c.JSON(io.Discard); err != nil {
		t.Error(err)
	}
}

// TestOneVerdictForEachPair checks, for all kinds of runs, that each pair has one verdict that
// agrees with its p and its interval.
func TestOneVerdictForEachPair(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 41))
	for range 150 {
		a := lot{r: r, factor: 1, steps: 1 + r.IntN(3), noise: []float64{0, 0.01, 0.3}[r.IntN(3)]}
		b := a
		b.factor, b.noise = []float64{1, 1.05, 92, 0.001}[r.IntN(4)], []float64{0, 0.01, 0.3}[r.IntN(3)]
		n, k := 1+r.IntN(7), 1+r.IntN(12)
		groups := []Group{a.group("A", n, interleaved(0), 1000), b.group("B", k, interleaved(1), 1000)}
		for range r.IntN(4) { // runs in which a step moved nothing, or that have invalid values
			g := &groups[r.IntN(2)]
			s := &g.Runs[r.IntN(len(g.Runs))].Found.Curve[r.IntN(a.steps)]
			switch r.IntN(3) {
			case 0:
				s.Moved, s.Throughput, s.Done = 0, 0, 0
			case 1:
				s.Throughput = math.Inf(1)
			case 2:
				s.Throughput = math.NaN()
			}
		}
		c, err := Of(groups, Options{})
		require.NoError(t, err)
		consistent(t, c)
	}
}

// TestVariantsAgreeWithFactors checks a campaign of two factors and three repetitions, of which one
// level is 92 times as fast: the verdict on the factor and the verdicts on its variants agree, even
// if runs do not vary.
func TestVariantsAgreeWithFactors(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 42))
	factors := []Factor{{"auth.method", []string{"none", "krb5"}}, {"workload.session", []string{"kept", "fresh"}}}
	for _, noise := range []float64{0, 0.05} {
		groups := variants(factors)
		for b := range 3 {
			for i := range groups {
				y := 1e6 * math.Exp(noise*r.NormFloat64())
				if groups[i].Levels["workload.session"] == "fresh" {
					y *= 92
				}
				groups[i].Runs = append(groups[i].Runs, cell(b+1, groups[i].Levels, 0, y))
			}
		}
		c, err := Of(groups, Options{Metrics: []string{"throughput"}, Factors: factors})
		require.NoError(t, err)
		consistent(t, c)
		for _, x := range c.Effects.Main {
			if want := map[bool]string{true: Better, false: NotShown}[x.Factor == "workload.session"]; x.Result != want {
				t.Errorf("noise %v: %s %s is %s, want %s", noise, x.Factor, x.Level, x.Result, want)
			}
		}
		for i := range c.Pairs {
			if fresh := groups[i+1].Levels["workload.session"] == "fresh"; fresh != (c.Pairs[i].Result == Better) || c.Pairs[i].Result == TooFew {
				t.Errorf("noise %v: %s: %s", noise, c.Pairs[i].B, c.Pairs[i].Verdict)
			}
		}
	}
}

// TestNoisyVariant checks that a variant with much more noise than the others is not judged by
// their noise.
func TestNoisyVariant(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 43))
	factors := []Factor{{"a", []string{"1", "2"}}, {"b", []string{"1", "2"}}}
	const times = 600
	called, pairs := 0, 0
	for range times {
		groups := variants(factors)
		for b := range 3 {
			for i := range groups {
				noise := 0.02
				if i == 3 {
					noise = 0.5
				}
				groups[i].Runs = append(groups[i].Runs, cell(b+1, groups[i].Levels, 0, 1e6*math.Exp(noise*r.NormFloat64())))
			}
		}
		c, err := Of(groups, Options{Metrics: []string{"throughput"}, Factors: factors})
		require.NoError(t, err)
		pairs++
		if p := c.Pairs[2].Overall.P; p != nil && *p <= 0.05 {
			called++
		}
	}
	if share := float64(called) / float64(pairs); share > 0.08 {
		t.Errorf("the noisy variant of the same mean is called different in %.1f%%", 100*share)
	}
}

// TestRunsThatMovedNothing checks that runs in which a load moved nothing are not left out: instead
// the load is left out, with a warning.
func TestRunsThatMovedNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 44))
	a := lot{r: r, noise: 0.01, factor: 1, steps: 2}
	groups := two(a, a, 9)
	for _, run := range groups[1].Runs[:4] {
		s := &run.Found.Curve[1]
		s.Moved, s.Throughput, s.Done = 0, 0, 0
	}
	c := compareTwo(t, groups)
	p := &c.Pairs[0]
	if p.Overall.RunsB != 9 || p.Overall.Value < 0.95 || p.Overall.Value > 1.05 ||
		!fact.Has(c.Facts, "compare.missing_metric") {
		t.Errorf("%+v\n%q", p.Overall, c.Warnings)
	}
	for _, run := range groups[1].Runs {
		s := &run.Found.Curve[0]
		s.Moved, s.Throughput, s.Done = 0, 0, 0
	}
	c = compareTwo(t, groups)
	if p := &c.Pairs[0]; p.Overall.P != nil || p.Result != TooFew || !fact.Has(p.Facts, "compare.no_load") {
		t.Errorf("%s: %s", p.Result, p.Verdict)
	}
}

// TestOneAgainstMany checks that a single run is never called different, for any number of runs in
// the other group.
func TestOneAgainstMany(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 45))
	a := lot{r: r, noise: 0.01, factor: 1, steps: 1}
	b := a
	b.factor = 92
	c := compareTwo(t, []Group{a.group("A", 60, interleaved(0), 1), b.group("B", 1, interleaved(1), 1)})
	consistent(t, c)
	if p := c.Pairs[0]; p.Result != TooFew {
		t.Errorf("%s: %s", p.Result, p.Verdict)
	}
}
