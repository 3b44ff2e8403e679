package xrootd

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"time"

	"weir/internal/tcp"
)

// A branch is one client's part of a trunk: what it reads are the answers to its own requests, what it writes goes
// out in whole requests.
type branch struct {
	t        *trunk
	first    uint16 // stream; the client's are the blockSize-1 after it
	ctx      context.Context
	deadline time.Time
	timer    *time.Timer
	rest     int64         // bytes of a request that are still to be sent
	in, out  int64         // bytes of this client
	signed   int           // requests since they were counted
	since    int64         // how much the trunk had heard when the last request was sent
	news     chan struct{} // receives when there are new answers
	room     chan struct{} // holds a value when something was read

	mu      sync.Mutex
	chunks  []chunk // answers that have come
	held    int     // bytes in chunks
	pending int     // requests whose last answer has not come
	closed  bool
}

// A chunk is a part of what has come.
type chunk struct {
	buf      *[]byte
	pos, end int
}

// maxHeld is how many bytes may lie ready for one client before the others have to wait for it.
const maxHeld = 1 << 20

var _ wire = (*branch)(nil)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// queue takes over n bytes for the client, when there is room for them. Small answers always find it: a client that
// writes does not read meanwhile.
func (b *branch) queue(buf *[]byte, n int) {
	b.mu.Lock()
	for b.held > maxHeld && !b.closed {
		b.mu.Unlock()
		<-b.room
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.closed {
		b.t.h.s.large.Put(buf)
		return
	}
	b.chunks = append(b.chunks, chunk{buf, 0, n})
	b.held += n
	signal(b.news)
}

// ended counts a request's last answer. A closed branch goes with the last.
func (b *branch) ended(last bool) {
	if !last {
		return
	}
	b.mu.Lock()
	b.pending--
	over := b.closed && b.pending <= 0
	b.mu.Unlock()
	if over {
		b.t.prune(b)
	}
}

// Begin starts an operation.
func (b *branch) Begin(ctx context.Context, deadline time.Time) error {
	b.ctx, b.deadline = ctx, deadline
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.t.failed()
}

// ReadLate is Read: what has come lies in memory already.
func (b *branch) ReadLate(l tcp.Lender) (int, error) { return b.Read(l.Lend()) }

// Read reads bytes of the client's own answers.
func (b *branch) Read(p []byte) (int, error) {
	for {
		if n := b.some(p); n > 0 {
			b.in += int64(n)
			return n, nil
		}
		if err := b.t.failed(); err != nil {
			return 0, err
		}
		if err := b.wait(); err != nil {
			return 0, err
		}
	}
}

func (b *branch) some(p []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.chunks) == 0 {
		return 0
	}
	c := &b.chunks[0]
	n := copy(p, (*c.buf)[c.pos:c.end])
	c.pos += n
	b.held -= n
	if c.pos == c.end {
		b.t.h.s.large.Put(c.buf)
		b.chunks = append(b.chunks[:0], b.chunks[1:]...)
	}
	signal(b.room)
	return n
}

// wait waits for news, as long as the operation may last.
func (b *branch) wait() error {
	over, stop := b.until()
	defer stop()
	select {
	case <-b.news:
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-over:
		return os.ErrDeadlineExceeded
	}
}

// until returns a channel that tells when the operation's time is over, nil if it has no end.
func (b *branch) until() (over <-chan time.Time, stop func() bool) {
	if b.deadline.IsZero() {
		return nil, func() bool { return true }
	}
	if b.timer == nil {
		b.timer = time.NewTimer(time.Until(b.deadline))
	} else {
		b.timer.Reset(time.Until(b.deadline))
	}
	return b.timer.C, b.timer.Stop
}

