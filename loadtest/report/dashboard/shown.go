package dashboard

import (
	"context"
	"sync"
	"time"

	"weir/internal/say"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// A shown is one run and the data that was read of it. Its methods may be called by several
// goroutines at once; only follow writes the data.
type shown struct {
	key, dir string
	clock    func() time.Time

	mu       sync.RWMutex
	h        *history
	about    *results.About // nil: the run directory does not exist yet
	plan     *scenario.Plan
	runSeq   int64 // of the last change of the description of the run
	over     bool  // the writer has stopped
	ended    bool  // its end was sent
	reading  bool  // existing lines are still being read
	reported bool  // there is a report in the run directory
	problem  string
	found    *Found
	foundSeq int64
	pages    int           // number of pages that show it
	seen     time.Time     // last time that a page showed it
	changed  chan struct{} // closed at the next change

	wake    chan struct{}      // for the analyst
	awaited context.Context    // ends when the command waits for the last analysis
	await   context.CancelFunc // called when the wait begins
}

func newShown(key, dir string, clock func() time.Time) *shown {
	s := &shown{key: key, dir: dir, clock: clock, h: newHistory(), changed: make(chan struct{}), wake: make(chan struct{}, 1), seen: clock()}
	s.awaited, s.await = context.WithCancel(context.Background())
	return s
}

// change calls f, which changes s, and notifies all waiting goroutines.
func (s *shown) change(f func()) {
	s.mu.Lock()
	s.h.seq++
	f()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.nudge()
}

func (s *shown) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next returns a channel that is closed when something has changed.
func (s *shown) next() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// enter and leave count the pages that show s.
func (s *shown) enter() {
	s.mu.Lock()
	s.pages++
	s.seen = s.clock()
	s.mu.Unlock()
	s.nudge()
}

func (s *shown) leave() {
	s.mu.Lock()
	s.pages--
	s.seen = s.clock()
	s.mu.Unlock()
}

// watchedSince reports whether a page shows s, or showed it after t.
func (s *shown) watchedSince(t time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pages > 0 || s.seen.After(t)
}

// settled reports whether the run is over and its complete result is known.
func (s *shown) settled() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.over && s.found != nil && s.found.Final
}

// now returns the progress of the run. s.mu is held for reading.
func (s *shown) now(at time.Time) now {
	n := now{State: s.state(), Time: s.covered(), Problem: s.problem, Report: s.reported, Seconds: 1 << s.h.merged,
		Workers: s.h.workers.text()}
	if s.plan == nil {
		return n
	}
	if i := len(s.h.rows.at) - 1; i >= 0 {
		n.Start = s.h.start.UnixMilli()
		n.Clients = float64(s.h.rows.cols[colClients][i])
		if p := int(s.h.rows.cols[colPhase][i]); p >= 0 && p < len(phases()) {
			n.Phase = phases()[p]
		}
	}
	n.Of = len(s.plan.Steps)
	since := time.Duration(0)
	for _, st := range s.h.steps {
		if !st.Broken {
			n.Place++
		}
		n.Step, since = st.Step, at.Sub(st.begin)
	}
	if n.Of > 0 {
		n.Place = min(n.Place, n.Of)
	}
	spent := s.spent()
	left := s.plan.Left(n.Place, since, spent)
	n.Left, n.AtMost = left.Seconds(), s.plan.Find != nil || len(s.plan.Steps) > 0 && s.plan.Steps[0].Jobs > 0
	if sum := spent + left; sum > 0 {
		n.Share = float64(spent) / float64(sum)
	}
	if s.over {
		n.Left = 0
		if s.ended {
			n.Share = 1
		}
		if i := len(s.h.events) - 1; i >= 0 {
			n.Last = s.h.events[i].Text
		}
	}
	return n
}

func (s *shown) state() string {
	switch {
	case s.about == nil:
		return waiting
	case s.over && s.ended:
		return ended
	case s.over:
		return broken
	case len(s.h.rows.at) == 0:
		return preparing
	}
	return running_
}

// spent returns the total time with load, without the time between two parts of a run that was
// resumed.
func (s *shown) spent() time.Duration {
	sum := 0.0
	for _, x := range s.h.rows.cols[colSeconds] {
		sum += float64(x)
	}
	return seconds(sum)
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// title returns the title of a page of the run. s.mu is held for reading.
func (s *shown) title() string {
	if s.plan == nil {
		return "waiting for " + say.Plain(s.dir)
	}
	return say.Plain(s.plan.Name)
}
