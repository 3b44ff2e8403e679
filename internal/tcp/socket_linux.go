//go:build linux

package tcp

import (
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A socket is a non-blocking socket that the runtime's poller watches. Its calls go through two closures that are
// made once; arguments and results pass through its fields, so that no call allocates.
type socket struct {
	file    *os.File
	raw     syscall.RawConn
	reading func(fd uintptr) bool
	writing func(fd uintptr) bool

	read  readCall
	write writeCall
	buf   []byte
	posed []byte // the bytes that recv sends before it waits; nil when all are sent
	late  Lender
	n     int
	errno syscall.Errno
	lowat int32 // SO_RCVLOWAT as it stands; 0 and 1 are the system's own

	conn    *Conn // whose long call runs
	peeked  byte
	flowing bool // the first bytes of a discarded body have come
	up      bool // connected as soon as it was opened
	looking func(fd uintptr)
	calm    bool // the result of the last check
	waited  bool // recv found nothing at first
}

type readCall uint8

const (
	callRecv readCall = iota
	callDiscard
	callMark
	callFrames
)

type writeCall uint8

const (
	callConnect writeCall = iota
	callSend
	callSendMore
	callBulk
)

// open makes a socket that has begun to connect to an address.
func (s *socket) open(to netip.AddrPort) error {
	domain := syscall.AF_INET6
	if to.Addr().Unmap().Is4() {
		domain = syscall.AF_INET
	}
	fd, err := syscall.Socket(domain, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, syscall.IPPROTO_TCP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		_ = syscall.Close(fd) // the first error is returned
		return os.NewSyscallError("setsockopt", err)
	}
	if err := startConnect(fd, to); err != nil && err != syscall.EINPROGRESS && err != syscall.EINTR { //nolint:errorlint // errno as it is
		_ = syscall.Close(fd) // the first error is returned
		return err
	}
	return s.adopt(fd)
}

// adopt takes a socket over and hands it to the poller.
func (s *socket) adopt(fd int) (err error) {
	s.up = isUp(uintptr(fd))
	s.file = os.NewFile(uintptr(fd), "tcp")
	if s.raw, err = s.file.SyscallConn(); err != nil {
		return err
	}
	s.reading, s.writing = s.onRead, s.onWrite
	return nil
}

func startConnect(fd int, to netip.AddrPort) error {
	if a := to.Addr().Unmap(); a.Is4() {
		return syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: a.As4()})
	}
	zone, err := zoneIndex(to.Addr().Zone())
	if err != nil {
		return err
	}
	return syscall.Connect(fd, &syscall.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16(), ZoneId: zone})
}

// connected reports, without waiting, whether the connection is up: on loopback it is before
// connect(2) returns.
func (s *socket) connected() bool { return s.up }

// connect waits until the connection is up or refused.
func (s *socket) connect(netip.AddrPort) error { return s.callWrite(callConnect, nil) }

// recv reads into p, or, with a lender, into the buffer that it lends. If something is posed, it
// sends that and waits before it reads, or returns without reading when not all of it could be
// sent.
func (s *socket) recv(p []byte, l Lender) (int, error) {
	s.read, s.buf, s.late, s.n, s.errno, s.waited = callRecv, p, l, 0, 0, false
	err := s.raw.Read(s.reading)
	s.buf, s.late = nil, nil
	return s.n, s.failure("recv", err)
}

func (s *socket) send(p []byte, more bool) (int, error) {
	call := callSend
	if more {
		call = callSendMore
	}
	err := s.callWrite(call, p)
	return s.n, err
}

func (s *socket) callWrite(call writeCall, p []byte) error {
	s.write, s.buf, s.n, s.errno = call, p, 0, 0
	err := s.raw.Write(s.writing)
	s.buf = nil
	name := "send"
	if call == callConnect {
		name = "connect"
	}
	return s.failure(name, err)
}

