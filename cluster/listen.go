package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"weir/internal/wire"
)

// heed does what follows from an answer, and returns false if the session has
// ended.
func (m *member) heed(ctx context.Context, times int, over bool, err error) bool {
	switch status := wire.Status(err); {
	case ctx.Err() != nil:
		return false
	case over:
		m.end(errOver)
		return false
	case err == nil:
		return true
	case status == http.StatusNotFound:
		err = m.helloAgain(ctx, times)
	case status == 0:
		err = fmt.Errorf("worker: the controller has not been heard of: %w", err)
	default:
		err = refused(err)
	}
	if err != nil {
		m.end(err)
	}
	return err == nil
}

// helloAgain tells a controller that does not know us, since it was started
// again, who we are and what we hold.
func (m *member) helloAgain(ctx context.Context, times int) error {
	m.again.Lock()
	defer m.again.Unlock()
	if times != m.met() {
		return nil // somebody else was quicker
	}
	me := m.me
	m.worker.recall(&me)
	m.mu.Lock()
	me.Acked = m.acked
	m.mu.Unlock()
	var w welcome
	if err := m.slow.Insist(ctx, helloPath, me, &w, m.options.limit); err != nil {
		return refused(err)
	}
	if w.Over {
		return errOver
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times++
	m.sent = 0
	ring(m.bell)
	ring(m.rush)
	return nil
}

// listen takes orders until ctx ends.
func (m *member) listen(ctx, working context.Context) {
	for {
		m.mu.Lock()
		after, times := m.after, m.times
		m.mu.Unlock()
		var t taken
		err := m.slow.Insist(ctx, ordersPath, listening{m.me.Session, after}, &t, m.options.limit)
		if err == nil {
			m.confirm(times, 0, t.Acked)
			m.obey(working, times, t.Orders)
		}
		if !m.heed(ctx, times, t.Over, err) {
			return
		}
	}
}

// obey has the worker do what it has not been told before.
func (m *member) obey(working context.Context, times int, orders []numbered) {
	for _, o := range orders {
		m.mu.Lock()
		fresh := times == m.times && o.No > m.after
		if fresh {
			m.after = o.No
		}
		m.mu.Unlock()
		switch {
		case fresh && o.Order.Watch != nil:
			m.guardMachine(working, o.Order.Watch)
		case fresh:
			m.worker.obey(working, o.Order)
		}
	}
}

// A worker that has been told to end by others than its controller says so for
// this long at most.
const lastWords = 5 * time.Second

// part waits until all that was told is done with.
func (m *member) part(ctx context.Context) error {
	limit := m.options.limit
	if ctx.Err() != nil {
		limit = lastWords
	}
	talking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for wait := m.options.patience / 300; ; wait = min(2*wait, m.options.patience/30) {
		m.mu.Lock()
		left, sent, times := len(m.kept), m.sent, m.times
		m.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-m.dead:
			if errors.Is(m.fault, errOver) {
				return nil
			}
			return m.fault
		case <-talking.Done():
			return fmt.Errorf("worker: %d reports were not acknowledged", left)
		case <-time.After(wait/2 + rand.N(wait)):
		}
		var t taken
		if sent == left && m.quick.Ask(talking, reportsPath, told{Session: m.me.Session}, &t) == nil {
			m.confirm(times, 0, t.Acked)
		}
	}
}
