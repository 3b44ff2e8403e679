package theory

import (
	"math"
	"testing"
	"time"

	"weir/storage/simulated"
)

// A service that breaks down beyond 20 operations and keeps 30% is reported to collapse there; a
// service that recovers fully shows no hysteresis.
func TestCollapseIsFound(t *testing.T) {
	c := trial{kind: turning, think: "none", loads: []int{1, 2, 4, 6, 10, 16, 24, 32, 40, 32, 24, 16, 10, 6}, seed: 1,
		theory: simulated.Theory{Servers: 6, Service: 50 * time.Millisecond, Collapse: 20, Left: 0.3}}
	p := c.plan(4000)
	p.Target += "&collapse=20x30%"
	f := measured(t, p, simulated.Driver())
	if f.Collapse == nil || f.Collapse.Clients < 24 || math.Abs(f.Collapse.Left-0.3) > 0.03 {
		t.Errorf("collapse %+v, want 30%% left from 24 clients on", f.Collapse)
	}
	if o := f.Optimum; !o.Inside || o.Clients < 5 || o.Clients > 20 {
		t.Errorf("optimum %+v, want 6 to 20 clients", o)
	}
	for _, h := range f.Hysteresis {
		if h.Certain {
			t.Errorf("hysteresis %+v of a service without memory", h)
		}
	}
	if len(f.Hysteresis) != 5 {
		t.Errorf("%d loads were held on both ways, want 5", len(f.Hysteresis))
	}
}
