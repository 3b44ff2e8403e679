package analysis

import (
	"testing"
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// TestHeaviestLoadFillsTheLink checks the heaviest load tested if it fills the link: more load
// cannot increase the throughput, which is known without a heavier step. It is unknown while the
// link has capacity left, or another link has.
func TestHeaviestLoadFillsTheLink(t *testing.T) {
	for _, c := range []struct {
		busy, other float64
		want        string
	}{{0.99, 0.99, "verdict.peak"}, {0.9, 0.9, "verdict.peak.growing"}, {0.99, 0.2, "verdict.peak.growing"}} {
		s := resultstest.Typical()
		s.Clients = []int{1, 4}
		s.MoreSamples = func(end time.Time, step int) []*monitor.Sample {
			share := float64(step) / 2
			return []*monitor.Sample{
				resultstest.LinkSample("link far", step, end, share*c.busy, 0), resultstest.LinkSample("link near", step, end, share*c.other, 0),
			}
		}
		f := of(t, s)
		grows := fact.Find(f.Facts, "verdict.beyond.grows").Code != ""
		if f.Facts[0].Code != c.want || grows != (c.want == "verdict.peak.growing") {
			t.Errorf("links %v and %v full: %s", c.busy, c.other, f.Verdict)
		}
	}
}
