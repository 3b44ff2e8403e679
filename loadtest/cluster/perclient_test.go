package cluster

import (
	"context"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A pool of 6 slots and two submissions of 10 and 4 jobs of one client each: ramp, hold and drain
// follow from the number of jobs that the pool runs.
func TestClientsAreJobs(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	d := open(t, ServerOptions{})
	slots := make(chan struct{}, 6)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conf, n := plan(stepOf(10, 7), stepOf(4, 4)), &notes{}
	conf.Sink = n
	calm := watchCalm(t)
	err := control(t, d, conf, WorkerOptions{JobPerClient: true, patience: 6 * time.Second,
		Call: func(_ context.Context, s scenario.Step) error {
			go func() {
				for range s.Clients {
					select {
					case slots <- struct{}{}:
					case <-ctx.Done():
						return
					}
					err := enter(t, d.Pass(), JoinOptions{})
					go func() { <-err; <-slots }()
					<-time.After(150 * time.Millisecond)
				}
			}()
			return nil
		}})
	require.NoError(t, err)
	timely := calm()
	area, most, phases := map[int]float64{}, map[int]float64{}, map[int][]string{}
	for _, v := range n.intervals {
		area[v.Step] += v.Clients * v.Seconds
		most[v.Step] = max(most[v.Step], v.Clients)
		if p := phases[v.Step]; len(p) == 0 || p[len(p)-1] != v.Phase {
			phases[v.Step] = append(p, v.Phase)
		}
		if timely && v.Phase == measure.Measured && v.Step == 2 && v.Clients < 3.9 {
			t.Errorf("%v clients in the hold of step 2", v.Clients)
		}
	}
	if timely && (area[1] < 69 || area[1] > 72 || area[2] < 15.7 || area[2] > 16.5 || most[1] > 8 || most[2] > 5) {
		t.Errorf("client seconds %v, want 70 and 16; most clients %v, want 6 and 4", area, most)
	}
	for step, p := range phases {
		if len(p) != 3 || p[0] != measure.Ramp || p[1] != measure.Measured || p[2] != measure.GracefulStop {
			t.Errorf("phases of step %d: %v", step, p)
		}
	}
	if !n.has("step", "step 1: 10 clients, each a job of its own") || !n.has("end", measure.AllDone) || n.has("warning", "") {
		t.Errorf("events %v", n.events)
	}
	once(t, n)
}
