package xrootd

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"weir/internal/require"
)

// TestSenderLearnsOfALostSession checks that a client that waits to send on a shared session gets
// an error if the session was lost in the middle of another client's request; it has no deadline of
// its own.
func TestSenderLearnsOfALostSession(t *testing.T) {
	near, far := net.Pipe()
	h := newSessionPool(nil)
	conn := &loose{Conn: near}
	tr := &sharedSession{pool: h, ready: make(chan struct{}), writing: make(chan struct{}, 1), streams: map[uint16]*clientStream{},
		conn: conn, wire: conn}
	close(tr.ready)
	first, second := tr.newStream(), tr.newStream()
	for _, b := range []*clientStream{first, second} {
		require.NoError(t, b.Begin(t.Context(), time.Time{}))
	}
	p := [16]byte{}
	ping := appendRequest(nil, 0, rqPing, &p, 0)
	errs := make(chan error, 2)
	go func() { _, err := first.Write(ping); errs <- err }()
	if _, err := io.ReadFull(far, make([]byte, 4)); err != nil { // the first holds the session
		t.Fatal(err)
	}
	go func() { _, err := second.Write(ping); errs <- err }()
	require.NoError(t, far.Close())
	for range 2 {
		if err := <-errs; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("sending on a lost session: %v", err)
		}
	}
}
