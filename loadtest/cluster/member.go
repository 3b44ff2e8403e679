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

// A member is the worker's side of a session: it keeps reports until they are acknowledged, and
// requests orders.
type member struct {
	options    JoinOptions
	quick      *wire.Client // for requests with an immediate response
	slow       *wire.Client // for requests whose response may take time
	self       registration
	number     int
	clock      clock
	worker     *worker
	batchDelay time.Duration // delay of reports that are not urgent, so that more are sent together

	mu            sync.Mutex
	kept          []json.RawMessage // reports that are not acknowledged
	acked         int64             // number of the last acknowledged report
	sent          int               // number of kept reports that the controller has received
	after         int64             // number of the last order
	registrations int               // number of renewed registrations
	fault         error             // reason for the end of the session; nil: it has not ended
	ended         chan struct{}     // closed when the session has ended
	more          chan struct{}     // has a token if there are reports to send
	urgent        chan struct{}     // has a token if they must be sent at once
	registering   sync.Mutex        // held while it registers, or starts or stops the guard
	guard         guard
	targets       []string // of the plan: all endpoints, at least one
	ledger        *ledger
}

// Limits of a request with reports.
const (
	mostReports = 2000
	mostBytes   = 1 << 20
)

func newMember(p Pass, o JoinOptions) *member {
	return &member{
		options: o, self: describeSelf(o), batchDelay: rand.N(o.patience / 100), // not all at the same moment
		quick: wire.NewClient(p.URLs, p.Token, p.Pin, o.patience/4),
		slow:  wire.NewClient(p.URLs, p.Token, p.Pin, o.patience/2),
		ended: make(chan struct{}), more: make(chan struct{}, 1), urgent: make(chan struct{}, 1), ledger: newLedger(),
	}
}

func (m *member) close() {
	m.quick.Close()
	m.slow.Close()
}

// run executes work and exchanges messages with the controller meanwhile.
func (m *member) run(ctx context.Context, work func(context.Context) error) error {
	working, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	talking, stopTalking := context.WithCancel(context.WithoutCancel(ctx))
	var talk sync.WaitGroup
	talk.Go(func() { m.report(talking) })
	talk.Go(func() { m.listen(talking, working) })
	talk.Go(func() { m.writeDown(talking) })
	talk.Go(func() {
		select {
		case <-m.ended:
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
		err = errors.Join(err, m.worker.say(last), m.flush(ctx))
	}
	stopTalking()
	talk.Wait()
	return err
}

// end ends the session.
func (m *member) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault == nil {
		m.fault = err
		close(m.ended)
	}
}

// send queues a report, which is kept until it is acknowledged.
func (m *member) send(r report) error {
	return m.keep(r.Interval == nil, func(no int64) ([]byte, error) {
		r.No = no
		return json.Marshal(r)
	})
}

// keep queues the report that text returns for the next number. With hurry, the queued reports are
// sent at once.
func (m *member) keep(hurry bool, text func(no int64) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	report, err := text(m.acked + int64(len(m.kept)) + 1)
	if err != nil {
		return err
	}
	m.kept = append(m.kept, report)
	ring(m.more)
	if hurry {
		ring(m.urgent)
	}
	return nil
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// unsent returns some of the reports that the controller has not received.
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
			case <-m.more:
			case <-ctx.Done():
				return
			}
			select {
			case <-m.urgent:
			case <-time.After(m.batchDelay):
			case <-ctx.Done():
				return
			}
			continue
		}
		if !m.sendReports(ctx, some) {
			return
		}
	}
}

// sendReports sends some reports, and returns false if the session has ended.
func (m *member) sendReports(ctx context.Context, some []json.RawMessage) bool {
	times := m.registrationCount()
	var t ordersResponse
	err := m.quick.Insist(ctx, reportsPath, reportsRequest{m.self.Session, some}, &t, m.options.limit)
	if err == nil {
		m.confirm(times, len(some), t.Acked)
	}
	return m.handleResponse(ctx, times, t.Over, err)
}

