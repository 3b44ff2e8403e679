package analysis

import (
	"testing"
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// The heaviest load tested fills the link: more load gives nothing, which needs no heavier step to be known. While the link has room,
// or another link has, it is not known.
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
