package analysis

import (
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
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

func TestALinkThatIsFull(t *testing.T) {
	for _, c := range []struct {
		busy     float64
		dropped  int64
		reached  bool
		resource string
	}{{0.99, 0, true, ResourceNetwork}, {0.6, 0, false, ResourceNetwork}, {0.6, 20, false, ResourceNetwork}, {0.85, 0, false, ResourceNetwork},
		{0.85, 20, true, ResourceNetwork}} {
		h := hostSum{HostFigure: HostFigure{Host: "link far", Role: "other"}}
		for i := range 3 {
			second := linked("link far", 1, time.Unix(int64(i), 0), c.busy, 0.0001)
			second.Link.ToClients.Dropped = c.dropped
			h.add(second, 1)
		}
		f := h.figure()
		uses := netUses(&f)
		if len(uses) != 1 || uses[0].Resource != c.resource || uses[0].reached != c.reached || math.Abs(*uses[0].Share-c.busy) > 1e-9 ||
			uses[0].Host != "link far" {
			t.Errorf("%+v", uses)
		}
	}
	text := (&Bottleneck{Resource: ResourceNetwork, Host: "link far"}).Text()
	if text != "the network (link far)" {
		t.Error(text)
	}
}

// Packets that come late by the emulation's fault are doubts.
func TestCheckLinks(t *testing.T) {
	far := link.Named{Name: "far", Spec: link.Spec{RTT: unit.Duration(51 * time.Millisecond)}}
	for name, c := range map[string]struct {
		late   float64
		status string
		want   string
	}{
		"fine": {0.0004, OK, "delayed packets by at most 400 us"},
		"rtt":  {0.002, OK, "at most 2 ms (p99)"},
		"late": {0.010, Warn, "packets were 10 ms late on link far (p99); at most 2.55 ms is acceptable; " +
			"the links were not as specified"},
	} {
		h := hostSum{HostFigure: HostFigure{Host: "link far", Role: "other"}}
		h.add(linked("link far", 1, time.Unix(1, 0), 0.5, c.late), 1)
		d := &data{plan: &scenario.Plan{Links: scenario.Links{far}}}
		got := d.checkLinks(&Findings{Curve: []Step{{Step: 1, Clients: 4, Hosts: []HostFigure{h.figure()}}}})
		if got.Status != c.status || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	d := &data{plan: &scenario.Plan{Links: scenario.Links{{Name: "far", Spec: link.Spec{Trunk: "line"}}, {Name: "line"}}}}
	for moved, status := range map[float64]string{1000: Warn, 600: OK} { // the trunk carries what the link does, not more
		carries := func(host string, over ...string) HostFigure {
			return HostFigure{Host: host, Link: &LinkFigure{Over: over, ToClients: WayFigure{Carried: 500}, FromClients: WayFigure{Carried: 50}}}
		}
		step := Step{Step: 1, Clients: 4, Throughput: moved, Hosts: []HostFigure{carries("link far"), carries("link line", "far")}}
		if c := d.checkLinks(&Findings{Curve: []Step{step}}); c.Status != status || (status == Warn) != strings.Contains(c.Detail,
			"the rest went past the links") {
			t.Errorf("%v bytes/s: %+v", moved, c)
		}
	}
	d = &data{plan: &scenario.Plan{}, events: []*measure.Event{}}
	if c := d.checkLinks(&Findings{}); c != nil {
		t.Errorf("%+v of a run without links", c)
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
