package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// scaled makes a run of s in which each second's rate is multiplied by a factor; the waiting time
// of clients grows accordingly.
func scaled(s resultstest.Service, factor func(iv *measure.Interval) float64) resultstest.Service {
	s.Interval = func(iv *measure.Interval) {
		x := factor(iv)
		iv.Done = int64(math.Round(float64(iv.Done) * x))
		iv.Tasks, iv.Begun, iv.Moved, iv.Wire = iv.Done, iv.Done, iv.Done*s.File, iv.Done*(s.File+300)
		iv.Latency = measure.Histogram{}
		for range iv.Done {
			iv.Latency.Record(time.Duration(iv.Clients / float64(iv.Done) * 1e9))
		}
	}
	return s
}

// TestAStepThatChangesIsNotSteady checks that a change within a step, such as a cache that no
// longer holds the files or additional capacity, is detected in that step, however late it is.
func TestAStepThatChangesIsNotSteady(t *testing.T) {
	for _, after := range []time.Duration{3 * time.Second, 5 * time.Second, 8 * time.Second} {
		for _, factor := range []float64{0.4, 2} {
			s := flat()
			s.Duration, s.Lambda = 10, 100
			from := stepAt(&s, 2).Add(after)
			f := of(t, scaled(s, func(iv *measure.Interval) float64 {
				if iv.Start.Before(from) {
					return 1
				}
				return factor
			}))
			if c := find(t, f, "steadiness"); c.Status != Warn || !strings.Contains(c.Detail, "4 clients") {
				t.Errorf("%v after %v: %+v", factor, after, c)
			}
		}
	}
}

// TestACreepThroughAllSteps checks a service that gets slower, or faster, by the second: it changes
// little in each step, but all steps together show it. A service that is fast at the beginning of
// each step, as with a cache for writes, does not continue to change.
func TestACreepThroughAllSteps(t *testing.T) {
	for name, c := range map[string]struct {
		factor func(sinceRun, sinceStep float64) float64
		warns  bool
	}{
		"1% a second slower":   {func(run, _ float64) float64 { return math.Exp(-0.01 * run) }, true},
		"0.7% a second faster": {func(run, _ float64) float64 { return math.Exp(0.007 * run) }, true},
		"level":                {func(_, _ float64) float64 { return 1 }, false},
		"bursts":               {func(_, step float64) float64 { return 1 + 0.06*math.Exp(-step/1.5) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, noise := range []float64{0.01, 0.03} {
				s := resultstest.Typical()
				s.Clients, s.Duration, s.Noise = []int{1, 2, 4, 8, 16}, 10, noise
				begin := resultstest.Start()
				f := of(t, scaled(s, func(iv *measure.Interval) float64 {
					return c.factor(iv.Start.Sub(begin).Seconds(), max(0, iv.Start.Sub(stepAt(&s, iv.Step-1)).Seconds()))
				}))
				check := find(t, f, "steadiness")
				if warns := fact.Has(check.Facts, "check.steadiness.creeping"); warns != c.warns || warns != (check.Status == Warn) {
					t.Errorf("noise %g: %+v", noise, check)
				}
			}
		})
	}
}

// TestBrokenServiceOnTheWayDown checks a service that broke down at the heaviest load and stays
// broken: its curve is its yield on the way up.
func TestBrokenServiceOnTheWayDown(t *testing.T) {
	s := flat()
	s.Clients, s.Duration = []int{1, 2, 4, 8, 16, 32, 16, 4}, 8
	f := of(t, scaled(s, func(iv *measure.Interval) float64 {
		if iv.Step >= 6 {
			return 0.1
		}
		return 1
	}))
	if o := f.Optimum; o == nil || o.Clients != 16 || !o.Inside || f.Fits == nil || len(f.Curve) != 8 {
		t.Errorf("%+v of %d steps, fits %+v", o, len(f.Curve), f.Fits)
	}
	if r := concluding(f).returned(); r == nil || r.Change > -0.85 || fact.Find(f.Facts, "verdict.down").Code == "" {
		t.Errorf("%+v\n%s", f.Hysteresis, f.Verdict)
	}
}

// TestSearchHasNoWayDown checks that the curve of a search is in the order of load, that steps below
// the heaviest step count like all others, and that a load that is held again is no way down.
func TestSearchHasNoWayDown(t *testing.T) {
	for _, clients := range [][]int{{1, 2, 4, 8, 16, 32}, {1, 2, 4, 8, 16, 32, 12}, {1, 2, 4, 8, 16, 32, 20, 12, 8}, {1, 4, 32, 8, 16, 2}} {
		s := flat()
		s.Search, s.Clients, s.Duration = true, clients, 8
		f := of(t, scaled(s, func(iv *measure.Interval) float64 {
			if iv.Step == 9 {
				return 0.3
			}
			return 1
		}))
		var got []int
		for i := range f.Curve {
			got = append(got, f.Curve[i].Clients)
		}
		if !slices.Equal(got, slices.Sorted(slices.Values(clients))) {
			t.Errorf("%v: the curve has %v", clients, got)
		}
		if len(f.Hysteresis) > 0 || fact.Find(f.Facts, "verdict.down").Code != "" {
			t.Errorf("%v: %+v\n%s", clients, f.Hysteresis, f.Verdict)
		}
		repeated := fact.Has(find(t, f, "steadiness").Facts, "check.steadiness.repeated")
		if repeated != (len(clients) == 9) {
			t.Errorf("%v: a load gave another result when it was held again: %v", clients, repeated)
		}
	}
}

