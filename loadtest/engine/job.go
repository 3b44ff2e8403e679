package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"weir/internal/content"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/workload"
	"weir/storage"
)

// A reader makes one request of a job and returns its outcome.
type reader func(op *storage.Op) storage.Class

// job runs the task as one job from its first request to its last, or to the request that ended it.
// planned is as in do. It returns the class of the job's end.
func (l *clientRunner) job(c *client, planned time.Duration) storage.Class {
	kind := c.task.Ops[0].Kind
	begin := c.meter.JobBegin(kind)
	if planned >= 0 {
		begin = planned // the caller of a job waits from then on
	}
	var class storage.Class
	switch g := c.task.Job; {
	case g != nil && g.Fits() != nil:
		class = c.meter.Fail(kind, g.Fits())
	case g == nil:
		class = l.operation(c, &c.task.Ops[0], planned)
	case g.Job().Access == workload.Staged:
		class = l.staged(c, planned)
	default:
		class = l.direct(c, planned)
	}
	c.meter.JobEnd(kind, class, begin)
	return class
}

// direct runs a job that sends a request to the service for each of its pieces.
func (l *clientRunner) direct(c *client, planned time.Duration) storage.Class {
	return l.events(c, func(op *storage.Op) storage.Class {
		c.task.Verify = op.Sum != ""
		class := l.operation(c, op, planned)
		planned = -1 // later requests have no planned time
		return class
	})
}

// events processes the job's events: read, compute, read, compute; or, with read-ahead, it computes
// on each piece while the next piece is read. It returns the class of the request that ended it,
// the zero class after the last request, or Canceled if the run was cancelled.
func (l *clientRunner) events(c *client, read reader) storage.Class {
	g, op, k := c.task.Job, &c.task.Ops[0], l.computer(c)
	work, finish := k.work, func() bool { return true }
	if g.Job().Ahead > 0 {
		work, finish = k.beside()
	}
	class := storage.None
	for class == storage.None {
		p, more := g.Next(c.rand, op)
		if !more {
			break
		}
		if class = read(op); class == storage.None && !work(p) {
			class = storage.Canceled
		}
		for class == storage.None && g.OutputDue(false) {
			class = l.output(c)
		}
	}
	if !finish() {
		return storage.Canceled
	}
	for class == storage.None && g.OutputDue(true) {
		class = l.output(c)
	}
	return class
}

// output writes the next file of a job's output. A staged job writes it to its scratch disk first, and copies it from
// there: the file is read again, and the service gets the same bytes.
func (l *clientRunner) output(c *client) storage.Class {
	var op storage.Op
	begin := l.rec.Now()
	c.task.Verify = c.task.Job.Output(c.rand, &op)
	if c.task.Job.Job().Access == workload.Staged {
		path := scratch.Output(l.Scratch, l.Number(c.number))
		// If it stays, the run's end removes it or reports the error.
		defer func() { _ = os.Remove(path) }()
		if err := l.Room.Take(op.Size); err != nil {
			return c.meter.Fail(storage.Write, err)
		}
		defer l.Room.Give(op.Size)
		if err := l.writeScratch(path, &op); err != nil {
			return c.meter.Fail(storage.Write, l.brokenOff(err))
		}
	}
	class := l.operation(c, &op, -1)
	if class == storage.None {
		c.meter.Wrote(storage.Read, op.Size, l.rec.Now()-begin) // jobs count with their reads
	}
	return class
}

// writeScratch writes the payload of op to a file of the scratch disk, and reads it again.
func (l *clientRunner) writeScratch(path string, op *storage.Op) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("%w: %w", storage.ErrScratch, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := pooled(&l.chunks, largestRead)
	defer l.chunks.Put(buf)
	pass := func(what string, each func(p []byte, at int64) (int, error)) error {
		for at := int64(0); at < op.Size; {
			if l.soft.Err() != nil {
				return l.soft.Err()
			}
			n, err := each((*buf)[:min(int64(len(*buf)), op.Size-at)], at)
			if err != nil {
				return fmt.Errorf("%w: %s the output on %s: %w", storage.ErrScratch, what, path, err)
			}
			at += int64(n)
		}
		return nil
	}
	if err := pass("write", func(p []byte, at int64) (int, error) {
		content.Fill(p, op.Seed, at)
		return f.WriteAt(p, at)
	}); err != nil {
		return err
	}
	return pass("read", f.ReadAt)
}

