package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// cell makes a run with these levels, of the given error ratio and throughput.
func cell(block int, levels map[string]string, ratio, throughput float64) *Run {
	f := &analysis.Findings{Run: fmt.Sprint(block, levels), Measure: analysis.Throughput, Model: "closed",
		Validity: analysis.Validity{Status: analysis.Valid},
		Curve:    []analysis.Step{{Step: 1, Clients: 1, Duration: 1, ErrorRatio: ratio, Done: 1, Throughput: throughput, Moved: 1}}}
	return NewRun("x", results.About{}, &scenario.Plan{}, f).Of("campaign", block, levels)
}

// variants makes a group of each combination of levels, as a campaign does.
func variants(factors []Factor) []Group {
	groups := []Group{{Name: "v", Levels: map[string]string{}}}
	for _, f := range factors {
		var next []Group
		for _, g := range groups {
			for _, level := range f.Levels {
				levels := map[string]string{f.Key: level}
				for k, v := range g.Levels {
					levels[k] = v
				}
				next = append(next, Group{Name: g.Name + "-" + level, Levels: levels})
			}
		}
		groups = next
	}
	return groups
}

// The pilot plant of Box, Hunter and Hunter (Statistics for Experimenters, 2nd
// edition, 5.2 to 5.8): yield by temperature, concentration and catalyst, two
// runs of each. Effects: T 23, C -5, K 1.5, each with a standard error of 1.4 from 8
// degrees of freedom; half the interaction of T and K is 10, of T and C 1.5, of C and K 0.
func TestPilotPlant(t *testing.T) {
	factors := []Factor{{"K", []string{"A", "B"}}, {"C", []string{"20", "40"}}, {"T", []string{"160", "180"}}}
	yields := [][2]float64{{59, 61}, {74, 70}, {50, 58}, {69, 67}, {50, 54}, {81, 85}, {46, 44}, {79, 81}}
	groups := variants(factors)
	for i := range groups {
		for _, y := range yields[i] {
			groups[i].Runs = append(groups[i].Runs, cell(1, groups[i].Levels, y, 1))
		}
	}
	c, err := Of(groups, Options{Metrics: []string{"error_ratio"}, Factors: factors})
	require.NoError(t, err)
	e := c.Effects
	if e.Degrees != 8 || len(e.Main) != 3 || len(e.Interactions) != 3 {
		t.Fatalf("%+v", e)
	}
	for i, want := range []float64{1.5, -5, 23} {
		x := e.Main[i]
		if math.Abs(x.Value-want) > 1e-9 || math.Abs(*x.High-*x.Low-2*2.306*math.Sqrt2) > 0.01 {
			t.Errorf("%s: %v (%v to %v), want %v +- 3.26", x.Factor, x.Value, *x.Low, *x.High, want)
		}
	}
	if e.Main[2].Result != Worse || e.Main[1].Result != Better || e.Main[0].Result != NotShown { // of errors less is better
		t.Errorf("%+v", e.Main)
	}
	want := map[string]float64{"K-T": 20, "C-T": 3, "K-C": 0}
	for i, x := range e.Interactions {
		name := x.Factor + "-" + x.With.Factor
		if math.Abs(x.Value-want[name]) > 1e-9 {
			t.Errorf("interaction %s: %v, want %v", name, x.Value, want[name])
		}
		if notable := x.Result == Different; notable != (name == "K-T") || notable && i != 0 {
			t.Errorf("interaction %s: %s, at %d", name, x.Result, i)
		}
	}
}

