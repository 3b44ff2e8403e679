// Package schedule decides how many copies a link may have at once, and from
// which of several sources a file is copied.
//
// It has no clock, no database and no goroutine: a Network gets what happened
// and when, and answers from that. The same history gives the same answers, so
// that what it would have decided can be computed afterwards (Backtest).
//
// Limits follow FTS's optimizer (fts3 3.14, optimizer/services/
// OptimizerConnections.cpp: fewer when less than 97% of the copies succeed, more
// while throughput grows), with one difference. There equal throughput allows
// more copies, so that limits rise to their maximum wherever a link is full. Here
// each change is a trial that must pay, else it is taken back.
//
// Sources are chosen by predicted seconds, as PhEDEx's router did, with a few
// probes of others so that what became better is noticed.
package schedule

import (
	"time"
)

// Rules are what limits and choices follow. The zero value of each field is
// replaced by that of Defaults.
type Rules struct {
	Min     int           // copies at once on a link
	Max     int           // likewise
	Start   int           // likewise, before anything is known
	Success float64       // share of good copies below which there are fewer at once
	Span    time.Duration // of time over which a link is judged
	Probe   float64       // share of files that are copied from another source than the best
	Ahead   time.Duration // of copying that may wait at an agent, so that small files follow each other
	Forget  time.Duration // after so long a failure counts half
}

// Defaults returns the usual rules.
func Defaults() Rules {
	return Rules{
		Min: 1, Max: 64, Start: 10, Success: 0.97, Span: time.Second,
		Probe: 0.02, Ahead: 2 * time.Second, Forget: 2 * time.Minute,
	}
}

func (r Rules) filled() Rules {
	d := Defaults()
	set(&r.Min, d.Min)
	set(&r.Max, max(d.Max, r.Min))
	set(&r.Start, min(max(d.Start, r.Min), r.Max))
	set(&r.Success, d.Success)
	set(&r.Span, d.Span)
	set(&r.Probe, d.Probe)
	set(&r.Ahead, d.Ahead)
	set(&r.Forget, d.Forget)
	return r
}

func set[T comparable](field *T, to T) {
	if *field == *new(T) {
		*field = to
	}
}
