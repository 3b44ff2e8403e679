package sockdiag

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	batch   = 32 // sockets in a request: their answers fit into the default buffer of a netlink socket
	patient = 10 // calls after which sockets that were not found are looked for again
)

// A Reader reads sockets. It is for one goroutine at a time.
type Reader struct {
	fd       int
	sequence uint32
	request  []byte
	answer   []byte
	names    map[string]string
	remote   netip.AddrPort      // of the last filter
	known    map[uint32]identity // sockets of the last filter by inode
	other    map[uint32]bool     // inodes of the last filter that are not sockets of TCP, or not yet
	wait     int                 // calls until other is looked for again
}

// Open returns a Reader of the sockets in this process's network namespace. The caller must close
// it.
func Open() (*Reader, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, fmt.Errorf("cannot read the measurements of TCP sockets: %w (netlink inet_diag, kernel module tcp_diag)", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1) // shorter errors
	return &Reader{fd: fd, answer: make([]byte, 32<<10), names: map[string]string{},
		known: map[uint32]identity{}, other: map[uint32]bool{}}, nil
}

// OpenOf works like Open for the network namespace of a process, such as a process in a container.
// Another namespace than that of this process needs the rights of root.
func OpenOf(pid int) (*Reader, error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("cannot find the network namespace of process %d: %w", pid, err)
	}
	defer theirs.Close()
	own, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	if a, err := theirs.Stat(); err == nil {
		if b, err := own.Stat(); err == nil && os.SameFile(a, b) {
			return Open()
		}
	}
	var r *Reader
	done := make(chan error)
	go func() { // on a thread of its own, which ends with the goroutine
		runtime.LockOSThread()
		err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			r, err = Open()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return nil, fmt.Errorf("process %d is in another network namespace (a container): %w; run weir as root or in the container", pid, err)
	}
	return r, nil
}

// Close releases the Reader.
func (r *Reader) Close() error { return unix.Close(r.fd) }

// Sockets appends to into the sockets that f chooses, and returns it. Sockets that are listed by
// their inodes are looked for among all sockets once, and again each tenth call while one is
// missing; otherwise a call costs only the chosen sockets.
func (r *Reader) Sockets(f Filter, into []Socket) ([]Socket, error) {
	if f.Inodes == nil {
		err := r.dump(measurements, &f, func(_ identity, s *Socket) { into = append(into, *s) })
		return into, err
	}
	if err := r.find(&f); err != nil {
		return into, err
	}
	ids := make([]identity, 0, batch)
	for _, id := range r.known {
		if ids = append(ids, id); len(ids) < batch {
			continue
		}
		var err error
		if into, err = r.read(ids, &f, into); err != nil {
			return into, err
		}
		ids = ids[:0]
	}
	return r.read(ids, &f, into)
}

// find completes r.known and r.other to the inodes of f.
func (r *Reader) find(f *Filter) error {
	if f.Remote != r.remote {
		r.remote, r.wait = f.Remote, 0
		clear(r.known)
	}
	for n := range r.known {
		if !f.Inodes[n] {
			delete(r.known, n)
		}
	}
	for n := range r.other {
		if !f.Inodes[n] {
			delete(r.other, n)
		}
	}
	if r.wait--; r.wait > 0 && len(r.known)+len(r.other) == len(f.Inodes) || len(r.known) == len(f.Inodes) {
		return nil
	}
	r.wait = patient
	err := r.dump(0, &Filter{Remote: f.Remote}, func(id identity, s *Socket) {
		if f.Inodes[s.Inode] {
			r.known[s.Inode] = id
		}
	})
	for n := range f.Inodes {
		if _, found := r.known[n]; !found {
			r.other[n] = true
		} else {
			delete(r.other, n)
		}
	}
	return err
}

// read appends the sockets ids that f chooses, and removes those that are gone from r.known.
func (r *Reader) read(ids []identity, f *Filter, into []Socket) ([]Socket, error) {
	if len(ids) == 0 {
		return into, nil
	}
	r.request = r.request[:0]
	first := r.sequence + 1
	for i := range ids {
		r.sequence++
		r.request = appendExact(r.request, r.sequence, &ids[i])
	}
	answered := 0
	err := r.exchange(first, func(m message) (more bool, err error) {
		answered++
		var s Socket
		if m.kind == typeSocket {
			if _, ok := parseSocket(m.body, &s, r.names); ok && f.allows(&s) {
				into = append(into, s)
				return answered < len(ids), nil
			}
		}
		r.forget(ids[m.sequence-first])
		return answered < len(ids), nil
	})
	return into, err
}

// forget removes a socket that was closed.
func (r *Reader) forget(gone identity) {
	for n, id := range r.known {
		if id == gone {
			delete(r.known, n)
			r.other[n] = true
		}
	}
}

// dump calls visit for each socket with the remote end of f.
func (r *Reader) dump(extensions byte, f *Filter, visit func(id identity, s *Socket)) error {
	r.sequence++
	r.request = appendDump(r.request[:0], r.sequence, extensions, f)
	var s Socket
	return r.exchange(r.sequence, func(m message) (more bool, err error) {
		switch m.kind {
		case typeDone, typeError:
			if n := m.status(); n != 0 {
				return false, fmt.Errorf("cannot read the measurements of TCP sockets: %w (netlink inet_diag, kernel module tcp_diag)",
					unix.Errno(n))
			}
			return false, nil
		}
		if id, ok := parseSocket(m.body, &s, r.names); ok {
			visit(id, &s)
		}
		return true, nil
	})
}

// exchange sends r.request and calls visit for each message of the answer until visit returns false.
// Messages whose sequence number is not between first and r.sequence belong to an earlier request.
// The kernel answers before it returns from the call that sends, so nothing here waits.
func (r *Reader) exchange(first uint32, visit func(m message) (more bool, err error)) error {
	if err := unix.Sendto(r.fd, r.request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("cannot request the measurements of TCP sockets: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(r.fd, r.answer, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("the kernel's answer with the measurements of TCP sockets is incomplete: %w", err)
		}
		for b := r.answer[:n]; ; {
			m, rest, ok := nextMessage(b)
			if !ok {
				break
			}
			b = rest
			if m.sequence-first > r.sequence-first {
				continue
			}
			if more, err := visit(m); err != nil || !more {
				return err
			}
		}
	}
}
