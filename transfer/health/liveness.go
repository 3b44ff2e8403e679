package health

import (
	"context"
	"time"
)

// A Liveness checks a service at most once a second and with one request at a time, for any number
// of callers. Callers cannot interrupt the request.
type Liveness struct {
	ask  func(context.Context) error
	turn chan struct{} // holds one token, whose owner may send a request
	at   time.Time     // of the last result
	said error
}

const (
	livenessEach = time.Second
	livenessTime = 5 * time.Second
)

// NewLiveness returns a Liveness that uses ask as its test.
func NewLiveness(ask func(context.Context) error) *Liveness {
	p := &Liveness{ask: ask, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// Answer returns the result of the last test, or the error of ctx.
func (p *Liveness) Answer(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if time.Since(p.at) >= livenessEach {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), livenessTime)
		defer cancel()
		p.said = p.ask(ctx)
		p.at = time.Now()
	}
	return p.said
}
