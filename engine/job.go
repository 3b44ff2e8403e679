package engine

import (
	"time"

	"weir/storage"
	"weir/workload"
)

// A reader makes one request of a job and tells what became of it.
type reader func(op *storage.Op) storage.Class

// job runs the task as one job from its first request to its last, or to the
// one that ended it. planned is as in do. It returns the class of the job's end.
func (l *clientRunner) job(c *client, planned time.Duration) storage.Class {
	kind := c.task.Ops[0].Kind
	begin := c.meter.JobBegin(kind)
	if planned >= 0 {
		begin = planned // who waits for a job waits from then on
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

// direct is a job that asks the service for each of its pieces.
func (l *clientRunner) direct(c *client, planned time.Duration) storage.Class {
	return l.events(c, func(op *storage.Op) storage.Class {
		c.task.Verify = op.Sum != ""
		class := l.operation(c, op, planned)
		planned = -1 // the others come when their turn comes
		return class
	})
}

// events goes through the job's events: read, compute, read, compute; or, with
// read-ahead, it computes on each piece while the next one is read. It returns
// the class of the request that ended it, None after the last, or Canceled if
// the run was broken off.
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
	}
	if !finish() {
		return storage.Canceled
	}
	return class
}
