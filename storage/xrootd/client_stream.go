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

// A clientStream is one client's part of a sharedSession. It reads the responses to this client's requests and writes
// whole requests.
type clientStream struct {
	session  *sharedSession
	first    uint16 // stream; the client's are the blockSize-1 after it
	ctx      context.Context
	deadline time.Time
	timer    *time.Timer
	rest     int64         // bytes of a request that are still to be sent
	in, out  int64         // bytes of this client
	signed   int           // requests since they were counted
	since    int64         // responses of the session when the last request was sent
	ready    chan struct{} // receives when there are new responses
	room     chan struct{} // holds a value when bytes were read

	mu      sync.Mutex
	chunks  []chunk // responses that have arrived
	held    int     // bytes in chunks
	pending int     // requests whose last response has not arrived
	closed  bool
}

// A chunk is a part of a response.
type chunk struct {
	buf      *[]byte
	pos, end int
}

// maxHeld is the number of unread bytes of one client above which the session waits for this client.
const maxHeld = 1 << 20

var _ wire = (*clientStream)(nil)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// queue appends n bytes for the client and blocks while too many are unread. Small responses never block, since a
// client does not read while it writes.
func (b *clientStream) queue(buf *[]byte, n int) {
	b.mu.Lock()
	for b.held > maxHeld && !b.closed {
		b.mu.Unlock()
		<-b.room
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.closed {
		b.session.pool.s.large.Put(buf)
		return
	}
	b.chunks = append(b.chunks, chunk{buf, 0, n})
	b.held += n
	signal(b.ready)
}

// ended counts the last response to a request. A closed stream is removed with its last response.
func (b *clientStream) ended(last bool) {
	if !last {
		return
	}
	b.mu.Lock()
	b.pending--
	over := b.closed && b.pending <= 0
	b.mu.Unlock()
	if over {
		b.session.remove(b)
	}
}

// Begin starts an operation.
func (b *clientStream) Begin(ctx context.Context, deadline time.Time) error {
	b.ctx, b.deadline = ctx, deadline
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.session.failed()
}

// ReadLate is Read, since the bytes are in memory.
func (b *clientStream) ReadLate(l tcp.Lender) (int, error) { return b.Read(l.Lend()) }

// Read reads bytes of the responses to this client.
func (b *clientStream) Read(p []byte) (int, error) {
	for {
		if n := b.some(p); n > 0 {
			b.in += int64(n)
			return n, nil
		}
		if err := b.session.failed(); err != nil {
			return 0, err
		}
		if err := b.wait(); err != nil {
			return 0, err
		}
	}
}

func (b *clientStream) some(p []byte) int {
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
		b.session.pool.s.large.Put(c.buf)
		b.chunks = append(b.chunks[:0], b.chunks[1:]...)
	}
	signal(b.room)
	return n
}

// wait waits for a response until the deadline of the operation.
func (b *clientStream) wait() error {
	over, stop := b.until()
	defer stop()
	select {
	case <-b.ready:
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-over:
		return os.ErrDeadlineExceeded
	}
}

// until returns a channel that receives at the deadline of the operation, nil without a deadline.
func (b *clientStream) until() (over <-chan time.Time, stop func() bool) {
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
func (b *clientStream) Write(p []byte) (int, error) {
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
		if head && b.session.signs != nil {
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
			<-b.session.writing
		}
	}
	return done, nil
}

// lost fails the session in the middle of a request.
func (b *clientStream) lost(err error) error {
	b.session.fail(err)
	b.rest = 0
	<-b.session.writing
	return err
}

// sign puts the signature of a request before its beginning, if it needs one.
func (b *clientStream) sign(begin []byte) ([]byte, error) {
	args := begin[requestSize:]
	if len(args) == 0 && b.rest > requestSize {
		args = nil // data that follows
	}
	t, before := b.session, b.session.signs.last
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
func (b *clientStream) push(p []byte) (int, error) {
	conn := b.session.conn
	_ = conn.SetWriteDeadline(b.deadline)                                                         // fails only on a closed connection
	stop := context.AfterFunc(b.ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(grace)) }) // likewise
	defer stop()
	return b.session.wire.Write(p)
}

// grace is the time within which a request that is partly sent may be completed after its operation
// was canceled.
const grace = 2 * time.Second

// enter waits until no other client is sending a request.
func (b *clientStream) enter() error {
	over, stop := b.until()
	defer stop()
	select {
	case b.session.writing <- struct{}{}:
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-over:
		return os.ErrDeadlineExceeded
	}
	b.mu.Lock()
	b.pending++
	b.mu.Unlock()
	b.since = b.session.responses.Load()
	return nil
}

// WriteMore is Write.
func (b *clientStream) WriteMore(p []byte) (int, error) { return b.Write(p) }

// Send is Write in slices, as long as the operation may last.
func (b *clientStream) Send(p []byte, moved func(int)) (int, error) {
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

// Discard is not supported: received bytes are in memory already.
func (*clientStream) Discard(int64, func(int)) (int64, error) { return 0, errors.ErrUnsupported }

// In returns how many bytes came in for this client.
func (b *clientStream) In() int64 { return b.in }

// Out returns how many bytes this client sent.
func (b *clientStream) Out() int64 { return b.out }

// Close closes the stream. A partly sent request is filled up with zeros, since the other clients'
// requests follow it. The zeros end up in a file whose write has failed.
func (b *clientStream) Close() error {
	late := !b.deadline.IsZero() && time.Now().After(b.deadline)
	b.ctx, b.deadline = context.Background(), time.Now().Add(grace)
	zeros := make([]byte, min(b.rest, slice))
	for b.rest > 0 {
		if _, err := b.Write(zeros[:min(b.rest, slice)]); err != nil {
			break // the session has failed, which its other clients see
		}
	}
	b.mu.Lock()
	b.closed = true
	for _, c := range b.chunks {
		b.session.pool.s.large.Put(c.buf)
	}
	b.chunks, b.held = nil, 0
	over := b.pending <= 0
	b.mu.Unlock()
	signal(b.room)
	if over {
		b.session.remove(b)
	}
	b.session.release(late && !over && b.session.responses.Load() == b.since)
	return nil
}
