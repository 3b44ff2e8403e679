package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest/keys"
	"weir/loadtest/scenario"
)

func repetitions(values ...float64) Group {
	g := Group{Name: "again"}
	for i, v := range values {
		g.Runs = append(g.Runs, &Run{Dir: fmt.Sprintf("%03d-a", i+1), Name: fmt.Sprint(i), Status: analysis.Valid, Found: &analysis.Findings{
			Measure: analysis.Throughput, Curve: []analysis.Step{
				{Step: 1, Clients: 4, Duration: 10, Throughput: v / 2, Moved: 100, Done: 10, Operations: v},
				{Step: 2, Clients: 8, Duration: 10, Throughput: v, ThroughputLow: new(v * 0.9), ThroughputHigh: new(v * 1.1), Moved: 100, Done: 10,
					Operations: v},
			},
		}})
	}
	return g
}

func TestRepeat(t *testing.T) {
	r, err := Repeat(repetitions(10e6, 12e6, 14e6), nil)
	require.NoError(t, err)
	if len(r.Steps) != 2 || r.Steps[1].Clients != 8 || r.Status != analysis.Valid {
		t.Fatalf("%+v", r)
	}
	// 4.302653 is Student's point for two degrees of freedom, 2 the deviation.
	half := 4.302653 * 2e6 / math.Sqrt(3)
	want := Across{Metric: "throughput", Values: []float64{10e6, 12e6, 14e6}, Mean: 12e6, Low: new(12e6 - half), High: new(12e6 + half),
		Scatter: new(2.0 / 12), Within: new(0.1)}
	if d := cmp.Diff(&want, r.Steps[1].Metric("throughput"), cmpopts.EquateApprox(1e-6, 0)); d != "" {
		t.Error(d)
	}
	if w := "Over 3 runs, the throughput at 8 clients is 96.0 Mbit/s. The 95% interval from run to run is "; !strings.HasPrefix(r.Verdict, w) {
		t.Error(r.Verdict)
	}
	if *r.Runs[2].Value < *r.Runs[0].Value {
		t.Error("the runs' own numbers are wrong")
	}
	if !fact.Has(r.Facts, "compare.repetitions.few") {
		t.Errorf("%q", r.Warnings)
	}
	var b strings.Builder
	if err := r.JSON(&b); err != nil || !strings.Contains(b.String(), `"scatter_ratio": 0.16`) {
		t.Error(err, b.String())
	}
}

func TestRepeatBadInput(t *testing.T) {
	if _, err := Repeat(Group{}, nil); err == nil {
		t.Error("no runs are summed up")
	}
	if _, err := Repeat(repetitions(1), []string{"thruput"}); err == nil || !strings.Contains(err.Error(), "thruput") {
		t.Error(err)
	}
	for name, g := range map[string]Group{
		"one": repetitions(5e6), "equal": repetitions(5e6, 5e6), "zero": repetitions(0, 0, 0), "NaN": repetitions(math.NaN(), 1),
		"infinite": repetitions(math.Inf(1), math.Inf(-1)), "huge": repetitions(math.MaxFloat64, math.MaxFloat64),
		"far apart": repetitions(1e-300, 1e90),
		"no steps":  {Runs: []*Run{{Found: &analysis.Findings{}}, {Found: &analysis.Findings{}}}},
	} {
		r, err := Repeat(g, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Verdict == "" || strings.Contains(r.Verdict, "NaN") || strings.Contains(r.Verdict, "Inf") {
			t.Errorf("%s: %s", name, r.Verdict)
		}
		for _, s := range r.Steps {
			for _, a := range s.Metrics {
				if a.Low != nil && !(0 <= *a.Low && *a.Low <= a.Mean && a.Mean <= *a.High) {
					t.Errorf("%s: %+v, low %v, high %v", name, a, *a.Low, *a.High)
				}
			}
		}
	}
}

// TestRepeatCovers checks that the interval covers the true value in the intended share of cases,
// and that docs/methods.md has the measured share.
func TestRepeatCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	const campaigns, truth = 4000, 1e8
	covered := 0
	for range campaigns {
		g := Group{}
		for range 5 {
			v := truth * (1 + 0.03*r.NormFloat64())
			g.Runs = append(g.Runs, &Run{Found: &analysis.Findings{Measure: analysis.Throughput,
				Curve: []analysis.Step{{Clients: 1, Throughput: v, Moved: 1}}}})
		}
		all, err := Repeat(g, []string{"throughput"})
		require.NoError(t, err)
		if a := all.Steps[0].Metrics[0]; *a.Low <= truth && truth <= *a.High {
			covered++
		}
	}
	share := float64(covered) / campaigns
	if math.Abs(share-0.95) > 0.01 { // 0.0034 is a standard deviation
		t.Errorf("covered in %v of the cases", share)
	}
	page := require.File(t, "../../../docs/methods.md")
	if want := fmt.Sprintf("covered the truth in %.1f%% of the cases", 100*share); !strings.Contains(string(page), want) {
		t.Errorf("docs/methods.md does not say: %s", want)
	}
}

func TestRepeatedKeys(t *testing.T) {
	keys.Compare(t, "../../../docs/results.md", "repeated.json", Repeated{}, RepeatedStep{}, Across{})
}

// TestRunsOfAVariantAreRepetitions checks that runs of a campaign are repetitions although the
// built-in server has another port in each run, if they belong to one variant.
func TestRunsOfAVariantAreRepetitions(t *testing.T) {
	g := Group{Name: "kept"}
	for i, target := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2"} {
		f := &analysis.Findings{Run: target, Target: target, Measure: analysis.Throughput,
			Curve: []analysis.Step{{Clients: 1, Throughput: 1e6, Moved: 1}}}
		g.Runs = append(g.Runs, NewRun(target, results.About{}, &scenario.Plan{Target: target}, f).Of("c", i+1,
			map[string]string{"session": "kept"}))
	}
	if w := g.inconsistencies(); len(w) > 0 {
		t.Error(w)
	}
	g.Runs[1].Levels = map[string]string{"session": "fresh"}
	if w := g.inconsistencies(); len(w) != 1 || w[0].Code != "compare.no_repetitions" || w[0].Values["property"] != "target" {
		t.Errorf("%+v", w)
	}
}