func (s *socket) failure(name string, err error) error {
	if err != nil {
		return err
	}
	if s.errno != 0 {
		return os.NewSyscallError(name, s.errno)
	}
	return nil
}

// onRead is the body of s.reading: true ends the wait.
func (s *socket) onRead(fd uintptr) bool {
	switch s.read {
	case callDiscard:
		return s.discardSome(fd)
	case callFrames:
		return s.framesSome(fd)
	case callMark:
		s.errno = s.mark(fd, 1)
		return true
	case callRecv:
	}
	if s.posed != nil {
		return s.pose(fd)
	}
	if s.late != nil {
		s.buf = s.late.Lend()
	}
	n, errno := receive(fd, unsafe.Pointer(unsafe.SliceData(s.buf)), len(s.buf), 0)
	if errno == syscall.EAGAIN {
		s.waited = true
		if s.late != nil {
			s.buf = nil
			s.late.Return()
		}
		return false
	}
	s.n, s.errno = n, errno
	return true
}

// pose sends the posed bytes: true ends the wait, because not all of it was sent. An error of that
// comes back when the rest is written.
func (s *socket) pose(fd uintptr) bool {
	n, _ := transmit(fd, s.posed, 0)
	if s.posed = s.posed[max(n, 0):]; len(s.posed) > 0 {
		return true
	}
	s.posed = nil
	if s.late != nil {
		s.late.Return()
	}
	return false
}

// onWrite is the body of s.writing: true ends the wait.
func (s *socket) onWrite(fd uintptr) bool {
	switch s.write {
	case callConnect:
		return s.connectDone(fd)
	case callBulk:
		return s.bulkSome(fd)
	default:
		return s.sendSome(fd)
	}
}

func (s *socket) connectDone(fd uintptr) bool {
	code, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		s.errno = syscall.EBADF
		return true
	}
	s.errno = syscall.Errno(code)
	return code != 0 || isUp(fd)
}

func isUp(fd uintptr) bool {
	var name syscall.RawSockaddrAny
	size := uint32(syscall.SizeofSockaddrAny)
	_, _, errno := syscall.RawSyscall(syscall.SYS_GETPEERNAME, fd, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size)))
	return errno == 0
}

func (s *socket) sendSome(fd uintptr) bool {
	flags := 0
	if s.write == callSendMore {
		flags = syscall.MSG_MORE
	}
	for s.n < len(s.buf) {
		n, errno := transmit(fd, s.buf[s.n:], flags)
		switch errno {
		case 0:
			s.n += n
		case syscall.EAGAIN:
			return false
		default:
			s.errno = errno
			return true
		}
	}
	return true
}

// transmit calls sendto(2) without waiting.
func transmit(fd uintptr, p []byte, flags int) (int, syscall.Errno) {
	flags |= syscall.MSG_NOSIGNAL | syscall.MSG_DONTWAIT
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			uintptr(flags), 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// receive calls recvfrom(2) without waiting. It never blocks, so the scheduler need not be notified
// (RawSyscall).
func receive(fd uintptr, p unsafe.Pointer, n int, flags int) (int, syscall.Errno) {
	for {
		got, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(p), uintptr(n), uintptr(flags|syscall.MSG_DONTWAIT), 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		return int(got), 0
	}
}

func (s *socket) quiet() bool {
	if s.looking == nil {
		s.looking = s.look // made once, and only for connections that are kept
	}
	s.calm = false
	_ = s.raw.Control(s.looking) // a closed socket is not quiet
	return s.calm
}

func (s *socket) look(fd uintptr) {
	_, errno := receive(fd, unsafe.Pointer(&s.peeked), 1, syscall.MSG_PEEK)
	s.calm = errno == syscall.EAGAIN
}

func (s *socket) setDeadline(t time.Time) {
	_ = s.file.SetDeadline(t) // fails only on a closed socket, which has no deadline
}

func (s *socket) close() error { return s.file.Close() }
