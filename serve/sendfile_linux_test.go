package serve

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

// TestUnpaced: traffic within this machine is sent without bbr's timers.
func TestUnpaced(t *testing.T) {
	s, err := New(Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	l, err := s.Listen(t.Context())
	require.NoError(t, err)
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	var name string
	ctlErr := raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	if name = strings.TrimRight(name, "\x00"); name != "reno" || err != nil || ctlErr != nil {
		t.Errorf("%q, %v, %v", name, err, ctlErr)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