// registrationCount returns the number of renewed registrations.
func (m *member) registrationCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registrations
}

// confirm notes that the controller has received so many more reports, and has finished the reports
// up to acked. A response from before a restart of the controller is outdated.
func (m *member) confirm(times, more int, acked int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if times != m.registrations {
		return
	}
	m.sent = min(m.sent+more, len(m.kept))
	if done := int(min(acked-m.acked, int64(m.sent))); done > 0 {
		m.kept = append([]json.RawMessage(nil), m.kept[done:]...)
		m.sent -= done
		m.acked += int64(done)
	}
}

// handleResponse handles a response or its error, and returns false if the session has ended.
func (m *member) handleResponse(ctx context.Context, times int, over bool, err error) bool {
	switch status := wire.Status(err); {
	case ctx.Err() != nil:
		return false
	case over:
		m.end(errOver)
		return false
	case err == nil:
		return true
	case status == http.StatusNotFound:
		err = m.registerAgain(ctx, times)
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

// registerAgain registers the worker, with its state, at a restarted controller that has no session
// of the worker.
func (m *member) registerAgain(ctx context.Context, times int) error {
	m.registering.Lock()
	defer m.registering.Unlock()
	if times != m.registrationCount() {
		return nil // another goroutine has done it
	}
	me := m.self
	m.worker.describe(&me)
	m.mu.Lock()
	me.Acked = m.acked
	m.mu.Unlock()
	var w registrationResponse
	if err := m.slow.Insist(ctx, registerPath, me, &w, m.options.limit); err != nil {
		return refused(err)
	}
	if w.Over {
		return errOver
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registrations++
	m.sent = 0
	ring(m.more)
	ring(m.urgent)
	return nil
}

// listen receives and executes orders until ctx ends.
func (m *member) listen(ctx, working context.Context) {
	for {
		m.mu.Lock()
		after, times := m.after, m.registrations
		m.mu.Unlock()
		var t ordersResponse
		err := m.slow.Insist(ctx, ordersPath, ordersRequest{m.self.Session, after}, &t, m.options.limit)
		if err == nil {
			m.confirm(times, 0, t.Acked)
			m.execute(working, times, t.Orders)
		}
		if !m.handleResponse(ctx, times, t.Over, err) {
			return
		}
	}
}

// execute executes new orders.
func (m *member) execute(working context.Context, times int, orders []numbered) {
	for _, o := range orders {
		m.mu.Lock()
		fresh := times == m.registrations && o.No > m.after
		if fresh {
			m.after = o.No
		}
		m.mu.Unlock()
		switch {
		case fresh && o.Order.Watch != nil:
			m.guardMachine(working, o.Order.Watch)
		case fresh:
			m.worker.execute(working, o.Order)
		}
	}
}

// flushLimit is the time for which a worker that was not stopped by its controller tries to report
// its end.
const flushLimit = 5 * time.Second

// flush waits until all reports are acknowledged.
func (m *member) flush(ctx context.Context) error {
	limit := m.options.limit
	if ctx.Err() != nil {
		limit = flushLimit
	}
	talking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for wait := m.options.patience / 300; ; wait = min(2*wait, m.options.patience/30) {
		m.mu.Lock()
		left, sent, times := len(m.kept), m.sent, m.registrations
		m.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-m.ended:
			if errors.Is(m.fault, errOver) {
				return nil
			}
			return m.fault
		case <-talking.Done():
			return fmt.Errorf("worker: %d reports were not acknowledged", left)
		case <-time.After(wait/2 + rand.N(wait)):
		}
		var t ordersResponse
		if sent == left && m.quick.Ask(talking, reportsPath, reportsRequest{Session: m.self.Session}, &t) == nil {
			m.confirm(times, 0, t.Acked)
		}
	}
}
