package mover

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/unit"
	"weir/transfer"
)

// room checks whether the file system of f has n bytes left, so that a copy without enough space
// does not begin.
func room(f *os.File, n int64) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil || s.Blocks == 0 {
		return nil
	}
	free := int64(s.Bavail) * s.Bsize
	if n <= free {
		return nil
	}
	return failf(transfer.DestFull, "%s are needed, %s are free at the destination", unit.Bytes(float64(n)),
		fmt.Sprint(unit.Bytes(float64(free))))
}

// gather lets the kernel wake this process only once gulp bytes have arrived, if n bytes are still
// to come: that means fewer wake-ups and fewer system calls per byte. A mark above the remaining
// bytes would never wake a reader. It is a hint: failures do not matter.
func gather(c *conn, n int64, gulp int) {
	mark := int32(1)
	if n >= 2*int64(gulp) {
		mark = int32(gulp)
	}
	if c.tcp == nil || mark == max(c.lowat, 1) {
		return
	}
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, int(mark)) })
	if err == nil {
		c.lowat = mark
	}
}

// quiet reports whether nothing has arrived on an idle connection: if there are data, the other
// side has closed it, or it is out of step.
func quiet(c *conn) bool {
	if c.in.Buffered() > 0 {
		return false
	}
	if c.plain == nil {
		return true // data read by TLS are not visible; a request that fails is sent again
	}
	raw, err := c.plain.SyscallConn()
	if err != nil {
		return false
	}
	calm := false
	var one [1]byte
	err = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		calm = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && calm
}

// nearby is a round trip within which one connection fills any network: with the 6 MiB that Linux
// receives ahead, at 6 GB/s.
const nearby = time.Millisecond

// near reports whether the other end of c is so near that more connections would not increase the
// rate, and would only wait for each other when they write. Encrypted data benefit from more
// connections: each has a processor of its own.
func near(c *conn) bool {
	if c.plain == nil {
		return false
	}
	raw, err := c.plain.SyscallConn()
	if err != nil {
		return false
	}
	trip := time.Duration(0)
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			trip = time.Duration(info.Min_rtt) * time.Microsecond
		}
	})
	return trip > 0 && trip < nearby
}
