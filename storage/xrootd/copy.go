package xrootd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"weir/internal/tpc"
	"weir/storage"
)

// The intervals in which the size of an unfinished copy is requested. A short copy ends before.
const (
	firstLook = time.Second
	laterLook = 2 * time.Second
)

// withCopies makes s a service of third-party copies, if t has an origin: it opens the service of
// the origin.
func (s *service) withCopies(t storage.Target) error {
	o := t.Origin
	switch {
	case o == nil:
		return nil
	case o.Push:
		return fmt.Errorf("the origin cannot push: with this protocol the target fetches the files: %w", errors.ErrUnsupported)
	case t.Shared:
		return fmt.Errorf("clients of third-party copies cannot share a connection, whose end cancels a copy: %w", errors.ErrUnsupported)
	}
	origin, err := newService(storage.Target{URL: o.URL, Cred: o.Cred, Reach: t.Reach, Resume: t.Resume})
	if err != nil {
		return fmt.Errorf("origin of copies: %w", err)
	}
	s.origin, s.stall = origin, tpc.StallTime
	if o.SciTag > 0 {
		s.flow = fmt.Sprintf("scitag.flow=%d", o.SciTag)
	}
	return nil
}

// partners are the clients that a client needs for third-party copies.
type partners struct {
	source  *client // at the origin
	watcher *client // at the target; its requests are not delayed by a copy
}

// partners returns the clients for copies of c, which it makes with the first copy.
func (c *client) partners() *partners {
	if c.others == nil {
		c.others = &partners{source: c.s.origin.Client().(*client), watcher: c.s.Client().(*client)}
	}
	return c.others
}

// close closes the sessions of the clients; a nil p has none.
func (p *partners) close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.source.Close(), p.watcher.Close())
}

// copyFile has the server of the target fetch the file from the server of the origin. It fails if
// the file exists, and ends a copy that has stalled.
func (x *call) copyFile() error {
	if x.s.origin == nil {
		return fmt.Errorf("copy without an origin: %w", errors.ErrUnsupported)
	}
	if err := checkPath(x.Op.Source); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(x.Ctx)
	defer stop(nil)
	x.Ctx = ctx
	p := x.exchange.c.partners()
	read := p.source.third(ctx, &storage.Op{Kind: storage.Read, Path: x.Op.Source, Size: -1, Timeout: x.Op.Timeout})
	w := watch{x: x, source: read, client: p.watcher, stop: stop}
	err := thirdParty{source: read, dest: x, options: openNew, extra: x.s.flow, started: w.start}.run()
	size := read.file.size
	read.exchange.settle()
	r := &read.Result
	x.Result.Wire, x.Result.Waits, x.Result.Waited = x.Result.Wire+r.Wire+w.wire, x.Result.Waits+r.Waits, x.Result.Waited+r.Waited
	read.done()
	if err != nil {
		if s, stalled := errors.AsType[*stallError](context.Cause(ctx)); stalled {
			return s
		}
		return err
	}
	if err := storage.CheckSize(x.Op.Size, size); err != nil {
		return err
	}
	w.moved(size)
	x.Result.Size = size
	return nil
}

// slowestCopy is the rate, in bytes per second, at which a copy whose target reports no partial
// sizes is expected to proceed at least.
const slowestCopy = 1_000_000

// A stallError is the error of a copy that was ended because the file at the target did not grow.
type stallError struct {
	moved, size int64
	idle        time.Duration
}

// Error describes the stall.
func (e *stallError) Error() string {
	return fmt.Sprintf("copy stalled at %d of %d bytes: the file at the target has not grown for %v, so the copy was ended; "+
		"the log of the target's server may name the cause", e.moved, e.size, e.idle.Round(time.Second))
}

// Unwrap returns an error of class storage.Timeout.
func (*stallError) Unwrap() error { return syscall.ETIMEDOUT }

// A watch reports the progress of a copy: the size of the file at the target. It ends the copy when
// the file does not grow.
type watch struct {
	x       *call
	source  *call
	client  *client
	stop    context.CancelCauseFunc // ends the copy
	grown   time.Time               // when the file was last seen to grow, or the start
	counted int64
	wire    int64
}

// moved reports the bytes up to size that were not reported before.
func (w *watch) moved(size int64) {
	if size > w.counted {
		w.x.Reach(storage.FirstByte)
		w.x.Moved(int(size - w.counted))
		w.counted, w.grown = size, time.Now()
	}
}

// start reports that the copy has begun, and its progress until ended is called. ended returns when
// nothing more is reported.
func (w *watch) start() (ended func()) {
	w.x.Reach(storage.Opened)
	w.grown = time.Now()
	ctx, stop := context.WithCancel(w.x.Ctx)
	var all sync.WaitGroup
	timer := time.NewTimer(firstLook)
	all.Go(func() { w.look(ctx, timer) })
	return func() {
		stop()
		all.Wait()
		timer.Stop()
	}
}

// look requests the size of the file at the target until ctx ends or the copy has stalled.
func (w *watch) look(ctx context.Context, timer *time.Timer) {
	op := storage.Op{Kind: storage.Stat, Path: w.x.Op.Path, Timeout: w.x.s.stall}
	if t := w.x.Op.Timeout; t > 0 {
		op.Timeout = min(t, op.Timeout)
	}
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		res, err := w.client.Do(ctx, &op, storage.NoProgress{})
		w.wire += res.Wire
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			w.moved(min(res.Size, w.size()))
		}
		if idle := time.Since(w.grown); idle > w.limit() {
			w.stop(&stallError{moved: w.counted, size: w.size(), idle: idle})
			return
		}
		timer.Reset(laterLook)
	}
}

func (w *watch) limit() time.Duration { return StallLimit(w.x.s.stall, w.counted, w.size()) }

// StallLimit returns the longest time in which the file of a third-party copy may not grow, with moved
// of size bytes. It is stall while the file has grown in part. Some services show no size before the
// file is closed, and some compute a checksum when all bytes have arrived: before the first byte and
// after the last, the time for the whole file at 1 MB/s is added. The protocol has no other sign of
// progress: a copy that is slower and invisible is ended.
func StallLimit(stall time.Duration, moved, size int64) time.Duration {
	if moved > 0 && moved < size {
		return stall
	}
	return stall + time.Duration(max(size, 0)/slowestCopy)*time.Second
}

// size returns the expected size of the file.
func (w *watch) size() int64 {
	if w.x.Op.Size >= 0 {
		return w.x.Op.Size
	}
	return w.source.file.size
}
