package steps

import (
	"testing"

	"weir/loadtest/scenario"
)

// Closing sessions is a part of the clients' time: of 8 clients for 5 s, 15% here.
func TestLittlesLawKnowsClosingSessions(t *testing.T) {
	d := &Run{Plan: &scenario.Plan{}}
	s := &Working{Figures: &Figures{Duration: 5, ActiveClients: 8, Done: 10_000}, BusySeconds: 34, closingSeconds: 6}
	if n := d.little(s); n == nil || *n != 1 {
		t.Errorf("%v of the clients' time is explained, want all", n)
	}
}

// The time of an operation counts while it is in progress: few long operations are as good as many.
// Pauses count at their start.
func TestLittlesLawNeedsManyPauses(t *testing.T) {
	d := &Run{Plan: &scenario.Plan{}}
	for name, c := range map[string]struct {
		s      Working
		judged bool
	}{
		"one long operation each": {Working{Figures: &Figures{Duration: 5, ActiveClients: 8, Done: 8}, BusySeconds: 40}, true},
		"none ended":              {Working{Figures: &Figures{Duration: 5, ActiveClients: 8}, BusySeconds: 40}, true},
		"few pauses":              {Working{Figures: &Figures{Duration: 5, ActiveClients: 8, Done: 8}, BusySeconds: 20, ThinkSeconds: 20}, false},
		"many pauses": {Working{Figures: &Figures{Duration: 5, ActiveClients: 8, Done: 160}, BusySeconds: 20,
			ThinkSeconds: 20}, true},
		"not recorded": {Working{Figures: &Figures{Duration: 5, ActiveClients: 8, Done: 160}, LatencySeconds: 40}, false},
	} {
		if n := d.little(&c.s); (n != nil) != c.judged || n != nil && *n != 1 {
			t.Errorf("%s: %v, judged: want %v", name, n, c.judged)
		}
	}
}
