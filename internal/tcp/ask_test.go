package tcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"weir/internal/require"
)

// slowLines answers each line with the same line after a while. After "half" it stops sending, but goes on receiving.
func slowLines(c *net.TCPConn) {
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if string(line) == "half\n" {
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, in)
			return
		}
		time.Sleep(2 * time.Millisecond)
		if _, err := c.Write(line); err != nil {
			return
		}
	}
}

// memory is a lender of one buffer, which is lent repeatedly.
type memory struct {
	lender
	bytes []byte
}

func (m *memory) Lend() []byte {
	m.lent++
	return m.bytes
}

// An asker sends requests over one connection, and lends the memory for the responses.
type asker struct {
	*testing.T
	c *Conn
	l memory
}

func (a *asker) ask(ctx context.Context, request string) (string, error) {
	if err := a.c.Begin(ctx, time.Now().Add(20*time.Second)); err != nil {
		return "", err
	}
	b := append(a.l.Lend()[:0], request...)
	if err := a.c.Ask(b, &a.l); err != nil {
		return "", err
	}
	var response []byte
	for len(response) < len(request) {
		n, err := a.c.ReadLate(&a.l)
		if err != nil {
			return string(response), err
		}
		response = append(response, a.l.bytes[:n]...)
		a.l.Return()
	}
	if a.l.lent != 0 {
		a.Fatalf("memory is lent %d times after a response", a.l.lent)
	}
	return string(response), nil
}

func (a *asker) echoes(request string) {
	a.Helper()
	in, out := a.c.In(), a.c.Out()
	got, err := a.ask(a.Context(), request)
	if err != nil || got != request {
		a.Fatalf("%d of %d bytes came back: %v", len(got), len(request), err)
	}
	if n := int64(len(request)); a.c.In()-in != n || a.c.Out()-out != n {
		a.Fatalf("%d bytes in and %d out of a request of %d", a.c.In()-in, a.c.Out()-out, n)
	}
}

// poses sends requests until they are sent from within the wait.
func (a *asker) poses() {
	a.Helper()
	for range 10 * lateResponses {
		if a.c.posing() {
			return
		}
		a.echoes("request\n")
	}
	a.Skip("responses were never waited for: the system is busy, or has no poller of ours")
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	return &asker{T: t, c: dial(t, dialer(t), "127.0.0.1", server(t, "127.0.0.1:0", slowLines)), l: memory{bytes: make([]byte, 1<<20)}}
}

func TestAskFromWithinTheWait(t *testing.T) {
	a := newAsker(t)
	a.poses()
	for range 2 * lateResponses {
		a.echoes("posed\n")
	}
	time.Sleep(askPeriod + 100*time.Millisecond) // the timer fires meanwhile
	a.echoes("after the period\n")
	if a.c.posing() {
		t.Error("the period has not ended")
	}
	a.poses()
}

// TestAskMoreThanThereIsRoomFor sends a request that is larger than any socket buffer.
func TestAskMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.poses()
	a.echoes(string(bytes.Repeat([]byte("x"), 16<<20)) + "\n")
	a.echoes("small again\n")
}

// TestAskNoticesAHalfClosedConnection has a server that stopped sending before the request, and takes it nevertheless.
func TestAskNoticesAHalfClosedConnection(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.poses()
	if _, err := a.c.Write([]byte("half\n")); err != nil {
		t.Fatal(err)
	}
	for a.c.Quiet() {
		time.Sleep(time.Millisecond)
	}
	if _, err := a.ask(t.Context(), "request\n"); !errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
}

func TestAskIsInterrupted(t *testing.T) {
	a := newAsker(t)
	a.poses()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := a.ask(ctx, "no end of line"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	a = newAsker(t)
	a.poses()
	require.NoError(t, a.c.Begin(t.Context(), time.Now().Add(20*time.Millisecond)))
	require.NoError(t, a.c.Ask([]byte("no end of line"), &a.l))
	if _, err := a.c.ReadLate(&a.l); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
