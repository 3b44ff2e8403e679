package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"weir/internal/pause"
	"weir/internal/trust"
	"weir/internal/wire"
	"weir/transfer"
)

const (
	retryEvery   = 300 * time.Millisecond
	retryFor     = 15 * time.Second
	followEvery  = 400 * time.Millisecond
	speedWindow  = 5 * time.Second
	mostMeasured = 200 // files in flight whose bytes are requested
)

// Retry calls ask until the coordinator responds, for up to 15 s after the first failure: it may be
// starting, or busy. ask must be harmless to repeat. Unless reached is true, a refused first
// connection is an error at once.
func Retry[T any](ctx context.Context, reached bool, ask func() (T, error)) (T, error) {
	var failed time.Time
	for ; ; reached = true {
		v, err := ask()
		if failed.IsZero() {
			failed = time.Now()
		}
		status := wire.Status(err)
		again := Unreachable(err) || errors.Is(err, ErrCut) || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
		if !again || !reached && errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, trust.ErrPin) || time.Since(failed) > retryFor {
			return v, err
		}
		if !pause.For(ctx, retryEvery) {
			return v, err
		}
	}
}

// Unreachable reports whether err means that no coordinator responded.
func Unreachable(err error) bool {
	var asked *url.Error
	return errors.As(err, &asked) && wire.Status(err) == 0 && !errors.Is(err, context.Canceled)
}

// A Progress is the state of a request that is followed.
type Progress struct {
	Request transfer.Request
	Bytes   int64   // at the destination, including the bytes of incomplete files
	Speed   float64 // bytes per second over the last 5 s
	Err     error   // why the coordinator does not respond at present; the other fields are then from its last response
}

// Follow polls a request until it has ended and calls update after each poll. It waits while the
// coordinator cannot be reached and fails if the coordinator refuses the request. With measure it
// also requests the files in flight: without it, Bytes and Speed are 0.
func (c *Client) Follow(ctx context.Context, id int64, measure bool, update func(Progress)) (transfer.Request, error) {
	var p Progress
	var window speedometer
	for {
		r, err := c.Request(ctx, id)
		status := wire.Status(err)
		switch {
		case ctx.Err() != nil:
			return r, ctx.Err()
		case errors.Is(err, trust.ErrPin) || status >= 400 && status < 500 && status != http.StatusTooManyRequests:
			return r, err
		case err == nil:
			p.Request = r
			if measure && !r.Status.Ended() {
				p.Bytes = min(max(c.bytesAt(ctx, &r), p.Bytes), r.Count.Bytes)
				p.Speed = window.add(time.Now(), p.Bytes)
			}
		}
		p.Err = err
		update(p)
		if err == nil && r.Status.Ended() {
			return r, nil
		}
		if !pause.For(ctx, followEvery) {
			return r, ctx.Err()
		}
	}
}

// bytesAt returns the number of bytes of a request that are at its destination.
func (c *Client) bytesAt(ctx context.Context, r *transfer.Request) int64 {
	sum := r.Count.DoneBytes
	if r.Count.Leased > 0 {
		items, _ := c.Items(ctx, r.ID, transfer.Leased, 0, mostMeasured) // if this fails, they count once they are done
		for _, i := range items {
			sum += i.Moved
		}
	}
	return sum
}

// A speedometer computes a speed over the last 5 s.
type speedometer []struct {
	at    time.Time
	bytes int64
}

// add records a number of bytes and returns the speed in bytes per second.
func (s *speedometer) add(at time.Time, bytes int64) float64 {
	*s = append(*s, struct {
		at    time.Time
		bytes int64
	}{at, bytes})
	for len(*s) > 2 && at.Sub((*s)[0].at) > speedWindow {
		*s = (*s)[1:]
	}
	first := (*s)[0]
	if !at.After(first.at) {
		return 0
	}
	return float64(bytes-first.bytes) / at.Sub(first.at).Seconds()
}
