// Package mover copies one file from a site to another: it pulls from any HTTP server, and pushes
// to any server that supports WebDAV.
//
// A pulled file is written under a temporary name, .weir/ITEM.EPOCH.part below the site's root. The
// written data are read back while they are still in the processor's cache, and the adler32 of the
// data read back is compared with the expected checksum. Then the file is put on stable storage and
// gets its name, which never replaces another file. So Outcome's success means: the file of this
// name has this size and checksum, and outlives a power failure (see Options.Unsynced).
//
// The data left by a broken attempt are used by the next attempt at the same item, of any epoch,
// after they were read again and match the recorded checksums. If an endpoint keeps parts
// (transfer/endpoint/parts.go), only the missing and the damaged parts are pushed. A Mover only
// ever removes temporaries that a Mover of the same state folder made.
package mover

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/adler"
	"weir/internal/tpc"
	"weir/transfer"
)

// Hidden is the folder of temporaries, below the root of a site.
const Hidden = transfer.Hidden

// Options configure a Mover. The comment of each field defines the meaning of its zero value.
type Options struct {
	Root  string // folder of the site; it must exist
	State string // private folder for data that must outlive the process; "" is .weir below Root

	CAs   *x509.CertPool             // authorities that may vouch for endpoints without a pin; nil is the system's
	Guard func(netip.AddrPort) error // refuses addresses that must not be connected to; nil allows all
	Stall time.Duration              // time without any byte before an attempt is given up; 0 is 60 s

	// Buffer is the number of bytes read, written and read back at once; 0 is DefaultBuffer. Each
	// stream of an attempt has a buffer. Data that the kernel moves by itself, without TLS, only
	// pass through it when they are read back.
	Buffer int

	// Unsynced leaves the time at which data reach stable storage to the operating system: after a
	// power failure, finished files may be lost, or empty. It is for scratch space.
	Unsynced bool

	// Unread disables reading back, and so the checksum: no outcome is verified then. No agent sets
	// it; it serves to measure the cost of the checksum.
	Unread bool

	Now func() time.Time // the coordinator's clock; nil is this machine's
}

// A Mover copies files for one site. It is made by New and closed after its
// last Do has returned. It is safe for concurrent use.
type Mover struct {
	opt   Options
	root  *os.Root
	made  *made
	pool  pool
	sums  tpc.Sums
	saver *saver
	bufs  sync.Pool // *[]byte of Options.Buffer
	moved atomic.Int64

	mu     sync.Mutex
	active map[int64]*running // by item
	kept   map[int64]int64    // item: epoch of the part that an earlier attempt left
	dirs   map[string]bool    // folders that exist
}

// running is an attempt under way.
type running struct {
	epoch  int64
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// DefaultBuffer is the buffer of a Mover in bytes: docs/benchmarks.md compares sizes. MinBuffer and MaxBuffer bound it.
const (
	DefaultBuffer = 256 << 10
	MinBuffer     = 16 << 10
	MaxBuffer     = 64 << 20
)

// New opens the folder of a site. Only one Mover at a time may use a state folder.
func New(o Options) (*Mover, error) {
	o.Stall = cmp.Or(o.Stall, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Buffer = cmp.Or(o.Buffer, DefaultBuffer); o.Buffer < MinBuffer || o.Buffer > MaxBuffer {
		return nil, fmt.Errorf("a buffer of %d bytes: use %d to %d", o.Buffer, MinBuffer, MaxBuffer)
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return nil, err
	}
	m := &Mover{opt: o, root: root, active: map[int64]*running{}, dirs: map[string]bool{}}
	m.pool = pool{roots: o.CAs, guard: o.Guard, stall: o.Stall, buffer: o.Buffer}
	m.bufs.New = func() any { b := make([]byte, o.Buffer); return &b }
	if m.made, m.kept, err = openMade(root, o.State); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	m.saver = newSaver(m)
	return m, nil
}

// Close releases the resources acquired by New. Temporaries stay for the next Mover.
func (m *Mover) Close() error {
	m.saver.close()
	m.pool.close()
	return errors.Join(m.made.close(), m.root.Close())
}

// Do makes one attempt at one file, and reports its progress from time to time; tell is called by
// one goroutine at a time and must not block. Do returns when the attempt has ended, soon after ctx
// has ended. A later epoch of the same item ends an earlier attempt that still runs.
func (m *Mover) Do(ctx context.Context, l transfer.Lease, tell func(transfer.Progress)) transfer.Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Begin: m.opt.Now()}
	begun := m.meter()
	me, err := m.enter(l, cancel)
	if err == nil {
		defer m.leave(l, me)
		err = m.do(ctx, l, tell, &out)
	}
	if err != nil {
		t := troubleOf(ctx, err)
		out.Fault, out.Reason, out.After, out.Verified = t.fault, t.reason, t.after, false
		if ctx.Err() == nil {
			out.At, out.Status = t.about(&l), t.status
		}
	}
	out.CPU = begun.share(m.meter(), out.Moved+out.Resumed)
	out.End = m.opt.Now()
	return out
}

