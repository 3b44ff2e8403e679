package analysis

import (
	"strings"
	"testing"
	"time"

	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// The heaviest load tested fills the link: more load gives nothing, which needs no heavier step to be known. While the link has room,
// or another link has, it is not known.
func TestHeaviestLoadFillsTheLink(t *testing.T) {
	for _, c := range []struct {
		busy, other float64
		want        string
	}{{0.99, 0.99, "Peak "}, {0.9, 0.9, "At least "}, {0.99, 0.2, "At least "}} {
		s := resultstest.Typical()
		s.Clients = []int{1, 4}
		s.MoreSamples = func(end time.Time, step int) []*monitor.Sample {
			share := float64(step) / 2
			return []*monitor.Sample{
				resultstest.LinkSample("link far", step, end, share*c.busy, 0), resultstest.LinkSample("link near", step, end, share*c.other, 0),
			}
		}
		f := of(t, s)
		if grows := strings.Contains(f.Verdict, "still grows"); !strings.HasPrefix(f.Headline, c.want) || grows != (c.want == "At least ") {
			t.Errorf("links %v and %v full: %s", c.busy, c.other, f.Verdict)
		}
	}
}
