package main

import (
	"fmt"
	"time"

	"weir/internal/unit"
	"weir/measure"
	"weir/monitor"
	"weir/storage"
)

func perSecond(x float64) string { return fmt.Sprintf("%s/s", unit.Count(x)) }

// A tally sums intervals.
type tally struct {
	at          time.Time // start of the newest interval
	step        int
	seconds     float64
	clients     float64
	moved       int64
	done, wrong int64
	latency     measure.Histogram
}

// add adds v. Intervals of one moment tell the same span and clients.
func (t *tally) add(v *measure.Interval) {
	if !v.Start.Equal(t.at) || t.seconds == 0 {
		t.seconds += v.Seconds
		t.clients = v.Clients
	}
	t.at, t.step = v.Start, v.Step
	t.moved += v.Moved
	t.done += v.Done
	for class, n := range v.Failed {
		if class != storage.Canceled {
			t.wrong += n
		}
	}
	t.latency.Merge(&v.Latency)
}

// throughput is in bytes per second.
func (t *tally) throughput() float64 { return float64(t.moved) / max(t.seconds, 1e-9) }

// rate is in operations per second.
func (t *tally) rate() float64 { return float64(t.done) / max(t.seconds, 1e-9) }

// quantile is one of the latency, - where nothing has ended well.
func (t *tally) quantile(q float64) string {
	if t.done == 0 {
		return "-"
	}
	return unit.Seconds(t.latency.Quantile(q))
}

// busy is how much one side's processes do: for each host,
// cores times seconds used and there.
type busy map[string][2]float64

// add adds what the processes of a sample did for which mine is true.
func (u busy) add(s *monitor.Sample, mine func(role string) bool) {
	used, any := 0.0, false
	for i := range s.Procs {
		if p := &s.Procs[i]; mine(p.Role) {
			used, any = used+p.User+p.System, true
		}
	}
	if any {
		h := u[s.Host]
		u[s.Host] = [2]float64{h[0] + used, h[1] + s.Seconds*float64(s.Cores)}
	}
}

// share is that of the busiest host's cores, below 0 if it is not known.
func (u busy) share() float64 {
	most := -1.0
	for _, h := range u {
		if h[1] > 0 {
			most = max(most, h[0]/h[1])
		}
	}
	return most
}

// String is the share for people.
func (u busy) String() string {
	share := u.share()
	if share < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}
