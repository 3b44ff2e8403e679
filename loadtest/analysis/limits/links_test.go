package limits

import (
	"math"
	"testing"
	"time"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/results/resultstest"
)

func TestALinkThatIsFull(t *testing.T) {
	for _, c := range []struct {
		busy     float64
		dropped  int64
		reached  bool
		resource string
	}{{0.99, 0, true, hosts.ResourceNetwork}, {0.6, 0, false, hosts.ResourceNetwork}, {0.6, 20, false, hosts.ResourceNetwork},
		{0.85, 0, false, hosts.ResourceNetwork},
		{0.85, 20, true, hosts.ResourceNetwork}} {
		begin, end := time.Unix(0, 0), time.Unix(3, 0)
		w := hosts.NewWatched(hosts.Holds{{From: begin, To: end, Last: end, Step: 1}}, begin, "")
		for i := range 3 {
			at := begin.Add(time.Duration(i+1) * time.Second)
			second := resultstest.LinkSample("link far", 1, at, c.busy, 0.0001)
			second.Link.ToClients.Dropped = c.dropped
			w.Add(second, at.Add(-time.Second))
		}
		uses := netUses(&w.Figures(1)[0])
		if len(uses) != 1 || uses[0].Resource != c.resource || uses[0].reached != c.reached || math.Abs(*uses[0].Share-c.busy) > 1e-9 ||
			uses[0].Host != "link far" {
			t.Errorf("%+v", uses)
		}
	}
	text := (&Bottleneck{Resource: hosts.ResourceNetwork, Host: "link far"}).Text()
	if text != "the network (link far)" {
		t.Error(text)
	}
}
