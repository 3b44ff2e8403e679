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
	jobs        jobTally
}

// A jobTally is what jobs did meanwhile. The zero value is that of none.
type jobTally struct {
	running               float64 // job seconds
	work                  float64 // seconds for which they computed
	events                int64
	begun, done           int64
	failed, crashed, lost int64 // lost: both
}

func (j *jobTally) add(v *measure.Interval) {
	j.work += v.Compute + v.CPU
	j.events += v.Events
	j.begun += v.Started
	j.done += v.Ended
	j.failed += v.Broken
	j.crashed += v.Crashed
	j.lost += v.Broken + v.Crashed
}

// efficiency is the time for which jobs computed over the time for which they
// ran, below 0 if none ran.
func (j *jobTally) efficiency() float64 {
	if j.running <= 0 {
		return -1
	}
	return j.work / j.running
}

// add adds v. Intervals of one moment tell the same span and clients.
func (t *tally) add(v *measure.Interval) {
	if !v.Start.Equal(t.at) || t.seconds == 0 {
		t.seconds += v.Seconds
		t.clients = v.Clients
		t.jobs.running += v.Running * v.Seconds
	}
	t.at, t.step = v.Start, v.Step
	t.moved += v.Moved
	t.done += v.Done
	t.wrong += v.Errors()
	t.latency.Merge(&v.Latency)
	t.jobs.add(v)
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
