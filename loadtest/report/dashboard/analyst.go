package dashboard

import (
	"context"
	"runtime"
	"time"

	"weir/internal/say"
)

// Intervals between analyses of a run that goes on. An analysis that does not report its cost is
// assumed to use up to busyCores cores.
const (
	firstLook   = 3 * time.Second  // of the run
	leastGap    = 15 * time.Second // between two analyses without a step that has ended
	gapOfCost   = 50               // between two analyses, as a multiple of the cost of the last analysis
	stepOfCost  = 25               // the same, if a step has ended
	busyCores   = 2
	recently    = time.Minute // a page that was left longer ago is not worth an analysis
	lookAgainIn = time.Second
)

// A look is the state of a run at its last analysis.
type look struct {
	at    time.Time
	cost  time.Duration
	data  int64
	epoch *history
	steps int
	over  bool
	until float64 // seconds of the run that were read
}

// analyze analyzes the run whenever it is due, until ctx ends.
func (s *shown) analyze(ctx context.Context, understand Understand) {
	var last look
	tick := time.NewTicker(lookAgainIn)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
		now, due := s.due(&last)
		if !due {
			continue
		}
		begin := time.Now()
		awaited, cancel := s.untilAwaited(ctx)
		f, err := understand(awaited, s.dir, Moment{GoesOn: !now.over, Awaited: awaited == ctx})
		broken := awaited.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		if broken { // the analysis is repeated at normal priority
			s.nudge()
			continue
		}
		now.cost = time.Since(begin) * time.Duration(min(busyCores, runtime.GOMAXPROCS(0)))
		if f != nil && f.Cost > 0 {
			now.cost = seconds(f.Cost)
		}
		now.at = s.clock()
		last = now
		s.conclude(&now, f, err)
	}
}

// untilAwaited returns a context that ends with ctx or when the command begins to wait for the last
// analysis; it returns ctx itself if the command already waits.
func (s *shown) untilAwaited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.awaited.Err() != nil {
		return ctx, func() {}
	}
	until, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.awaited, cancel)
	return until, func() {
		stop()
		cancel()
	}
}

// due reports whether the run should be analyzed now, and returns its current state.
func (s *shown) due(last *look) (look, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := look{data: s.h.data, epoch: s.h, steps: len(s.h.steps), over: s.over, at: s.clock(), until: s.covered()}
	if s.about == nil || s.reading || s.pages == 0 && now.at.Sub(s.seen) > recently {
		return now, false
	}
	gone := now.at.Sub(last.at)
	switch {
	case last.epoch != s.h:
		return now, s.over || s.covered() >= firstLook.Seconds()
	case now.over != last.over:
		return now, true
	case now.over || s.h.data == last.data:
		return now, false
	case now.steps != last.steps:
		return now, gone >= stepOfCost*last.cost
	}
	return now, gone >= max(leastGap, gapOfCost*last.cost)
}

// covered returns the number of seconds of the run that were read.
func (s *shown) covered() float64 {
	if n := len(s.h.rows.at); n > 0 {
		return s.h.rows.at[n-1] + float64(s.h.rows.cols[colSeconds][n-1])
	}
	return 0
}

// conclude stores the result of an analysis.
func (s *shown) conclude(now *look, f *Found, err error) {
	s.change(func() {
		if now.epoch != s.h { // another run has replaced it
			return
		}
		if err != nil {
			f = &Found{Problem: say.Plain(err.Error())}
		}
		f.At, f.Cost, f.Until, f.Final = now.at, now.cost.Seconds(), now.until, now.over
		s.found, s.foundSeq = f, s.h.seq
	})
}