// TestEffectsOfMatrix checks that effects multiply if they are ratios, that blocks cancel out, and
// that intervals contain the true value, even if runs are missing.
func TestEffectsOfMatrix(t *testing.T) {
	tier.Slow(t, "repeats a comparison many times")
	r := rand.New(rand.NewPCG(21, 21))
	factors := []Factor{{"auth.method", []string{"none", "krb5"}}, {"workload.chunk", []string{"1MiB", "8MiB", "64MiB"}}}
	truth := map[string]float64{"krb5": 0.8, "8MiB": 1.5, "64MiB": 1}
	const times = 1000
	held, looks, false64 := 0, 0, 0
	for range times {
		groups := variants(factors)
		for b := range 5 {
			level := math.Exp(r.NormFloat64()) // blocks differ by far more than the noise
			for i := range groups {
				if r.IntN(10) == 0 {
					continue // was not done
				}
				y := 1e9 * level * math.Exp(0.03*r.NormFloat64())
				for _, l := range groups[i].Levels {
					if f, ok := truth[l]; ok {
						y *= f
					}
				}
				groups[i].Runs = append(groups[i].Runs, cell(b+1, groups[i].Levels, 0, y))
			}
		}
		c, err := Of(groups, Options{Metrics: []string{"throughput"}, Factors: factors})
		require.NoError(t, err)
		for _, x := range c.Effects.Main {
			looks++
			if want := truth[x.Level]; *x.Low <= want && want <= *x.High {
				held++
			}
			if x.Level == "64MiB" && x.Result != NotShown && x.Result != Alone {
				false64++
			}
			if x.Level == "8MiB" && x.Result != Better || x.Level == "krb5" && x.Result != Worse {
				t.Fatalf("%+v", x)
			}
		}
	}
	if share := float64(held) / float64(looks); share < 0.93 || share > 0.97 {
		t.Errorf("intervals held the truth in %.1f%%", 100*share)
	}
	if share := float64(false64) / times; share > 0.07 {
		t.Errorf("no effect is called one in %.1f%%", 100*share)
	}
}

func TestEffectsOfLittle(t *testing.T) {
	factors := []Factor{{"a", []string{"1", "2"}}, {"b", []string{"1", "2"}}, {"c", []string{"only"}}}
	once := variants(factors)
	for i := range once {
		once[i].Runs = []*Run{cell(1, once[i].Levels, 0, float64(i+1))}
	}
	c, err := Of(once, Options{Factors: factors, Metrics: []string{"throughput"}})
	require.NoError(t, err)
	if e := c.Effects; e.Degrees != 0 || len(e.Main) != 2 || e.Main[0].Low != nil || !fact.Has(e.Facts, "compare.effect.no_noise") ||
		e.Main[0].Result != TooFew || c.Pairs[0].Result != TooFew {
		t.Errorf("%+v\n%q", e, c.Verdicts)
	}
	if !fact.Has(c.Facts, "compare.effect.too_few") {
		t.Errorf("%q", c.Verdicts)
	}
	// A broken off campaign: two variants in different blocks share no block.
	part := []Group{{Name: "x", Levels: once[0].Levels, Runs: []*Run{cell(1, once[0].Levels, 0, 1)}},
		{Name: "y", Levels: once[1].Levels, Runs: []*Run{cell(2, once[1].Levels, 0, 2)}}}
	if c, err = Of(part, Options{Factors: factors, Metrics: []string{"throughput"}}); err != nil || len(c.Effects.Main) != 0 {
		t.Errorf("%v %+v", err, c.Effects)
	}
}

// TestSeveralGroups checks that each verdict on one of several groups is corrected for the others.
func TestSeveralGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 31))
	a := lot{r: r, noise: 0.03, factor: 1, steps: 2}
	groups := []Group{a.group("A", 9, interleaved(0), 1800)}
	for _, name := range []string{"B", "C", "D"} {
		groups = append(groups, a.group(name, 9, interleaved(1), 1800))
	}
	c := compareTwo(t, groups)
	if len(c.Pairs) != 3 || len(c.Verdicts) != 3 || !strings.Contains(c.Verdicts[0], "corrected for 3 comparisons") {
		t.Errorf("%q", c.Verdicts)
	}
	for _, p := range c.Pairs {
		if *p.Overall.Adjusted < *p.Overall.P {
			t.Errorf("%v is corrected to %v", *p.Overall.P, *p.Overall.Adjusted)
		}
	}
}
