package validity

import (
	"testing"

	"weir/loadtest/analysis/steps"
)

// A step that ends with its last job is not measured for longer.
func TestMoreJobsAreAdvised(t *testing.T) {
	if advice := longer(&steps.Working{Figures: &steps.Figures{}, Bounded: true}); advice.Code != "remedy.more_jobs" {
		t.Error(advice)
	}
}