// Write sends requests or parts of one. From the head of a request to its end no other client sends.
func (b *branch) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		head := b.rest == 0
		if head {
			if err := b.enter(); err != nil {
				return done, err
			}
			b.rest = requestSize + int64(binary.BigEndian.Uint32(p[done+requestSize-4:]))
		}
		n := min(b.rest, int64(len(p)-done))
		part, before := p[done:done+int(n)], 0
		if head && b.t.signs != nil {
			var err error
			if part, err = b.sign(part); err != nil {
				return done, b.lost(err)
			}
			before = len(part) - int(n)
		}
		k, err := b.push(part)
		b.out += int64(k)
		k = max(0, k-before)
		done += k
		if b.rest -= int64(k); err != nil {
			return done, b.lost(err) // it is unknown how much of the request was sent
		}
		if b.rest == 0 {
			<-b.t.writing
		}
	}
	return done, nil
}

// lost fails the trunk in the middle of a request and lets the others find out.
func (b *branch) lost(err error) error {
	b.t.fail(err)
	b.rest = 0
	<-b.t.writing
	return err
}

// sign puts the signature of a request before its beginning, if it needs one.
func (b *branch) sign(begin []byte) ([]byte, error) {
	args := begin[requestSize:]
	if len(args) == 0 && b.rest > requestSize {
		args = nil // data that follows
	}
	t, before := b.t, b.t.signs.last
	var err error
	if t.signed, err = t.signs.sign(t.signed[:0], begin[:requestSize], args); err != nil {
		return nil, err
	}
	b.signed += int(t.signs.last - before)
	t.signed = append(t.signed, begin...)
	return t.signed, nil
}

// push sends bytes while no other client does. An operation that is canceled meanwhile gets a little time, so that
// the others' requests stay in step.
func (b *branch) push(p []byte) (int, error) {
	conn := b.t.conn
	_ = conn.SetWriteDeadline(b.deadline)                                                         // fails only on a closed connection
	stop := context.AfterFunc(b.ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(grace)) }) // likewise
	defer stop()
	return b.t.wire.Write(p)
}

// grace is how long a request that has begun to be sent may take after its operation was canceled.
const grace = 2 * time.Second

// enter waits until no other client is sending a request.
func (b *branch) enter() error {
	over, stop := b.until()
	defer stop()
	select {
	case b.t.writing <- struct{}{}:
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-over:
		return os.ErrDeadlineExceeded
	}
	b.mu.Lock()
	b.pending++
	b.mu.Unlock()
	b.since = b.t.heard.Load()
	return nil
}

// WriteMore is Write.
func (b *branch) WriteMore(p []byte) (int, error) { return b.Write(p) }

// Send is Write in slices, as long as the operation may last.
func (b *branch) Send(p []byte, moved func(int)) (int, error) {
	return inSlices(p, moved, func(slice []byte) (int, error) {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		if !b.deadline.IsZero() && time.Now().After(b.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		return b.Write(slice)
	})
}

// Discard is not there: what has come is in memory.
func (*branch) Discard(int64, func(int)) (int64, error) { return 0, errors.ErrUnsupported }

// In returns how many bytes came in for this client.
func (b *branch) In() int64 { return b.in }

// Out returns how many bytes this client sent.
func (b *branch) Out() int64 { return b.out }

// Close gives the branch up. A request that was not sent to its end is filled up with zeros: the others' requests
// follow it. What is written so belongs to a file whose writing has failed.
func (b *branch) Close() error {
	late := !b.deadline.IsZero() && time.Now().After(b.deadline)
	b.ctx, b.deadline = context.Background(), time.Now().Add(grace)
	zeros := make([]byte, min(b.rest, slice))
	for b.rest > 0 {
		if _, err := b.Write(zeros[:min(b.rest, slice)]); err != nil {
			break // the trunk is gone, and the others know
		}
	}
	b.mu.Lock()
	b.closed = true
	for _, c := range b.chunks {
		b.t.h.s.large.Put(c.buf)
	}
	b.chunks, b.held = nil, 0
	over := b.pending <= 0
	b.mu.Unlock()
	signal(b.room)
	if over {
		b.t.prune(b)
	}
	b.t.leave(late && !over && b.t.heard.Load() == b.since)
	return nil
}