// TestLoadsThatChangeWhenTheyAreHeldAgain checks that a load with a much lower yield when it is
// held again shows that the service changed; noise does not.
func TestLoadsThatChangeWhenTheyAreHeldAgain(t *testing.T) {
	s := flat()
	s.Clients, s.Duration = []int{1, 4, 8, 1, 4, 8}, 8
	for _, left := range []float64{1, 0.97, 0.6} {
		f := of(t, scaled(s, func(iv *measure.Interval) float64 {
			if iv.Step == 5 {
				return left
			}
			return 1
		}))
		c := find(t, f, "steadiness")
		changed := left < 0.9
		if (c.Status == Warn) != changed || changed && !shows(&c, "4 clients gave another result when it was held again: -40") {
			t.Errorf("%v is left: %+v", left, c)
		}
	}
}

// TestExcludedStepsAreNotJudgedAgain checks that a step that does not count is not used as other
// evidence against the run.
func TestExcludedStepsAreNotJudgedAgain(t *testing.T) {
	s := flat()
	s.Interval = away(stepAt(&s, 2).Add(-4*time.Second), 2*time.Second, storage.None) // to the end of the second step
	f := of(t, s)
	if f.Curve[1].Excluded == "" || find(t, f, "Little's law").Status != OK || find(t, f, "steadiness").Status != OK {
		t.Errorf("%+v", f.Validity.Checks)
	}
}

// TestOutageOutsideOfMeasurements checks that an outage between the measurement times excludes no
// step, and that no text mentions an exclusion.
func TestOutageOutsideOfMeasurements(t *testing.T) {
	s := flat()
	s.Interval = away(stepAt(&s, 2).Add(-2*time.Second), 2*time.Second, storage.Refused)
	f := of(t, s)
	if c := find(t, f, "availability"); len(f.curve().Excluded()) != 0 || c.Status != Warn || fact.Has(c.Facts, "excluded.step") {
		t.Errorf("%d steps excluded: %+v", len(f.curve().Excluded()), c)
	}
}

// TestLoadsThatFailAreNotSaidToGiveLess checks that loads at which too many operations fail are not
// compared: no text mentions their yield.
func TestLoadsThatFailAreNotSaidToGiveLess(t *testing.T) {
	s := flat()
	s.Clients = []int{1, 2, 4, 8, 16}
	s.Interval = func(iv *measure.Interval) {
		if iv.Step == 5 {
			iv.Failed = map[storage.Class]int64{storage.Timeout: iv.Done / 4}
		}
	}
	if f := of(t, s); fact.Find(f.Facts, "verdict.less.above").Code != "" || fact.Find(f.Facts, "verdict.beyond.fails").Code == "" {
		t.Error(f.Verdict)
	}
}

// TestWhatGrowsDoesNotLevelOff checks that no text claims that a growing curve levels off.
func TestWhatGrowsDoesNotLevelOff(t *testing.T) {
	s := flat()
	s.Clients, s.Sigma, s.Kappa = []int{2, 32}, 0.1, 0
	f := of(t, s)
	if f.Facts[0].Code != "verdict.peak.growing" || fact.Find(limits.LimitFacts(f.curve(), f.Bottleneck), "limit.levels").Code != "" {
		t.Errorf("%s\n%s", f.Verdict, f.LimitText())
	}
}

// TestALongStallAmongShortOnes checks that a long stall is an outage even if the service also
// stalls for short times.
func TestALongStallAmongShortOnes(t *testing.T) {
	s := flat()
	s.Clients, s.Duration = []int{1, 2, 4, 8, 16}, 8
	s.Interval = func(iv *measure.Interval) {
		length := 1200 * time.Millisecond
		if iv.Step == 3 {
			length = 5 * time.Second
		}
		if iv.Step < 5 {
			away(stepAt(&s, iv.Step-1).Add(1500*time.Millisecond), length, storage.None)(iv)
		}
	}
	f := of(t, s)
	if len(f.Outages) != 4 || len(f.curve().Excluded()) != 1 || f.Curve[2].Excluded == "" {
		t.Errorf("%d stalls, %d steps excluded", len(f.Outages), len(f.curve().Excluded()))
	}
}
