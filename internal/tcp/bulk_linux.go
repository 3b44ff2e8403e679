//go:build linux

package tcp

import (
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// discard runs the wait of Discard until all bytes are dropped.
func (c *Conn) discard() error {
	s := &c.sock
	for c.long.left > 0 {
		s.read, s.errno, s.conn = callDiscard, 0, c
		err := s.raw.Read(s.reading)
		s.conn = nil
		if err = s.failure("recv", err); err != nil {
			if err = c.again(err); err != nil {
				return err
			}
			continue
		}
		if c.long.left > 0 {
			return io.ErrUnexpectedEOF
		}
	}
	return c.unmarked()
}

// unmarked takes the mark away.
func (c *Conn) unmarked() error {
	for {
		err := c.sock.unmark()
		if err == nil {
			return nil
		}
		if err = c.again(err); err != nil { // a tick that has passed does not end the operation
			return err
		}
	}
}

// discardSome drops the bytes that have arrived: with MSG_TRUNC, TCP counts bytes without copying
// them. It returns true when there is nothing to wait for: all bytes are dropped, the other side
// has closed, or the connection broke.
//
// Before it waits it sets the mark for a wake-up to a gulp, but never to more than the remaining
// bytes: the tail of the body would wake no reader. The first byte is waited for alone, because its
// time is measured. A tick drains the bytes below the mark when the other side is slow.
func (s *socket) discardSome(fd uintptr) bool {
	c := s.conn
	for {
		n, errno := receive(fd, nil, int(min(c.long.left, 1<<30)), syscall.MSG_TRUNC)
		switch {
		case errno == syscall.EAGAIN:
			s.errno = s.gather(fd, c, c.long.left)
			return s.errno != 0
		case errno != 0 || n == 0:
			s.errno = errno
			return true
		}
		c.progress(n, &c.in)
		s.flowing = true
		if c.long.left == 0 {
			s.flowing = false
			return true
		}
	}
}

// gather sets the mark at which the kernel wakes the reader; at least left bytes are still to come.
func (s *socket) gather(fd uintptr, c *Conn, left int64) syscall.Errno {
	mark := int32(min(left, c.watch.share()))
	if !s.flowing || mark < small && s.lowat <= 1 {
		return 0
	}
	c.wakeWithin(tick)
	return s.mark(fd, mark)
}

func (s *socket) mark(fd uintptr, mark int32) syscall.Errno {
	if mark == s.lowat || mark <= 1 && s.lowat <= 1 {
		return 0
	}
	s.lowat = mark
	if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, int(mark)); err != nil {
		return syscall.EINVAL
	}
	return 0
}

// unmark takes the mark away, outside of a wait.
func (s *socket) unmark() error {
	if s.lowat <= 1 {
		return nil
	}
	s.read, s.errno = callMark, 0
	err := s.raw.Read(s.reading)
	return s.failure("setsockopt", err)
}

// discardFrames runs the wait of DiscardFrames until the caller needs a frame.
func (c *Conn) discardFrames() error {
	s := &c.sock
	s.flowing = true // the time of the first byte is measured before
	for waiting := true; waiting; {
		s.read, s.n, s.errno, s.conn = callFrames, 0, 0, c
		err := s.raw.Read(s.reading)
		s.conn = nil
		if err = s.failure("recv", err); err == nil && s.n == 0 {
			err = io.ErrUnexpectedEOF
		}
		waiting = err != nil
		if err != nil {
			if err = c.again(err); err != nil {
				s.flowing = false
				return err
			}
		}
	}
	s.flowing = false
	return c.unmarked()
}

// framesSome drops frames, and reads their heads, as long as something is there. It leaves in s.n
// the result of the last call: 0 at the end of the connection.
func (s *socket) framesSome(fd uintptr) bool {
	c, f := s.conn, s.conn.frames
	for {
		var errno syscall.Errno
		if f.Drop > 0 {
			s.n, errno = receive(fd, nil, int(min(f.Drop, 1<<30)), syscall.MSG_TRUNC)
		} else {
			s.n, errno = receive(fd, unsafe.Pointer(&f.Head[f.Have]), len(f.Head)-f.Have, 0)
		}
		switch {
		case errno == syscall.EAGAIN:
			s.errno = s.gather(fd, c, f.atLeast())
			return s.errno != 0
		case errno != 0 || s.n == 0:
			s.errno = errno
			return true
		}
		c.in += int64(s.n)
		if f.Drop > 0 {
			f.Drop -= int64(s.n)
			continue
		}
		if f.Have += s.n; f.Have == len(f.Head) && !f.headRead() {
			return true
		}
	}
}

// sendBulk runs the wait of Send until all bytes are sent.
func (c *Conn) sendBulk() error {
	s := &c.sock
	for c.long.left > 0 {
		c.wakeWithin(tick)
		if err := c.stopped(); err != nil {
			return err
		}
		s.write, s.errno, s.conn = callBulk, 0, c
		err := s.raw.Write(s.writing)
		s.conn = nil
		if err = s.failure("send", err); err != nil {
			if err = c.again(err); err != nil {
				return err
			}
			if !s.quiet() {
				return ErrAnswered
			}
		}
	}
	return nil
}

// bulkSome sends the bytes that the kernel accepts now. From memory that is in a core's cache this
// costs less than sendfile, which handles each page by itself.
func (s *socket) bulkSome(fd uintptr) bool {
	c := s.conn
	for c.long.left > 0 {
		rest := c.long.bytes[int64(len(c.long.bytes))-c.long.left:]
		rest = rest[:min(len(rest), slice)]
		n, errno := transmit(fd, rest, 0)
		switch errno {
		case 0:
			c.progress(n, &c.out)
		case syscall.EAGAIN:
			return false
		default:
			s.errno = errno
			return true
		}
	}
	return true
}

func zoneIndex(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if i, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(i), nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, os.NewSyscallError("zone", err)
	}
	return uint32(i.Index), nil
}
