package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
)

// TestNoPeakCanBeNamed checks that a result whose interval contains zero is not a peak, for one
// load and for several: headline, check and JSON agree.
func TestNoPeakCanBeNamed(t *testing.T) {
	for name, c := range map[string]struct {
		clients []int
		swing   bool // between nothing and twice as much
		want    string
	}{
		"several loads, noisy": {[]int{1, 2, 64}, true, "verdict.peak.unclear"},
		"one load, noisy":      {[]int{8}, true, "verdict.peak.unclear.only"},
		"several loads":        {[]int{1, 2, 64}, false, "verdict.peak.growing"},
	} {
		s := resultstest.Typical()
		s.Clients, s.Duration = c.clients, 6
		seconds := 0
		s.Interval = func(iv *measure.Interval) {
			if seconds++; c.swing && seconds%3 > 0 {
				iv.Moved, iv.Wire = 0, 0
			}
		}
		f := of(t, s)
		if f.Facts[0].Code != c.want || f.Optimum.Unclear != c.swing {
			t.Errorf("%s: %q, unclear %v", name, f.Headline, f.Optimum.Unclear)
		}
		if got := find(t, f, "enough data"); c.swing && (got.Status != Warn || !fact.Has(got.Facts, "effect.no_peak")) ||
			!c.swing && got.Status != OK {
			t.Errorf("%s: %+v", name, got)
		}
		b, err := json.Marshal(f.Optimum)
		require.NoError(t, err)
		if strings.Contains(string(b), `"unclear":true`) != c.swing {
			t.Errorf("%s: %s", name, b)
		}
	}
}
