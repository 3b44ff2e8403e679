package tcp

import (
	"errors"
	"time"
)

// ErrAnswered says that the other side has sent something before it took
// all that was to be sent to it.
var ErrAnswered = errors.New("answered before everything was sent")

const (
	// gulp is how many bytes the kernel gathers at most before it wakes a
	// client that discards: 4 MiB cost half the CPU of 1 MiB. gathered is how
	// many it may hold back for all clients together, since that is memory.
	gulp     = 4 << 20
	gathered = 256 << 20
	// small is a body that is not worth two settings of the socket.
	small = 128 << 10
	// tick is how late bytes may be reported that gather in the kernel, and
	// how long a sender does not look whether the other side has answered.
	tick = 250 * time.Millisecond
	// slice is how many bytes are sent between two reports.
	slice = 256 << 10
)

// bulk is what a long call works on.
type bulk struct {
	left  int64
	moved func(int)
	bytes []byte // to be sent; the last left of them still are
}

// Discard takes the next n bytes from the connection without bringing them
// into memory, where the system can do that. It reports them as they come
// and returns how many came; fewer than n only with an error
// (io.ErrUnexpectedEOF when the other side has closed).
func (c *Conn) Discard(n int64, moved func(int)) (int64, error) {
	c.long = bulk{left: n, moved: moved}
	c.watch.discarding.Add(1)
	err := c.discard()
	c.watch.discarding.Add(-1)
	done := n - c.long.left
	c.long = bulk{}
	return done, err
}

// Send sends all of p, as Write does, and reports the bytes as they go. It
// returns how many went; fewer than all only with an error. When the other side
// has answered before it took everything, Send stops with ErrAnswered.
func (c *Conn) Send(p []byte, moved func(int)) (int, error) {
	c.long = bulk{left: int64(len(p)), moved: moved, bytes: p}
	err := c.sendBulk()
	done := len(p) - int(c.long.left)
	c.long = bulk{}
	return done, err
}

// share returns how many bytes one of the clients that discard may leave to
// gather.
func (w *watch) share() int64 {
	return min(gulp, max(small, gathered/max(w.discarding.Load(), 1)))
}

// progress counts bytes of a long call, incoming or outgoing.
func (c *Conn) progress(n int, counter *int64) {
	*counter += int64(n)
	c.long.left -= int64(n)
	if c.long.moved != nil {
		c.long.moved(n)
	}
}

// tickWithin makes sure that the poller wakes the connection within a tick.
func (c *Conn) tickWithin() {
	at := c.clock.now() + int64(tick)
	if c.armed == 0 || c.armed > at {
		c.arm(at)
	}
}
