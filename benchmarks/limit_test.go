package bench

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/burn"
	"weir/internal/trust"
)

// systemCalls names the side that does little more than system calls: see runLimit and runCopyLimit.
const systemCalls = "system calls"

// limitSide runs little more than the system calls of a client, for a number of files of one size
// over a number of connections, in a process of its own. ca is a file, or "".
func (r *rig) limitSide(op, url, ca string, files int, size int64, streams int) side {
	return side{systemCalls, func() (figures, error) {
		u, err := r.child(self(), limitWord, op, url, ca, strconv.Itoa(files), strconv.FormatInt(size, 10), strconv.Itoa(streams))
		if err != nil {
			return nil, err
		}
		cpu, err := number(`([0-9.]+) s of CPU`, u.out)
		if err != nil {
			return nil, err
		}
		took, err := number(`in ([0-9.]+) s`, u.out)
		if err != nil {
			return nil, err
		}
		gb := float64(files) * float64(size) / 1e9
		return figures{throughput: gb * 1e9 / took, clientCPU: cpu / gb}, nil
	}}
}

// limitWord makes this program run a loop of these system calls instead of the comparison.
const limitWord = "system-calls"

// runLimit reads or writes files repeatedly, each connection with a blocking socket. The kernel
// drops received data, in calls that wait for 4 MiB. The first response gives the length of all
// further responses, also over TLS, so they are neither decrypted nor parsed. Uploads send the same
// 256 KiB each time. Its arguments are read, pages (of the XRootD protocol, with checksums) or
// write, the URL, the file of the authority or "", the number of files, their size and the number
// of connections. It prints its CPU time without the CPU time of the start.
func runLimit(args []string, out io.Writer) error {
	files, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(args[4], 10, 64)
	if err != nil {
		return err
	}
	streams, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	ones := make([]func() error, streams)
	for i := range ones {
		l, one, err := newLimit(args[0], args[1], args[2], size)
		if err != nil {
			return err
		}
		defer syscall.Close(l.fd)
		for range 2 { // TLS sends its tickets with the first response
			if err := one(); err != nil {
				return err
			}
		}
		l.known, ones[i] = true, one
	}
	begin, before := time.Now(), burn.Process()
	var all sync.WaitGroup
	errs := make([]error, streams)
	for i, one := range ones {
		all.Go(func() {
			for n := i; n < files && errs[i] == nil; n += streams {
				errs[i] = one()
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%.6f s of CPU in %.6f s\n", (burn.Process() - before).Seconds(), time.Since(begin).Seconds())
	return err
}

// newLimit connects, and returns the connection and a function that transfers one file.
func newLimit(op, target, ca string, size int64) (*limit, func() error, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, nil, err
	}
	c, err := block(u.Host)
	if err != nil {
		return nil, nil, err
	}
	l := &limit{blocked: c, stream: c, url: u, size: size}
	if ca != "" {
		pool, err := trust.Authorities(ca)
		if err != nil {
			return nil, nil, err
		}
		l.stream = tls.Client(c, &tls.Config{RootCAs: pool, ServerName: u.Hostname()})
	}
	switch {
	case op == "write":
		return l, l.write, nil
	case u.Scheme == "root":
		return l, func() error { return l.readRoot(op == "pages") }, nil
	}
	return l, l.read, nil
}

// A limit is a connection that transfers files.
type limit struct {
	*blocked
	stream io.ReadWriter // TLS on it, or itself
	url    *url.URL
	size   int64
	known  bool  // wire is the length of all further responses
	wire   int64 // length of the last response, in bytes of the connection
	handle []byte
}

// read sends one GET. The first responses are read, all further responses are dropped.
func (l *limit) read() error {
	from := l.in
	if _, err := fmt.Fprintf(l.stream, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", l.url.Path, l.url.Host); err != nil {
		return err
	}
	if l.known {
		return l.drop(l.wire)
	}
	body, err := l.answer("200")
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, l.stream, l.size-int64(len(body)))
	l.wire = l.in - from
	return err
}

// answer reads the head of a response and returns the part of the body that was received with it.
func (l *limit) answer(status string) ([]byte, error) {
	var all []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := l.stream.Read(buf)
		if err != nil {
			return nil, err
		}
		all = append(all, buf[:n]...)
		if i := bytes.Index(all, []byte("\r\n\r\n")); i >= 0 {
			if !bytes.HasPrefix(all, []byte("HTTP/1.1 "+status)) {
				return nil, fmt.Errorf("answer %q", all[:i])
			}
			return all[i+4:], nil
		}
	}
}

// write sends one PUT.
func (l *limit) write() error {
	_, err := fmt.Fprintf(l.stream, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", l.url.Path, l.url.Host, l.size)
	for left := l.size; left > 0 && err == nil; {
		var n int
		n, err = l.stream.Write(piece[:min(left, int64(len(piece)))])
		left -= int64(n)
	}
	if err != nil {
		return err
	}
	_, err = l.answer("20")
	return err
}

var piece [256 << 10]byte

// rootChunk is the number of bytes that one read requests, as in xrdcp and weir.
const rootChunk = 8 << 20

// readRoot reads a file by the XRootD protocol, by kXR_pgread or kXR_read.
func (l *limit) readRoot(pages bool) error {
	if l.handle == nil {
		var err error
		if l.handle, err = bareOpen(l.blocked, "/"+strings.TrimLeft(l.url.Path, "/")); err != nil {
			return err
		}
	}
	for at := int64(0); at < l.size; at += rootChunk {
		read := [16]byte{}
		copy(read[:4], l.handle)
		binary.BigEndian.PutUint64(read[4:], uint64(at))
		binary.BigEndian.PutUint32(read[12:], uint32(min(rootChunk, l.size-at)))
		code := uint16(3013)
		if pages {
			code = 3030
		}
		if _, err := l.Write(bareRequest(code, read, "")); err != nil {
			return err
		}
		for more := true; more; {
			var err error
			if more, err = l.part(); err != nil {
				return err
			}
		}
	}
	return nil
}

// part drops one part of a response to a read, and reports whether more parts follow.
func (l *limit) part() (more bool, err error) {
	var head [8]byte
	if _, err := io.ReadFull(l.blocked, head[:]); err != nil {
		return false, err
	}
	status, n := binary.BigEndian.Uint16(head[2:]), int64(binary.BigEndian.Uint32(head[4:]))
	switch status {
	case 0, 4000: // kXR_ok, kXR_oksofar
		return status == 4000, l.drop(n)
	case 4007: // kXR_status: its body is followed by the pages
		body := make([]byte, n)
		if _, err := io.ReadFull(l.blocked, body); err != nil || n < 16 {
			return false, errors.Join(fmt.Errorf("a status of %d bytes", n), err)
		}
		return body[7] == 1, l.drop(int64(binary.BigEndian.Uint32(body[12:]))) // kXR_PartialResult
	}
	return false, fmt.Errorf("status %d", status)
}

// A blocked is a connection whose calls block a thread: no poller takes part.
type blocked struct {
	net.Conn // nil: crypto/tls calls only the methods below
	fd       int
	mark     int
	in       int64
}

func block(address string) (*blocked, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	to, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	if err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return &blocked{fd: fd}, nil
}

func (c *blocked) Read(p []byte) (int, error) {
	if err := c.wakeAt(1); err != nil {
		return 0, err
	}
	n, err := syscall.Read(c.fd, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	c.in += int64(max(n, 0))
	return max(n, 0), err
}

func (c *blocked) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(c.fd, p[done:])
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// drop makes the kernel drop n bytes. It waits in poll: recv itself, after it has dropped a part,
// waits for the whole mark again.
func (c *blocked) drop(n int64) error {
	for n > 0 {
		if err := c.wakeAt(int(min(n, 4<<20))); err != nil {
			return err
		}
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		got, _, errno := syscall.Syscall6(syscall.SYS_RECVFROM, uintptr(c.fd), 0, uintptr(n), syscall.MSG_TRUNC|syscall.MSG_DONTWAIT, 0, 0)
		switch {
		case errno != 0 && errno != syscall.EAGAIN:
			return errno
		case errno == 0 && got == 0:
			return io.ErrUnexpectedEOF
		case errno == 0:
			n -= int64(got)
		}
	}
	return nil
}

// wakeAt makes the kernel wake this side as soon as mark bytes are available.
func (c *blocked) wakeAt(mark int) error {
	if mark == c.mark {
		return nil
	}
	c.mark = mark
	return syscall.SetsockoptInt(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, mark)
}
