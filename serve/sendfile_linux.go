package serve

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendHeld sends the waiting data; if more is set, further data follows at once, which the kernel
// then puts into the same packet.
func (c *conn) sendHeld(more bool) error {
	if !more || c.raw == nil || c.down != nil || c.s.total.down != nil {
		return c.release()
	}
	c.holding = false
	for len(c.held) > 0 {
		var n int
		var sendErr error
		c.touch()
		err := c.raw.Write(func(fd uintptr) bool {
			n, sendErr = unix.SendmsgN(int(fd), c.held, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			return !errors.Is(sendErr, unix.EAGAIN)
		})
		if err = errors.Join(err, ignoreInterrupt(sendErr)); err != nil {
			return err
		}
		n = max(n, 0)
		c.s.metrics.wireOut.Add(int64(n))
		c.held = c.held[:copy(c.held, c.held[n:])]
	}
	return nil
}

// sendFile makes the kernel send n bytes of f from off on, after the waiting data.
func (c *conn) sendFile(f *os.File, off, n int64) (sent int64, err error) {
	if c.raw == nil {
		return 0, errNoSendfile
	}
	src, err := f.SyscallConn()
	if err != nil {
		return 0, errNoSendfile
	}
	if err := c.sendHeld(true); err != nil {
		return 0, err
	}
	ctlErr := src.Control(func(fd uintptr) { sent, err = c.sendFrom(int(fd), off, n) })
	return sent, errors.Join(ctlErr, err)
}

func (c *conn) sendFrom(src int, off, n int64) (sent int64, err error) {
	var m, chunk int
	var sendErr error
	send := func(fd uintptr) bool {
		m, sendErr = unix.Sendfile(int(fd), src, &off, chunk)
		return !errors.Is(sendErr, unix.EAGAIN)
	}
	for sent < n {
		chunk = c.quantum(int(min(n-sent, sendBytes)))
		c.wait(c.down, c.s.total.down, chunk)
		c.touch()
		err := c.raw.Write(send)
		if sent == 0 && (errors.Is(sendErr, unix.EINVAL) || errors.Is(sendErr, unix.ENOSYS)) {
			return 0, errNoSendfile
		}
		if err = errors.Join(err, ignoreInterrupt(sendErr)); err != nil {
			return sent, os.NewSyscallError("sendfile", err)
		}
		if m == 0 && sendErr == nil {
			return sent, io.ErrUnexpectedEOF // the file became shorter
		}
		m = max(m, 0)
		sent += int64(m)
		c.s.metrics.wireOut.Add(int64(m))
		c.s.metrics.payloadOut.Add(int64(m))
	}
	return sent, nil
}

func ignoreInterrupt(err error) error {
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return nil
	}
	return err
}

// unpaced selects TCP's oldest congestion control for connections that do not leave this machine,
// on which no congestion is possible: the timers with which bbr paces its packets took a quarter of
// the CPU time of sending. It is a hint: failures do not matter.
func unpaced(_, address string, c syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().IsLoopback() {
		return nil
	}
	return c.Control(func(fd uintptr) { _ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") })
}