func (m *Mover) do(ctx context.Context, l transfer.Lease, tell func(transfer.Progress), out *transfer.Outcome) error {
	if err := checkLease(l); err != nil {
		return err
	}
	r := newReporter(l, tell)
	defer r.end()
	switch l.Mode {
	case transfer.Pull:
		return m.pull(ctx, l, r, out)
	case transfer.Push:
		return m.push(ctx, l, r, out)
	case transfer.Check:
		return m.check(ctx, l, r, out)
	}
	return failf(transfer.Permanent, "a mover does not do copies of the kind %q", l.Mode)
}

// checkLease refuses invalid leases.
func checkLease(l transfer.Lease) error {
	switch {
	case l.Size < 0:
		return failf(transfer.Permanent, "a file of %d bytes cannot be", l.Size)
	case l.Adler != "":
		if _, err := adler.Parse(l.Adler); err != nil {
			return failf(transfer.Permanent, "checksum of the catalog: %w", err)
		}
	}
	for _, p := range []string{l.Source.Path, l.Dest.Path} {
		if !fs.ValidPath(p) || p == "." || strings.ContainsAny(p, "\\\x00") || strings.HasPrefix(p, Hidden+"/") || p == Hidden {
			return failf(transfer.Permanent, "%q is no path of a file below a site's root", p)
		}
	}
	if t := l.Dest.Temp; t != "" && (!fs.ValidPath(t) || path.Dir(t) != path.Dir(l.Dest.Path) ||
		!strings.HasPrefix(path.Base(t), Hidden+"-")) {
		return failf(transfer.Permanent, "%q is no name of a temporary file", t)
	}
	return nil
}

// enter registers l as the running attempt at its item.
func (m *Mover) enter(l transfer.Lease, cancel context.CancelCauseFunc) (*running, error) {
	me := &running{epoch: l.Epoch, cancel: cancel, done: make(chan struct{})}
	for {
		m.mu.Lock()
		other := m.active[l.Item]
		if other == nil {
			m.active[l.Item] = me
			m.mu.Unlock()
			return me, nil
		}
		m.mu.Unlock()
		if other.epoch >= l.Epoch {
			return nil, &trouble{fault: transfer.LeaseLost, reason: errSuperseded.Error()}
		}
		other.cancel(errSuperseded)
		<-other.done
	}
}

// atOnce returns the number of attempts under way, at least 1.
func (m *Mover) atOnce() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(len(m.active), 1)
}

func (m *Mover) leave(l transfer.Lease, me *running) {
	m.mu.Lock()
	delete(m.active, l.Item)
	if len(m.active) == 0 && m.made.long() {
		_ = m.made.shorten(m.kept) // a failure only leaves the list long
	}
	m.mu.Unlock()
	close(me.done)
}

// partName returns the name of an attempt's temporary, below the root.
func partName(item, epoch int64) string { return transfer.PartName(item, epoch) }
