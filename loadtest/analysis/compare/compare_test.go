package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// A lot generates runs of a service whose throughput differs from run to run.
type lot struct {
	r      *rand.Rand
	noise  float64 // deviation of all steps of a run together, relative
	own    float64 // deviation of each step by itself
	factor float64 // of the throughput; 1 is the service as it is
	drift  float64 // increase of the logarithm from the first run of all to the last
	steps  int
	bare   bool // only the data that the overall figure needs
}

// group returns n runs; the i-th begins at begin(i), in seconds of a campaign of span seconds.
func (l lot) group(name string, n int, begin func(int) float64, span float64) Group {
	g := Group{Name: name}
	for i := range n {
		at := begin(i)
		g.Runs = append(g.Runs, l.run(fmt.Sprintf("%s-%d", name, i), at, l.drift*at/span))
	}
	return g
}

func (l lot) run(name string, at, gained float64) *Run {
	f := &analysis.Findings{Run: name, Name: "made up", Measure: analysis.Throughput, Model: "closed", Work: "plain reads",
		Start: time.Unix(1e9, 0).Add(time.Duration(at * 1e9)), Validity: analysis.Validity{Status: analysis.Valid}}
	all := math.Exp(gained) * l.factor * (1 + l.noise*l.r.NormFloat64())
	for i := range l.steps {
		t := 1e8 * float64(i+1) * all * (1 + l.own*l.r.NormFloat64())
		f.Curve = append(f.Curve, analysis.Step{Step: i + 1, Clients: 10 * (i + 1), Duration: 30, Throughput: t, Moved: int64(30 * t), Done: 1000,
			Operations: t / 1e6, Latency: &analysis.Quantiles{P50: 1e7 / t, P99: 3e7 / t, Mean: 1.1e7 / t}})
	}
	if l.bare {
		return &Run{Name: name, Start: f.Start, Found: f}
	}
	return NewRun("runs/"+name, results.About{Weir: "1"}, &scenario.Plan{}, f)
}

// interleaved returns the start times of the runs of one of two groups that take turns: A B A B.
func interleaved(offset int) func(int) float64 {
	return func(i int) float64 { return float64(100 * (2*i + offset)) }
}

func two(a, b lot, n int) []Group {
	span := float64(200 * n)
	return []Group{a.group("A", n, interleaved(0), span), b.group("B", n, interleaved(1), span)}
}

func compareTwo(t *testing.T, groups []Group, metrics ...string) *Comparison {
	t.Helper()
	c, err := Of(groups, Options{Metrics: metrics})
	require.NoError(t, err)
	return c
}

func TestBetterAndWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := lot{r: r, noise: 0.01, own: 0.01, factor: 1, steps: 3}
	b := a
	b.factor = 1.1
	c := compareTwo(t, two(a, b, 9))
	p := &c.Pairs[0]
	if p.Result != Better || !fact.Has(p.Facts, "compare.better") || !strings.Contains(p.Verdict, "B is better than A: its throughput is") {
		t.Errorf("%s: %s", p.Result, p.Verdict)
	}
	if v := p.Overall.Value; v < 1.07 || v > 1.13 || !(*p.Overall.Low < v && v < *p.Overall.High) {
		t.Errorf("%+v", p.Overall)
	}
	for _, s := range p.Steps {
		if len(s.Metrics) != 4 || s.Metrics[0].Result != Better || s.Metrics[2].Metric != "p99" || s.Metrics[2].Result != Better ||
			s.Metrics[2].Value > 0.95 {
			t.Errorf("%+v", s)
		}
		if e := s.Metrics[3]; e.Metric != "error_ratio" || e.Result != Equal || e.Kind != Difference || e.Adjusted != nil {
			t.Errorf("no errors anywhere: %+v", e)
		}
	}
	back := compareTwo(t, []Group{{Name: "A", Runs: c.Groups[1].Runs}, {Name: "B", Runs: c.Groups[0].Runs}})
	if got := back.Pairs[0]; got.Result != Worse || math.Abs(got.Overall.Value*p.Overall.Value-1) > 1e-9 || *got.Overall.P != *p.Overall.P {
		t.Errorf("the other way round: %+v", got.Overall)
	}
	for limit, want := range map[float64]bool{0: true, 0.05: true, 0.2: false} {
		if is, err := back.Pairs[0].Regressed(limit); err != nil || is != want {
			t.Errorf("worse by more than %v: %v, %v", limit, is, err)
		}
		if is, err := p.Regressed(limit); err != nil || is {
			t.Errorf("better is worse than %v: %v", limit, err)
		}
	}
	slow := compareTwo(t, two(b, a, 9), "p99")
	if is, err := slow.Pairs[0].Regressed(0.05); err != nil || !is {
		t.Errorf("p99 is %+v", slow.Pairs[0].Overall)
	}
}

