package validity

import (
	"strings"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// TestCheckLinks checks that packets delayed by the emulation itself cause a warning or a failure.
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
		h := hosts.HostFigure{Host: "link far", Role: "other", Link: &hosts.LinkFigure{ToClients: hosts.WayFigure{Late: c.late}}}
		d := &Evidence{Run: &steps.Run{Plan: &scenario.Plan{Links: scenario.Links{far}}}}
		got := d.checkLinks(steps.CurveOf([]steps.Figures{{Step: 1, Clients: 4, Hosts: []hosts.HostFigure{h}}}, "", "", false))
		if got.Status != c.status || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	d := &Evidence{Run: &steps.Run{Plan: &scenario.Plan{Links: scenario.Links{{Name: "far", Spec: link.Spec{Trunk: "line"}}, {Name: "line"}}}}}
	for moved, status := range map[float64]string{1000: Warn, 600: OK} { // the trunk carries as much as the link
		carries := func(host string, over ...string) hosts.HostFigure {
			return hosts.HostFigure{Host: host, Link: &hosts.LinkFigure{Over: over, ToClients: hosts.WayFigure{Carried: 500},
				FromClients: hosts.WayFigure{Carried: 50}}}
		}
		step := steps.Figures{Step: 1, Clients: 4, Throughput: moved, Hosts: []hosts.HostFigure{carries("link far"), carries("link line", "far")}}
		if c := d.checkLinks(steps.CurveOf([]steps.Figures{step}, "", "", false)); c.Status != status ||
			(status == Warn) != fact.Has(c.Facts, "check.links.past") {
			t.Errorf("%v bytes/s: %+v", moved, c)
		}
	}
	d = &Evidence{Run: &steps.Run{Plan: &scenario.Plan{}, Events: []*measure.Event{}}}
	if c := d.checkLinks(&steps.Curve{}); c != nil {
		t.Errorf("%+v of a run without links", c)
	}
}
