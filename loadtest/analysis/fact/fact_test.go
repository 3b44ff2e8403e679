package fact_test

import (
	"testing"

	"weir/loadtest/analysis/fact"
)

func TestText(t *testing.T) {
	t.Parallel()
	f := fact.New("check.errors.failed", "failed", int64(3), "ended", 120, "share", 0.025)
	if f.Text != "3 of 120 operations failed (2.5%)" {
		t.Errorf("%q", f.Text)
	}
}
