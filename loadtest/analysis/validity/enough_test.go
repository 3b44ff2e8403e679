package validity

import (
	"testing"

	"weir/loadtest/analysis/steps"
)

// TestMoreJobsAreAdvised checks that the advice for a step that ends with its last job is not to
// measure longer.
func TestMoreJobsAreAdvised(t *testing.T) {
	if advice := longer(&steps.Working{Figures: &steps.Figures{}, Bounded: true}); advice.Code != "remedy.more_jobs" {
		t.Error(advice)
	}
}
