package cluster

import (
	"context"
	"errors"
	"sync"

	"weir/loadtest/engine"
)

// A ledger is the manifest of a worker whose controller writes it down. Entries that are added while a request is in flight
// goes with the next one, so many clients together wait hardly longer than one.
type ledger struct {
	mu      sync.Mutex
	waiting []entry
	done    *outcome      // of those that wait
	more    chan struct{} // has a token when there are some
	closed  chan struct{} // the writer has ended
}

// An outcome is that of a question: err once known is closed.
type outcome struct {
	known chan struct{}
	err   error
}

func newOutcome() *outcome { return &outcome{known: make(chan struct{})} }

var _ engine.Manifest = (*ledger)(nil)

func newLedger() *ledger {
	return &ledger{done: newOutcome(), more: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Created implements engine.Manifest.
func (l *ledger) Created(path string, size int64, seed uint64) error {
	return l.note(entry{Path: []byte(path), Size: size, Seed: seed})
}

// Removed implements engine.Manifest.
func (l *ledger) Removed(path string) error { return l.note(entry{Path: []byte(path), Removed: true}) }

// note waits until e is written.
func (l *ledger) note(e entry) error {
	l.mu.Lock()
	l.waiting = append(l.waiting, e)
	done := l.done
	l.mu.Unlock()
	ring(l.more)
	select {
	case <-done.known:
		return done.err
	case <-l.closed:
		return errors.Join(errUnwritten, context.Canceled)
	}
}

var errUnwritten = errors.New("the controller cannot record created files any more")

// mostEntries go in one question.
const mostEntries = 2000

// take returns some of the waiting entries, and whom to notify.
func (l *ledger) take() ([]entry, *outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some, done := l.waiting, l.done
	l.waiting, l.done = nil, newOutcome()
	return some, done
}

// writeDown has the controller write down what waits until ctx or the session ends.
func (m *member) writeDown(ctx context.Context) {
	defer close(m.ledger.closed)
	for {
		select {
		case <-m.ledger.more:
		case <-ctx.Done():
			return
		case <-m.ended:
			return
		}
		some, done := m.ledger.take()
		for more := true; more && len(some) > 0; some = some[min(len(some), mostEntries):] {
			more = m.enter(ctx, some[:min(len(some), mostEntries)], done)
		}
		close(done.known)
	}
}

// enter asks until some entries are written. false: it failed.
func (m *member) enter(ctx context.Context, some []entry, done *outcome) bool {
	for {
		times := m.registrationCount()
		var n empty
		err := m.quick.Insist(ctx, manifestPath, manifestRequest{m.self.Session, some}, &n, m.options.limit)
		if !m.handleResponse(ctx, times, false, err) {
			done.err = err
			return false
		}
		if err == nil {
			return true
		}
	}
}
