package dashboard

import (
	"sync"
	"time"

	"weir/results"
	"weir/scenario"
)

// A shown is one run and what was read of it. Its methods may be called by
// several goroutines at once; only follow writes what it has read.
type shown struct {
	key, dir string
	clock    func() time.Time

	mu       sync.RWMutex
	h        *history
	about    *results.About // nil: the run directory is not there yet
	plan     *scenario.Plan
	planned  time.Duration
	runSeq   int64 // of the last change of what the run is
	over     bool  // nobody writes any more
	ended    bool  // it has told its end
	reading  bool  // what was there already is still being read
	reported bool  // there is a report in the run directory
	problem  string
	found    *Found
	foundSeq int64
	pages    int           // that show it
	seen     time.Time     // when a page last showed it
	changed  chan struct{} // closed at the next change

	wake chan struct{} // for the analyst
}

func newShown(key, dir string, clock func() time.Time) *shown {
	return &shown{key: key, dir: dir, clock: clock, h: newHistory(), changed: make(chan struct{}), wake: make(chan struct{}, 1), seen: clock()}
}

// change calls f, which changes s, and tells all who wait for that.
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

// watchedSince tells whether a page shows s, or did after t.
func (s *shown) watchedSince(t time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pages > 0 || s.seen.After(t)
}

// settled tells whether the run is over and all that there is to say of it is
// known.
func (s *shown) settled() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.over && s.found != nil && s.found.Final
}