func TestTooFewRuns(t *testing.T) {
	a := lot{r: rand.New(rand.NewPCG(3, 3)), noise: 0.01, factor: 1, steps: 2}
	b := a
	b.factor = 2
	one := compareTwo(t, two(a, b, 1))
	for _, code := range []string{"compare.too_few", "compare.too_few.single_runs", "compare.too_few.advice", "compare.method.none"} {
		if !fact.Has(one.Pairs[0].Facts, code) {
			t.Errorf("%q lacks %s", one.Pairs[0].Verdict, code)
		}
	}
	if p := one.Pairs[0]; p.Result != TooFew || p.Overall.P != nil || p.Overall.Low != nil || p.Steps[0].Metrics[0].P != nil {
		t.Errorf("%+v", p.Overall)
	}
	if _, err := one.Pairs[0].Regressed(0.05); err == nil {
		t.Error("one run each can be gated on")
	}
	three := compareTwo(t, two(a, b, 3))
	if p := three.Pairs[0]; p.Result != TooFew || !strings.Contains(p.Verdict, "With 3 against 3 runs no p can be below 0.10") {
		t.Error(p.Verdict)
	}
	if got := strings.Join(three.Warnings, "\n"); !strings.Contains(got, "3 runs of A against 3 of B: the smallest possible p is 0.10; "+
		"9 of each are recommended") {
		t.Error(got)
	}
	four := compareTwo(t, two(a, b, 4))
	if p := four.Pairs[0]; p.Result != Better || len(four.Warnings) != 2 {
		t.Errorf("4 against 4, twice as fast: %s; %q", p.Result, four.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	a := lot{r: rand.New(rand.NewPCG(4, 4)), noise: 0.01, factor: 1, steps: 3}
	groups := []Group{a.group("A", 5, func(i int) float64 { return float64(i) }, 10),
		a.group("B", 5, func(i int) float64 { return float64(5 + i) }, 10)}
	groups[0].Runs[1].Status = analysis.Invalid
	groups[0].Runs[2].Status = analysis.Suspect
	groups[1].Runs[0].Found.Curve = groups[1].Runs[0].Found.Curve[:2]
	groups[1].Runs[3].details["target"] = "http://elsewhere"
	groups[1].Runs[4] = groups[1].Runs[2]
	groups[1].Lose(fact.New("compare.missing.run", "dir", "x"))
	for _, r := range groups[1].Runs {
		r.details["weir"] = "2"
		for i := range r.Found.Curve {
			r.Found.Curve[i].Duration = 60
		}
		if len(r.Found.Curve) == 3 {
			r.Found.Curve = append(r.Found.Curve, analysis.Step{Step: 4, Clients: 77})
		}
	}
	c := compareTwo(t, groups)
	got := strings.Join(c.Warnings, "\n")
	for _, want := range []string{
		"A: 1 of 5 runs invalid (runs/A-1): the comparison uses results that are invalid",
		"A: 1 of 5 runs suspect (runs/A-2)", "x was not done", "the runs of B are not repetitions: target differs (not set, " +
			"http://elsewhere)",
		"run B-2 is in B twice", "runs/B-0 lacks 1 of 3 common steps", "all runs of one of A and B were done before the first of the other",
		"weir: 1 -> 2 (A -> B)", "steps were measured for 30 s in A and for 60 s in B", "excluded: 77 clients",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in:\n%s", want, got)
		}
	}
	if c.Status != analysis.Invalid || c.Pairs[0].Overall.RunsB != 4 || groups[1].Runs[0].Value != nil {
		t.Errorf("%s %+v", c.Status, c.Pairs[0].Overall)
	}
	for _, f := range c.Facts {
		if f.Code == "compare.property" && (f.Values["property"] != "weir" || f.Values["a"] != "A") {
			t.Errorf("%+v", f)
		}
	}
	same := compareTwo(t, []Group{groups[0], groups[0]})
	if !fact.Has(same.Facts, "compare.shared_run") {
		t.Error(same.Warnings)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	a := lot{r: rand.New(rand.NewPCG(5, 5)), factor: 1, steps: 1}
	g := a.group("A", 1, interleaved(0), 1)
	other := a.group("B", 1, interleaved(1), 1)
	other.Runs[0].Found.Curve[0].Clients = 99
	for want, try := range map[string]func() (*Comparison, error){
		"needs two":                  func() (*Comparison, error) { return Of([]Group{g}, Options{}) },
		"no run that can be":         func() (*Comparison, error) { return Of([]Group{g, {Name: "B"}}, Options{}) },
		`unknown metric "x"`:         func() (*Comparison, error) { return Of([]Group{g, g}, Options{Metrics: []string{"x"}}) },
		"A has 10 clients; B has 99": func() (*Comparison, error) { return Of([]Group{g, other}, Options{}) },
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	c := compareTwo(t, []Group{g, g}, "login")
	if !fact.Has(c.Facts, "compare.no_load") {
		t.Error(c.Verdicts)
	}
	c = compareTwo(t, []Group{g, other}, "knee", "p50")
	if len(c.Pairs[0].Steps) != 0 {
		t.Error("steps that are not common")
	}
}

// TestHostileFindings compares findings with invalid numbers, infinities, negative values and
// zeros.
func TestHostileFindings(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	values := []float64{0, -1, math.NaN(), math.Inf(1), 1e308, 5e-324, 1}
	for range 300 {
		a := lot{r: r, factor: 1, steps: 1 + r.IntN(4)}
		groups := two(a, a, 1+r.IntN(7))
		for _, g := range groups {
			for _, run := range g.Runs {
				f := run.Found
				for i := range f.Curve {
					s := &f.Curve[i]
					s.Throughput, s.ErrorRatio, s.Latency.P50 = values[r.IntN(7)], values[r.IntN(7)], values[r.IntN(7)]
					s.ServerCores, s.Moved = &values[r.IntN(7)], r.Int64N(2)
				}
				f.Optimum = &analysis.Optimum{Clients: r.IntN(3), Throughput: values[r.IntN(7)], Inside: true}
			}
		}
		c := compareTwo(t, groups, "throughput", "all")
		require.NoError(t, c.JSON(&strings.Builder{}))
	}
}

// TestExcludedStepsKeepTheirPlace checks that a step that does not count keeps its place: the
// second step of its load is not compared with the first step of that load in another run.
func TestExcludedStepsKeepTheirPlace(t *testing.T) {
	f := &analysis.Findings{Curve: []analysis.Step{{Step: 1, Clients: 8, Excluded: "outage"}, {Step: 2, Clients: 16}, {Step: 3, Clients: 8}}}
	by, order := steps(f)
	first, second := by[load{clients: 8, again: 1}], by[load{clients: 8, again: 2}]
	if len(order) != 2 || first != nil || second == nil || second.Step != 3 {
		t.Errorf("%+v", order)
	}
}
