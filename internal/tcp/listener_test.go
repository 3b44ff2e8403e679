package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"weir/internal/require"
)

func TestListener(t *testing.T) {
	d := dialer(t)
	for _, at := range []string{"127.0.0.1", "::1"} {
		l, err := d.Listen(netip.MustParseAddr(at))
		if err != nil {
			t.Skip(err) // no IPv6
		}
		go func() {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr(at), l.Port()).String())
			if err == nil {
				_, _ = io.WriteString(c, "hello") // read below
				_, _ = c.Read(make([]byte, 1))    // until it is broken
				_ = c.Close()                     // it has done its part
			}
		}()
		c, err := l.Accept(t.Context(), time.Now().Add(time.Minute))
		require.NoError(t, err)
		b := make([]byte, 5)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		if c.Peer().Addr() != netip.MustParseAddr(at) || c.Local().Port() != l.Port() {
			t.Errorf("from %v to %v", c.Peer(), c.Local())
		}
		c.Break()
		if n, err := c.Read(b); err == nil {
			t.Errorf("%d bytes of a broken connection", n)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestListenerWaits(t *testing.T) {
	l, err := dialer(t).Listen(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	defer l.Close()
	if _, err := l.Accept(t.Context(), time.Now().Add(10*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := l.Accept(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, l.Wake)
	for range 2 {
		if _, err := l.Accept(t.Context(), time.Time{}); !errors.Is(err, ErrWoken) {
			t.Errorf("wake: %v", err)
		}
	}
	l.Rest()
	if _, err := l.Accept(t.Context(), time.Now().Add(10*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the rest: %v", err)
	}
}
