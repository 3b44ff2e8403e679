package main

import (
	"fmt"
	"time"

	"weir/internal/unit"
	"weir/measure"
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
	t.wrong += v.Errors()
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
