package validity

import (
	"strings"
	"testing"

	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// heldFor returns the step of a hold with a rate for each of its seconds.
func heldFor(rate func(i int) float64, seconds int) *steps.Working {
	t := &steps.Total{}
	for i := range seconds {
		moved := int64(rate(i))
		t.Seconds = append(t.Seconds, steps.Second{Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 8, Moved: moved})
		t.Moved += moved
		t.Span++
	}
	return (&steps.Run{Plan: &scenario.Plan{}}).Step(t)
}

// TestSteadinessCannotBeTold checks that a step is not called steady if its throughput varies so
// much that a large drift could be hidden in it.
func TestSteadinessCannotBeTold(t *testing.T) {
	noise := []float64{8e6, 2e6, 9e6, 3e6, 1e6, 8e6, 2e6, 7e6}
	curve := &steps.Curve{Measure: steps.Throughput, Steps: []*steps.Working{heldFor(func(i int) float64 { return noise[i] }, len(noise))}}
	if s := curve.Steps[0]; s.Steady != nil || s.SteadyPart != nil || s.Drift == nil {
		t.Errorf("steady %v, drift %v, steady part %+v", s.Steady, s.Drift, s.SteadyPart)
	}
	if c := checkSteady(curve); c.Status != Skipped || len(c.notes) != 1 {
		t.Errorf("check %+v", c)
	}
	curve.Steps = append(curve.Steps, heldFor(func(i int) float64 { return 1e6 + float64(i%3) }, 8))
	if c := checkSteady(curve); c.Status != OK || len(c.notes) != 1 {
		t.Errorf("check beside a step that can be judged: %+v", c)
	}
}

// TestBurstsAreNotSteady checks that a service with saved credit is not steady, as it falls to its
// permitted rate only after the credit is spent, even if the measured seconds are few: as measured.
func TestBurstsAreNotSteady(t *testing.T) {
	for want, burst := range map[string][]float64{
		"8 clients -86": {48e6, 26.5e6, 5e6, 5e6, 5e6, 5e6, 5e6, 5.1e6}, "8 clients -96.8": {1541e6, 49.9e6, 50.1e6, 49.9e6, 50e6}} {
		curve := &steps.Curve{Measure: steps.Throughput, Steps: []*steps.Working{heldFor(func(i int) float64 { return burst[i] }, len(burst))}}
		if c := checkSteady(curve); c.Status != Warn || !strings.Contains(c.Detail, want) {
			t.Errorf("%v: %+v; want %s", burst, c, want)
		}
	}
}

func TestSteadinessTellsOfWarmUp(t *testing.T) {
	stair := func(i int) float64 {
		if i < 20 {
			return 5e5
		}
		return 1e6 + float64(i%3)
	}
	slow := []float64{3.8e6, 13.3e6, 19.8e6, 26.4e6, 33e6, 38.9e6, 40.1e6, 39.9e6} // as measured
	for _, c := range []struct {
		rate func(i int) float64
		n    int
		mean float64
	}{{stair, 60, 833e3}, {func(i int) float64 { return slow[i] }, len(slow), 26.9e6}} {
		curve := &steps.Curve{Measure: steps.Throughput, Steps: []*steps.Working{heldFor(c.rate, c.n)}}
		curve.Steps[0].Throughput = c.mean
		if c := checkSteady(curve); c.Status != Warn || c.Detail == "" {
			t.Errorf("check %+v", c)
		} else {
			t.Log(c.Detail)
		}
	}
}

// TestSuperlinearGrowth checks that a higher throughput of each client in a heavier step is not
// attributed to the load if it is higher by half or more, beyond the intervals.
func TestSuperlinearGrowth(t *testing.T) {
	step := func(number, clients int, mean, half float64) steps.Figures {
		low, high, steady, drift := mean-half, mean+half, true, 0.0
		return steps.Figures{Step: number, Clients: clients, ActiveClients: float64(clients), Done: 1000, Operations: mean / 1e6,
			Throughput:    mean,
			ThroughputLow: &low, ThroughputHigh: &high, Steady: &steady, Drift: &drift}
	}
	for name, c := range map[string]struct {
		curve  []steps.Figures
		detail string
	}{
		"a cache fills": {[]steps.Figures{step(1, 1, 10e6, 2e6), step(2, 4, 200e6, 5e6)}, "4 clients had 20.0 times"},
		"and only later": {[]steps.Figures{step(1, 1, 10e6, 2e6), step(2, 4, 40e6, 5e6), step(3, 16, 900e6, 5e6)},
			"16 clients had 90.0"},
		"linear":                     {[]steps.Figures{step(1, 1, 10e6, .1e6), step(2, 4, 40e6, .1e6)}, "no significant drift"},
		"idle cores":                 {[]steps.Figures{step(1, 1, 10e6, .1e6), step(2, 4, 55e6, .1e6)}, "no significant drift"},
		"slow cores":                 {[]steps.Figures{step(1, 1, 1e10, 1e6), step(2, 4, 1e11, 1e6)}, "no significant drift"},
		"too noisy to tell":          {[]steps.Figures{step(1, 1, 10e6, 9e6), step(2, 4, 80e6, 5e6)}, "no significant drift"},
		"the lighter one came later": {[]steps.Figures{step(2, 1, 10e6, .1e6), step(1, 4, 200e6, 5e6)}, "no significant drift"},
	} {
		got := checkSteady(steps.CurveOf(c.curve, "", "", false))
		if warns := got.Status == Warn; warns != strings.Contains(c.detail, "had") || !strings.HasPrefix(got.Detail, c.detail) {
			t.Errorf("%s: %s, %q, want %q", name, got.Status, got.Detail, c.detail)
		}
	}
}
