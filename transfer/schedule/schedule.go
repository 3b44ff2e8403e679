// Package schedule decides how many copies a link may have at once, and from which of several
// sources a file is copied.
//
// It has no clock, no database and no goroutine: a Network is given the events with their times,
// and decides from them alone. The same history gives the same decisions, so that they can be
// computed again afterwards (Backtest).
//
// Limits follow FTS's optimizer (fts3 3.14, optimizer/services/OptimizerConnections.cpp: fewer when
// less than 97% of the copies succeed, more while throughput grows), with one difference. There
// equal throughput allows more copies, so that limits rise to their maximum wherever a link is
// full. Here each change is a trial that must increase the throughput, otherwise it is reverted.
//
// Sources are chosen by predicted seconds, as PhEDEx's router did, with a few probes of other
// sources so that improvements are noticed.
package schedule

import (
	"time"
)

// Rules are the parameters of limits and choices. The zero value of each field is replaced by that
// of Defaults.
type Rules struct {
	Min     int           // minimum of copies at once on a link
	Max     int           // maximum of copies at once on a link
	Start   int           // initial number of copies at once on a link
	Success float64       // fraction of good copies below which the limit is reduced
	Span    time.Duration // time over which a link is judged
	Probe   float64       // fraction of files that are copied from another source than the best
	Ahead   time.Duration // copying time that may wait at an agent, so that small files follow each other
	Forget  time.Duration // half-life of the penalty for failures
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
