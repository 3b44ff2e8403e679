package validity

import (
	"testing"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

func TestLittlesLawJudges(t *testing.T) {
	for little, want := range map[float64]struct{ status, code string }{
		1.04: {OK, ""}, 1.1: {Warn, "check.little.overlapping"}, 1.2: {Fail, "check.little.overlapping"},
		0.96: {OK, ""}, 0.9: {Warn, "check.little.delayed_operations"}, 0.8: {Fail, "check.little.delayed_operations"},
	} {
		if status, why := judgeLittle(&steps.Working{Figures: &steps.Figures{Little: &little}}); status != want.status ||
			fact.Has(why, want.code) != (want.code != "") {
			t.Errorf("%g: %s, %v; want %s, %q", little, status, why, want.status, want.code)
		}
	}
}
