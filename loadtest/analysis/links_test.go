package analysis

import (
	"strings"
	"testing"
	"time"

	"weir/link"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// linked is a second of a link: busy is what its wire to the clients was, late
// what packets were.
func linked(name string, step int, at time.Time, busy float64, late float64) *monitor.Sample {
	way := link.Traffic{Packets: 100, Bytes: int64(busy * 250e3), Busy: busy, Late: link.Quantiles{P99: late, Max: 2 * late}}
	return &monitor.Sample{
		Time: at, Seconds: 1, Host: name, Role: "other", Step: step,
		Nets: []monitor.Net{{Name: monitor.ToClients, Sent: way.Bytes, Speed: 2e6}, {Name: monitor.FromClients, Speed: 2e6}},
		Link: &monitor.Link{ToClients: way, FromClients: link.Traffic{Packets: 100}},
	}
}

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
			return []*monitor.Sample{linked("link far", step, end, share*c.busy, 0), linked("link near", step, end, share*c.other, 0)}
		}
		f := of(t, s)
		if grows := strings.Contains(f.Verdict, "still grows"); !strings.HasPrefix(f.Headline, c.want) || grows != (c.want == "At least ") {
			t.Errorf("links %v and %v full: %s", c.busy, c.other, f.Verdict)
		}
	}
}
