package engine

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"weir/storage"
)

// contactTimeout is the time that the target has for its response to the first client: a server of
// another protocol often waits for ever. After silenceShown the user is shown the reason for the
// wait.
const (
	contactTimeout = 30 * time.Second
	silenceShown   = 2 * time.Second
)

// contact fails if the target accepts a connection and does not respond on it. All other errors are
// left to the operations that follow. It does nothing once the target has responded.
func (p *preparer) contact(ctx context.Context) error {
	if p.answered.Load() {
		return nil
	}
	s := p.Service.Client()
	_, err := p.do(ctx, s, &storage.Op{Kind: storage.Login, Timeout: contactTimeout})
	_ = s.Close() // its operations have ended
	if storage.Classify(err) == storage.Timeout {
		return fmt.Errorf("no answer within %v: %w", contactTimeout, err)
	}
	return nil
}

// do does op. Until the target has responded to an operation, it calls Waiting if an operation has
// taken silenceShown.
func (p *preparer) do(ctx context.Context, s storage.Client, op *storage.Op) (storage.Result, error) {
	if p.answered.Load() {
		return s.Do(ctx, op, storage.NoProgress{})
	}
	begun := &firstContact{}
	timer := time.AfterFunc(silenceShown, func() {
		if p.Waiting != nil && !p.answered.Load() && p.shown.CompareAndSwap(false, true) {
			p.Waiting(p.awaited(op, begun))
		}
	})
	defer timer.Stop()
	res, err := s.Do(ctx, op, begun)
	if err == nil && op.Kind != storage.Login { // of some protocols a login is a connection and nothing else
		p.answered.Store(true)
	}
	return res, err
}

// awaited returns a text with the event that op waits for.
func (p *preparer) awaited(op *storage.Op, begun *firstContact) string {
	host := p.Plan.Target
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	switch {
	case begun.phases.Load()&(1<<storage.Opened) != 0:
		return fmt.Sprintf("waiting for %s to finish the first %v", host, op.Kind)
	case begun.phases.Load()&(1<<storage.Connected) == 0:
		return fmt.Sprintf("waiting for %s: not connected yet", host)
	}
	return fmt.Sprintf("waiting for %s: connected, but no answer to the first %v yet", host, op.Kind)
}

// A firstContact keeps the phases that an operation has reached. It is read while the operation runs.
type firstContact struct{ phases atomic.Uint32 }

// Reached implements storage.Progress.
func (c *firstContact) Reached(p storage.Phase) { c.phases.Or(1 << p) }

// Moved implements storage.Progress.
func (*firstContact) Moved(int) {}

// ServedBy implements storage.Progress.
func (*firstContact) ServedBy(string) {}
