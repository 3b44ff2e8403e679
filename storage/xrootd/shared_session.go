package xrootd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"weir/storage/wireclient"
)

// A sharedSession is a session with a server that many clients use. One goroutine reads it and dispatches each
// response to the client that sent the request.
type sharedSession struct {
	pool    *sessionPool
	server  *server
	ready   chan struct{} // closed when the session is established or has failed
	conn    *loose        // valid after ready, as are the fields below
	wire    wire          // conn, or TLS on it
	flags   uint32
	secure  bool
	demands demands
	signs   *signer // used by the client that sends a request; nil: requests are not signed
	signed  []byte  // likewise: a request with its signature
	in      *bufio.Reader
	writing chan struct{} // holds a value while a request is being sent

	mu      sync.Mutex
	streams map[uint16]*clientStream // by their first stream id
	next    uint16
	err     error // why the session cannot be used any more
	open    int   // streams that are not closed
	stale   bool  // the server stopped responding: no new streams

	responses atomic.Int64 // complete responses
}

// newStream returns a new stream, nil if all stream ids are in use.
func (t *sharedSession) newStream() *clientStream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.stale || len(t.streams) >= maxBlocks {
		return nil
	}
	for {
		t.next = (t.next + blockSize) % (maxBlocks * blockSize)
		if t.streams[t.next] == nil {
			break
		}
	}
	b := &clientStream{session: t, first: t.next, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	t.streams[t.next] = b
	t.open++
	return b
}

// release counts a closed stream. silent is true if its operation timed out without any response to
// any client: other clients then get a new connection, and this connection is closed with its last
// stream.
func (t *sharedSession) release(silent bool) {
	t.mu.Lock()
	t.open--
	t.stale = t.stale || silent
	over := t.stale && t.open == 0
	t.mu.Unlock()
	if over {
		t.fail(fmt.Errorf("no response on the connection that all clients share: %w", os.ErrDeadlineExceeded))
	}
}

// remove removes a closed stream that expects no response. The session ends with its last stream.
func (t *sharedSession) remove(b *clientStream) {
	t.mu.Lock()
	if t.streams[b.first] == b {
		delete(t.streams, b.first)
	}
	over := len(t.streams) == 0 && t.err == nil
	if over {
		t.err = net.ErrClosed
	}
	t.mu.Unlock()
	if over {
		t.end()
	}
}

func (t *sharedSession) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// fail makes the session unusable and wakes its clients.
func (t *sharedSession) fail(err error) {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return
	}
	t.err = err
	all := make([]*clientStream, 0, len(t.streams))
	for _, b := range t.streams {
		all = append(all, b)
	}
	t.mu.Unlock()
	t.end()
	for _, b := range all {
		signal(b.ready)
	}
}

// end closes the connection of a session that has failed or has no clients left.
func (t *sharedSession) end() {
	t.pool.forget(t)
	select {
	case <-t.ready:
		if t.wire != nil {
			_ = t.wire.Close() // the session has failed before, or all responses have arrived
		}
	default: // connect is running and fails then
	}
}

// read dispatches responses until the connection ends.
func (t *sharedSession) read() {
	t.in = bufio.NewReaderSize(t.wire, payloadSize)
	for {
		if err := t.deliver(); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the server closed the connection that all clients share: %w", io.EOF)
			}
			t.fail(err)
			return
		}
	}
}

// deliver dispatches one response.
func (t *sharedSession) deliver() error {
	head, err := t.in.Peek(headSize)
	if err != nil {
		return err
	}
	f, err := parseFrame(head)
	if err != nil {
		return err
	}
	last := f.status != stOKSoFar && f.status != stWaitResp
	switch {
	case f.status == stAttn:
		if f, last, err = t.attention(f); err != nil {
			return err
		}
	case f.status == stStatus && f.size >= statusSize:
		if head, err = t.in.Peek(headSize + statusSize); err != nil {
			return err
		}
		last = head[headSize+7] != partialStatus
		f.size += int64(int32(binary.BigEndian.Uint32(head[headSize+12:])))
		if f.size < 0 || f.size > maxFrame {
			return wireclient.ProtocolError("a status of %d bytes", f.size)
		}
	}
	return t.dispatch(f, last)
}

// attention returns the response inside an attention message: the stream id of its client is in there.
func (t *sharedSession) attention(f frame) (frame, bool, error) {
	const inside = 8 + headSize
	if f.size < inside {
		return f, false, nil
	}
	b, err := t.in.Peek(headSize + inside)
	if err != nil {
		return f, false, err
	}
	if binary.BigEndian.Uint32(b[headSize:]) != attnResponse {
		return f, false, nil
	}
	inner, err := parseFrame(b[headSize+8:])
	f.stream = inner.stream
	return f, inner.status != stOKSoFar, err
}

// dispatch passes the response whose header is next in the buffer to its client.
func (t *sharedSession) dispatch(f frame, last bool) error {
	size := headSize + f.size
	t.mu.Lock()
	b := t.streams[f.stream/blockSize*blockSize]
	t.mu.Unlock()
	if b == nil {
		if f.status == stAttn {
			return t.skip(size)
		}
		return unexpectedFrame(f)
	}
	for size > 0 {
		chunk := t.pool.s.large.Get().(*[]byte)
		n, err := io.ReadFull(t.in, (*chunk)[:min(size, payloadSize)])
		if err != nil {
			return err
		}
		size -= int64(n)
		b.queue(chunk, n)
	}
	t.responses.Add(1)
	b.ended(last)
	return nil
}

// skip reads and discards n bytes.
func (t *sharedSession) skip(n int64) error {
	for n > 0 {
		k, err := t.in.Discard(int(min(n, payloadSize)))
		n -= int64(k)
		if err != nil {
			return err
		}
	}
	return nil
}
