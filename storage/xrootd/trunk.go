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

// A trunk is a session with a server that many clients use. One goroutine reads it and hands each answer to the
// client that asked.
type trunk struct {
	h       *shared
	server  *server
	ready   chan struct{} // closed when the session is there, or has failed
	conn    *loose        // valid after ready, as are those below
	wire    wire          // conn, or TLS on it
	flags   uint32
	secure  bool
	demands demands
	signs   *signer // used by who is sending a request; nil: nothing is signed
	signed  []byte  // likewise: a request with its signature
	in      *bufio.Reader
	writing chan struct{} // holds a value while a request is being sent

	mu       sync.Mutex
	branches map[uint16]*branch // by their first stream
	next     uint16
	err      error // why it can no longer be used
	open     int   // branches that are not closed
	stale    bool  // the server has fallen silent: no new branches

	heard atomic.Int64 // answers that have come to their end
}

// branch returns a new branch, nil if there is no room for one.
func (t *trunk) branch() *branch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.stale || len(t.branches) >= maxBlocks {
		return nil
	}
	for {
		t.next = (t.next + blockSize) % (maxBlocks * blockSize)
		if t.branches[t.next] == nil {
			break
		}
	}
	b := &branch{t: t, first: t.next, news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	t.branches[t.next] = b
	t.open++
	return b
}

// leave notes that a branch was closed. When the server said nothing to anyone until its operation timed out,
// others get another connection, and this one ends with the last client that still hopes.
func (t *trunk) leave(silent bool) {
	t.mu.Lock()
	t.open--
	t.stale = t.stale || silent
	over := t.stale && t.open == 0
	t.mu.Unlock()
	if over {
		t.fail(fmt.Errorf("the server says nothing more on the connection that all clients share: %w", os.ErrDeadlineExceeded))
	}
}

// prune takes off a branch that is closed and owes nothing. The session ends with its last client.
func (t *trunk) prune(b *branch) {
	t.mu.Lock()
	if t.branches[b.first] == b {
		delete(t.branches, b.first)
	}
	over := len(t.branches) == 0 && t.err == nil
	if over {
		t.err = net.ErrClosed
	}
	t.mu.Unlock()
	if over {
		t.end()
	}
}

func (t *trunk) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// fail makes the trunk unusable and tells its clients.
func (t *trunk) fail(err error) {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return
	}
	t.err = err
	all := make([]*branch, 0, len(t.branches))
	for _, b := range t.branches {
		all = append(all, b)
	}
	t.mu.Unlock()
	t.end()
	for _, b := range all {
		signal(b.news)
	}
}

// end closes the connection of a trunk that has failed or has no clients left.
func (t *trunk) end() {
	t.h.forget(t)
	select {
	case <-t.ready:
		if t.wire != nil {
			_ = t.wire.Close() // it has failed before, or everything has been said
		}
	default: // it is being connected: that fails then
	}
}

// read hands answers to clients until the connection ends.
func (t *trunk) read() {
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

// deliver hands one answer to its client.
func (t *trunk) deliver() error {
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
	return t.hand(f, last)
}

// attention finds out for whom a message is: it says so inside.
func (t *trunk) attention(f frame) (frame, bool, error) {
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

// hand gives the answer whose head is next to read, all of its bytes, to the client that it is for.
func (t *trunk) hand(f frame, last bool) error {
	size := headSize + f.size
	t.mu.Lock()
	b := t.branches[f.stream/blockSize*blockSize]
	t.mu.Unlock()
	if b == nil {
		if f.status == stAttn {
			return t.pass(size)
		}
		return strange(f)
	}
	for size > 0 {
		chunk := t.h.s.large.Get().(*[]byte)
		n, err := io.ReadFull(t.in, (*chunk)[:min(size, payloadSize)])
		if err != nil {
			return err
		}
		size -= int64(n)
		b.queue(chunk, n)
	}
	t.heard.Add(1)
	b.ended(last)
	return nil
}

// pass reads and drops n bytes.
func (t *trunk) pass(n int64) error {
	for n > 0 {
		k, err := t.in.Discard(int(min(n, payloadSize)))
		n -= int64(k)
		if err != nil {
			return err
		}
	}
	return nil
}
