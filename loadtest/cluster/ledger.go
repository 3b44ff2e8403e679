package cluster

import (
	"context"
	"errors"
	"sync"

	"weir/loadtest/engine"
)

// A ledger is the manifest of a worker whose controller writes it. Entries that are added while a
// request is in flight are sent with the next request, so many clients together wait hardly longer
// than a single client.
type ledger struct {
	mu      sync.Mutex
	waiting []entry
	done    *outcome      // outcome of the request with the waiting entries
	more    chan struct{} // has a token if entries are waiting
	closed  chan struct{} // the writer has ended
}

// An outcome is the outcome of a request: err is valid once known is closed.
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

// mostEntries is the number of entries in one request.
const mostEntries = 2000

// take returns the waiting entries and their outcome.
func (l *ledger) take() ([]entry, *outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some, done := l.waiting, l.done
	l.waiting, l.done = nil, newOutcome()
	return some, done
}

// writeDown sends the waiting entries to the controller until ctx or the session ends.
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

// enter repeats the request until the controller has written some entries. It returns false if it
// failed.
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
