package main

import (
	"fmt"
	"sync"
	"time"

	"weir/internal/screen"
)

// A work is something that takes its time. On a terminal it says what it is
// and how far, once it has taken a second; elsewhere, and with --quiet, it says
// nothing.
type work struct {
	mu    sync.Mutex
	told  preparation
	begun time.Time
	still func()
	look  screen.Look
}

// soon is how long nothing is said: nobody needs to hear of what is over by then.
const soon = time.Second

// working says what is being done until done is called:
//
//	defer s.working("reading " + name).done()
func (s streams) working(what string) *work {
	w := &work{told: preparation{what: line(what), since: time.Now()}, begun: time.Now(), still: func() {}}
	if to := screen.New(s.err); !s.quiet {
		w.look = lookOf(to)
		w.still = to.Animate(w.draw)
	}
	return w
}

// advance tells how far it is; total is 0 while that is not known. Many
// goroutines may do so at once.
func (w *work) advance(what string, done, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.advance(line(what), done, total)
}

// done ends what moves.
func (w *work) done() { w.still() }

func (w *work) draw(columns int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	gone := now.Sub(w.begun)
	if gone < soon {
		return nil
	}
	p := w.told.progress(now)
	if p.Share < 0 {
		p.Detail = fmt.Sprintf(", %s so far", screen.Clock(gone))
	}
	return []string{p.Row(columns-3, w.look)}
}

// A preparation is how far something is that comes before the load, or after it.
type preparation struct {
	what        string
	done, total int
	since       time.Time
}

// advance notes how far it is. Many goroutines count, so that a smaller number
// may come late.
func (m *preparation) advance(what string, done, total int) {
	if m.what != what || m.total != total && total > 0 {
		*m = preparation{what: what, total: total, since: time.Now()}
	}
	m.done = max(m.done, done)
}

// progress is the row that says it: its time is an estimate from what it has
// taken so far.
func (m *preparation) progress(now time.Time) screen.Progress {
	p := screen.Progress{Where: m.what, Share: screen.Unknown, Left: screen.Unknown, Now: now}
	if m.done > 0 || m.total > 0 {
		p.Where += fmt.Sprintf(": %d", m.done)
	}
	if m.total > 0 {
		p.Where += fmt.Sprintf(" of %d", m.total)
		p.Share = float64(m.done) / float64(m.total)
		if gone := now.Sub(m.since); gone > 2*time.Second && m.done > 0 {
			p.Left = time.Duration(float64(gone) * float64(m.total-m.done) / float64(m.done))
		}
	}
	return p
}
