package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"weir/internal/wire"
)

// A member is a session as the worker sees it: it keeps reports until they are acknowledged, and asks for orders.
type member struct {
	options JoinOptions
	quick   *wire.Client // for what is answered at once
	slow    *wire.Client // for what may take its time
	me      hello
	number  int
	clock   clock
	worker  *worker
	linger  time.Duration // before what can wait is sent, so that more goes together

	mu      sync.Mutex
	kept    []json.RawMessage // reports that are not acknowledged
	acked   int64             // number of the last one that is
	sent    int               // of kept, how many the controller has taken
	after   int64             // number of the last order
	times   int               // that we said hello again
	fault   error             // why the session has ended; nil: it has not
	dead    chan struct{}     // closed when it has
	bell    chan struct{}     // has a token when there is something to send
	rush    chan struct{}     // has a token when it cannot wait
	again   sync.Mutex        // held while we say hello again, or begin or end to watch the machine
	guard   guard
	targets []string // of the plan: all endpoints, at least one
	ledger  *ledger
}

// The most that a member sends at once.
const (
	mostReports = 2000
	mostBytes   = 1 << 20
)

func newMember(p Pass, o JoinOptions) *member {
	return &member{
		options: o, me: aboutMe(o), linger: rand.N(o.patience / 100), // not all at the same moment
		quick: wire.NewClient(p.URLs, p.Token, p.Pin, o.patience/4),
		slow:  wire.NewClient(p.URLs, p.Token, p.Pin, o.patience/2),
		dead:  make(chan struct{}), bell: make(chan struct{}, 1), rush: make(chan struct{}, 1), ledger: newLedger(),
	}
}

func (m *member) close() {
	m.quick.Close()
	m.slow.Close()
}

// live does the worker's work and talks with the controller meanwhile.
func (m *member) live(ctx context.Context, work func(context.Context) error) error {
	working, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	talking, hush := context.WithCancel(context.WithoutCancel(ctx))
	var talk sync.WaitGroup
	talk.Go(func() { m.report(talking) })
	talk.Go(func() { m.listen(talking, working) })
	talk.Go(func() { m.writeDown(talking) })
	talk.Go(func() {
		select {
		case <-m.dead:
			breakOff(m.fault)
		case <-talking.Done():
		}
	})
	err := work(working)
	if cause := context.Cause(working); err != nil && cause != nil {
		err = cause
	}
	if !errors.Is(err, errGivenUp) && !errors.Is(err, errOver) {
		last := report{Done: true}
		if err != nil {
			last.Error = err.Error()
		}
		err = errors.Join(err, m.worker.say(last), m.part(ctx))
	}
	hush()
	talk.Wait()
	return err
}

// end ends the session.
func (m *member) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault == nil {
		m.fault = err
		close(m.dead)
	}
}

// send keeps a report until it is acknowledged, and has it sent soon.
func (m *member) send(r report) error {
	return m.keep(r.Interval == nil, func(no int64) ([]byte, error) {
		r.No = no
		return json.Marshal(r)
	})
}

// keep keeps the report that text makes, with the number that it gets; hurry: what is kept is to be sent at once.
func (m *member) keep(hurry bool, text func(no int64) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	report, err := text(m.acked + int64(len(m.kept)) + 1)
	if err != nil {
		return err
	}
	m.kept = append(m.kept, report)
	ring(m.bell)
	if hurry {
		ring(m.rush)
	}
	return nil
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// unsent returns some of the reports that the controller has not taken.
func (m *member) unsent() []json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	size, n := 0, 0
	for n = m.sent; n < len(m.kept) && n-m.sent < mostReports && size < mostBytes; n++ {
		size += len(m.kept[n])
	}
	return m.kept[m.sent:n:n]
}

// report sends reports until ctx ends.
func (m *member) report(ctx context.Context) {
	for {
		some := m.unsent()
		if len(some) == 0 {
			select {
			case <-m.bell:
			case <-ctx.Done():
				return
			}
			select {
			case <-m.rush:
			case <-time.After(m.linger):
			case <-ctx.Done():
				return
			}
			continue
		}
		if !m.tell(ctx, some) {
			return
		}
	}
}

// tell sends some reports, and returns false if the session has ended.
func (m *member) tell(ctx context.Context, some []json.RawMessage) bool {
	times := m.met()
	var t ordersResponse
	err := m.quick.Insist(ctx, reportsPath, reportsRequest{m.me.Session, some}, &t, m.options.limit)
	if err == nil {
		m.confirm(times, len(some), t.Acked)
	}
	return m.heed(ctx, times, t.Over, err)
}

// met returns how often we said hello again.
func (m *member) met() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times
}

// confirm notes that the controller has taken so many more reports, and is done with those up to acked. An answer of
// a controller that is no more is old.
func (m *member) confirm(times, more int, acked int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if times != m.times {
		return
	}
	m.sent = min(m.sent+more, len(m.kept))
	if done := int(min(acked-m.acked, int64(m.sent))); done > 0 {
		m.kept = append([]json.RawMessage(nil), m.kept[done:]...)
		m.sent -= done
		m.acked += int64(done)
	}
}

// heed does what follows from an answer, and returns false if the session has ended.
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
		err = fmt.Errorf("worker: the controller did not respond: %w", err)
	default:
		err = refused(err)
	}
	if err != nil {
		m.end(err)
	}
	return err == nil
}

// helloAgain tells a controller that does not know us, since it was started again, who we are and what we hold.
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
	var w helloResponse
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
		var t ordersResponse
		err := m.slow.Insist(ctx, ordersPath, ordersRequest{m.me.Session, after}, &t, m.options.limit)
		if err == nil {
			m.confirm(times, 0, t.Acked)
			m.obey(working, times, t.Orders)
		}
		if !m.heed(ctx, times, t.Over, err) {
			return
		}
	}
}

// obey carries out new orders.
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

// A worker that has been told to end by others than its controller says so for this long at most.
const lastWords = 5 * time.Second

// part waits until all reports are acknowledged.
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
		var t ordersResponse
		if sent == left && m.quick.Ask(talking, reportsPath, reportsRequest{Session: m.me.Session}, &t) == nil {
			m.confirm(times, 0, t.Acked)
		}
	}
}
