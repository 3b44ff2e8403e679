package validity

import (
	"strings"
	"testing"

	"weir/loadtest/analysis/steps"
)

func TestLittlesLawJudges(t *testing.T) {
	for little, want := range map[float64]struct{ status, why string }{
		1.04: {OK, ""}, 1.1: {Warn, "overlapped"}, 1.2: {Fail, "overlapped"},
		0.96: {OK, ""}, 0.9: {Warn, "delayed them"}, 0.8: {Fail, "delayed them"},
	} {
		if status, why := judgeLittle(&steps.Working{Figures: &steps.Figures{Little: &little}}); status != want.status ||
			!strings.Contains(why, want.why) {
			t.Errorf("%g: %s, %q; want %s, %q", little, status, why, want.status, want.why)
		}
	}
}
