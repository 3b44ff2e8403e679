package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"time"

	"weir/storage"
)

// A client is one session. Its timer and its place in queues are made once,
// so that an operation allocates nothing by itself.
type client struct {
	w         *world
	rand      *rand.Rand
	timer     *time.Timer
	place     waiter
	connected bool
	joint     *joint // instead of connected, if sessions are shared
}

// Close implements storage.Client. A shared session stays for the others.
func (c *client) Close() error {
	c.connected = false
	return nil
}

func (c *client) isConnected() bool { return c.connected || c.joint != nil && c.joint.up.Load() }

// broken notes that the session is gone, for all who share it.
func (c *client) broken() {
	c.connected = false
	if c.joint != nil {
		c.joint.up.Store(false)
	}
}

// Do implements storage.Client.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, op.Timeout)
		defer cancel()
	}
	r := run{c: c, ctx: ctx, op: op, p: p, res: storage.Result{Size: -1}}
	do := r.do
	if op.Dest != "" {
		do = r.fetch
	}
	err := do()
	if err != nil {
		path := url.URL{Path: "/" + op.Path}
		err = &storage.OpError{Kind: op.Kind, URL: c.w.url + path.EscapedPath(), Err: err}
	}
	return r.res, err
}

// until waits for a time of the world, or for ctx's end.
func (c *client) until(ctx context.Context, t time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := t - c.w.now()
	if d <= 0 {
		return nil
	}
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return nil
	case <-ctx.Done():
		c.timer.Stop()
		return ctx.Err()
	}
}

// pass holds a server of s for the given time, from the arrival or when its
// turn comes, and returns when it ended by plan. Each of the equal steps of
// that time is told to tick, if there is one.
func (c *client) pass(ctx context.Context, s *station, arrival, length time.Duration, steps int, tick func(i int)) (time.Duration, error) {
	c.takePlace()
	start, err := s.enter(ctx, &c.place, arrival)
	if err != nil {
		return 0, err
	}
	for i := range steps {
		at := start + time.Duration(float64(length)*float64(i+1)/float64(steps))
		if err := c.until(ctx, at); err != nil {
			s.leave(max(start, min(c.w.now(), start+length)))
			return 0, err
		}
		if tick != nil {
			tick(i)
		}
	}
	s.leave(start + length)
	return start + length, nil
}

func (c *client) takePlace() {
	if c.place.start == nil {
		c.place.start = make(chan time.Duration, 1)
	}
}

// serviceTime draws how long the servers need for the next operation.
func (c *client) serviceTime() time.Duration {
	mean := float64(c.w.Service) / c.w.capacity()
	if c.w.Constant {
		return time.Duration(mean)
	}
	return time.Duration(c.rand.ExpFloat64() * mean)
}

// fate draws whether the next operation fails, and how.
func (c *client) fate() storage.Class {
	x := c.rand.Float64()
	for class, share := range c.w.Errors {
		if x < share {
			return storage.Class(class)
		}
		x -= share
	}
	return storage.None
}

// failure is what an operation of a class fails with, in words that say that
// it was meant to.
func failure(class storage.Class) error {
	sentinel := map[storage.Class]error{
		storage.Refused: errRefused, storage.Reset: errReset, storage.Denied: fs.ErrPermission, storage.NotFound: fs.ErrNotExist,
		storage.Busy: storage.ErrBusy, storage.Checksummed: storage.ErrChecksum, storage.Short: storage.ErrShort,
		storage.Timeout: context.DeadlineExceeded, storage.Other: errors.New("some other failure"),
	}[class]
	return fmt.Errorf("simulated failure: %w", sentinel)
}
