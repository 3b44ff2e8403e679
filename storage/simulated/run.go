package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// Errors of broken connections, as the kernel would return them.
var (
	errRefused error = syscall.ECONNREFUSED
	errReset   error = syscall.ECONNRESET
)

// A run is one operation on its way.
type run struct {
	c       *client
	ctx     context.Context
	op      *storage.Op
	p       storage.Progress
	res     storage.Result
	at      time.Duration // its progress, by plan
	left    int64         // payload still to move
	got     bool          // its first byte was reported
	failure storage.Class

	dest  *storage.LocalFile // receives the payload; may be nil
	taken int64              // bytes that it has got
	full  error              // why it took no more
}

func (r *run) do() error {
	w := r.c.w
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	r.at, r.failure = w.now(), r.c.drawError()
	if r.failure == storage.Refused {
		r.c.broken()
		return failure(r.failure)
	}
	if err := r.connect(); err != nil {
		return err
	}
	switch {
	case r.op.Kind == storage.Login:
		return r.lost()
	case r.failure == storage.Busy:
		return failure(r.failure) // rejected before any work
	}
	err := r.serve()
	if err == nil {
		err = r.full
	}
	if err == nil {
		err = r.lost()
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// check refuses operations that no service could perform.
func (r *run) check() error {
	op := r.op
	switch op.Kind {
	case storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir, storage.Remove, storage.Login, storage.Ping:
	case storage.Move:
		if !fs.ValidPath(op.Source) {
			return fmt.Errorf("source leaves the target or is not in its plain form: %w", fs.ErrPermission)
		}
	case storage.Checksum:
		if op.Sum == "" {
			return fmt.Errorf("checksum without an algorithm: %w", errors.ErrUnsupported)
		}
	default:
		return fmt.Errorf("simulated: %w", errors.ErrUnsupported)
	}
	if op.Path != "" && !fs.ValidPath(op.Path) {
		return fmt.Errorf("path leaves the target or is not in its plain form: %w", fs.ErrPermission)
	}
	if op.Sum != "" {
		if _, err := content.NewHash(op.Sum); err != nil {
			return err
		}
	}
	if op.Kind == storage.Write && op.Size < 0 {
		return fmt.Errorf("write of %d bytes", op.Size)
	}
	for _, g := range op.Ranges {
		if g.Offset < 0 || g.Length < 0 {
			return fmt.Errorf("range of %d bytes at %d: %w", g.Length, g.Offset, errors.ErrUnsupported)
		}
	}
	return nil
}

func (r *run) connect() error {
	if r.c.isConnected() {
		return nil
	}
	if j := r.c.shared; j != nil {
		select {
		case j.turn <- struct{}{}:
			defer func() { <-j.turn }()
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		if r.at = r.c.w.now(); j.up.Load() {
			return nil
		}
	}
	if r.c.w.Connect > 0 {
		if err := r.c.until(r.ctx, r.at+r.c.w.Connect); err != nil {
			return err
		}
		r.at += r.c.w.Connect
	}
	if r.c.shared != nil {
		r.c.shared.up.Store(true)
	} else {
		r.c.connected = true
	}
	r.p.Reached(storage.Connected)
	r.p.Reached(storage.Authenticated)
	return nil
}

// tell limits the rate of progress reports while a server works.
const tell = 100 * time.Millisecond

// serve passes the servers and the link.
func (r *run) serve() error {
	w := r.c.w
	n, err := w.tree.payload(r.op, &r.res)
	gone := err // the later result of the service, which needs its time to detect it
	r.left = n
	if r.failure == storage.Reset || r.failure == storage.Short || r.failure == storage.Timeout {
		r.left /= 2 // it ends in the middle
	}
	if gone != nil || r.failure == storage.Denied || r.failure == storage.NotFound {
		r.left = 0
	}
	if w.contended != nil {
		r.c.takePlace()
		if r.at, err = w.contended.pass(r.ctx, &r.c.place, r.at); err != nil {
			return err
		}
		if gone != nil {
			return gone
		}
		return r.transmit()
	}
	length, steps := r.c.serviceTime(), 1
	var tick func(int)
	if w.Bandwidth == 0 && r.left > 0 {
		steps = int(min(length/tell, 1000)) + 1
		total := r.left
		tick = func(i int) { r.move(total*int64(i+1)/int64(steps) - total*int64(i)/int64(steps)) }
	}
	end, err := r.c.pass(r.ctx, w.servers, r.at, length, steps, tick)
	if err != nil {
		return err
	}
	r.at = end
	if gone != nil {
		return gone
	}
	return r.transmit()
}

// transmit sends the remaining payload over the link, piece by piece.
func (r *run) transmit() error {
	w := r.c.w
	if w.Bandwidth == 0 {
		r.move(r.left) // all at once, when it is served
		return nil
	}
	piece := int64(r.op.Chunk)
	if piece <= 0 {
		piece = max(16<<10, int64(w.Bandwidth/200)) // the payload that the link carries in 5 ms: streams alternate, at a low cost
	}
	for r.left > 0 {
		n := min(piece, r.left)
		length := time.Duration(float64(n) / (w.Bandwidth * w.capacity()) * float64(time.Second))
		end, err := r.c.pass(r.ctx, w.link, r.at, length, 1, nil)
		if err != nil {
			return err
		}
		r.at = end
		r.move(n)
	}
	return nil
}

func (r *run) move(n int64) {
	if n == 0 {
		return
	}
	if !r.got {
		r.got = true
		r.p.Reached(storage.Opened)
		if r.op.Kind == storage.Read {
			r.p.Reached(storage.FirstByte)
		}
	}
	r.left -= n
	r.p.Moved(int(n))
	switch {
	case r.dest != nil:
		r.put(n)
	case r.op.Kind == storage.Read && r.op.Sum == "":
		r.res.Discarded += n
	}
}

// fetch calls do with a file of this machine for the payload.
func (r *run) fetch() error {
	var err error
	if r.dest, err = r.op.OpenDest(); err != nil {
		return err
	}
	return r.dest.Close(r.do())
}

// put makes the next n bytes of the payload.
func (r *run) put(n int64) {
	if r.full == nil {
		r.full = r.c.w.tree.copy(r.dest, r.op.Path, r.taken, n)
		r.taken += n
	}
}

// lost ends operations that are meant to fail.
func (r *run) lost() error {
	switch r.failure {
	case storage.None, storage.Checksummed:
		return nil
	case storage.Timeout: // the answer never comes
		r.c.broken()
		<-r.ctx.Done()
		return r.ctx.Err()
	case storage.Reset, storage.Short:
		r.c.broken()
	}
	return failure(r.failure)
}

// finish performs the effect of the operation.
func (r *run) finish() error {
	err := r.c.w.tree.do(r.op, &r.res)
	if err == nil && r.failure == storage.Checksummed {
		if r.res.Sum == "" {
			return nil // not checked, not noticed
		}
		b := []byte(r.res.Sum)
		b[len(b)-1] ^= 1 // still a digit, or a letter of no digit: wrong in any case
		r.res.Sum = string(b)
	}
	return err
}