// errNoScratch ends runs whose staged jobs have no place for their copies.
var errNoScratch = errors.New("staged jobs need a folder for their copies of files")

// checkScratch returns an error if the run's jobs need a scratch folder and have no folder.
func (c *Config) checkScratch() error {
	if job := c.Plan.Work.Job; job != nil && job.Access == workload.Staged && c.Scratch == "" {
		return errNoScratch
	}
	return nil
}

// staged runs a job that works on a copy of its file. The job makes the copy first and removes it
// at its end, whether or not it succeeded. Only the copying is an operation of the service.
func (l *clientRunner) staged(c *client, planned time.Duration) storage.Class {
	g, op := c.task.Job, &c.task.Ops[0]
	path := scratch.Copy(l.Scratch, l.Number(c.number))
	// If it stays, the run's end removes it or reports the error.
	defer func() { _ = os.Remove(path) }()
	size := g.Size()
	if err := l.Room.Take(size); err != nil {
		return c.meter.Fail(storage.Read, err)
	}
	defer l.Room.Give(size)
	g.Whole(op)
	op.Dest = path
	c.task.Verify = op.Sum != ""
	if class := l.operation(c, op, planned); class != storage.None {
		return class
	}
	f, err := openCopy(path)
	if err != nil {
		return c.meter.Fail(storage.Read, err)
	}
	defer func() { _ = f.Close() }() // only read
	c.meter.Staged(storage.Read, f.size)
	return l.events(c, func(op *storage.Op) storage.Class {
		if l.soft.Err() != nil {
			return storage.Canceled
		}
		if err := l.readCopy(f, op, g.Job()); err != nil {
			return c.meter.Fail(storage.Read, err)
		}
		return storage.None
	})
}

// A copyFile is a job's copy.
type copyFile struct {
	*os.File
	size int64
}

func openCopy(path string) (copyFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return copyFile{}, fmt.Errorf("%w: %w", storage.ErrScratch, err)
	}
	info, err := f.Stat()
	if err != nil {
		return copyFile{}, errors.Join(fmt.Errorf("%w: %w", storage.ErrScratch, err), f.Close())
	}
	return copyFile{f, info.Size()}, nil
}

// largestRead is the largest part of a page that one system call reads from a copy.
const largestRead = 1 << 20

// readCopy reads the ranges of op from the copy, as a program would: a system call for each page.
func (l *clientRunner) readCopy(f copyFile, op *storage.Op, job *workload.Job) error {
	page := min(int64(job.Page), largestRead)
	buf := pooled(&l.pages, page)
	defer l.pages.Put(buf)
	for _, r := range op.Ranges {
		for end := r.Offset + r.Length; r.Offset < end; r.Offset += page {
			n, err := f.ReadAt((*buf)[:min(page, end-r.Offset)], r.Offset)
			switch {
			case err == nil:
			case errors.Is(err, io.EOF):
				return fmt.Errorf("%w: the copy of %s has %d bytes, the job wants %d at %d", storage.ErrShort, op.Path, r.Offset+int64(n),
					min(page, end-r.Offset), r.Offset)
			default:
				return fmt.Errorf("%w: the copy of %s: %w", storage.ErrScratch, op.Path, err)
			}
		}
	}
	return nil
}

// pooled returns a buffer of a pool whose buffers all have that size. The caller returns it to the
// pool.
func pooled(pool *sync.Pool, size int64) *[]byte {
	if b, ok := pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, size)
	return &b
}
