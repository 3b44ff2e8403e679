package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// A client pauses after this many failed tasks in a row, first for firstPause, then twice as long
// after each further failure, up to the plan's ErrorPause. Isolated failures cost no time, so that
// they do not change the measurement, and a service that refuses everything gets no requests in a
// tight loop.
const (
	failuresBeforePause = 3
	firstPause          = time.Millisecond
)

// errorPause returns the pause of a client after so many failed tasks in a row,
// at most longest.
func errorPause(failures int, longest time.Duration) time.Duration {
	if failures < failuresBeforePause {
		return 0
	}
	const doublings = 40 // far more than any pause: the shift must not overflow
	return min(firstPause<<min(failures-failuresBeforePause, doublings), longest)
}

// A client is one virtual client: a session, a stream of tasks, a meter. It is run by one goroutine
// of its executor at a time, and by no goroutine while it sleeps.
type client struct {
	exec    *executor
	number  int
	leaving atomic.Bool
	asleep  atomic.Bool
	pausing bool          // it sleeps because tasks failed; its think time comes after that
	planned time.Duration // when its sleep is to end, on the recorder's clock

	ended bool    // guarded by the pool
	next  *client // of the same number, starts when this client has ended; guarded by the pool

	past    *client // of the same number, before; nil after start
	work    workload.Workload
	rand    *rand.Rand
	meter   *measure.Meter
	session storage.Client
	task    workload.Task
	failed  int  // tasks that failed in a row
	obeyed  bool // the task paused because the service requested it

	tasks    int       // still to do; 0: until leave is called
	computer *computer // of its jobs; nil before the first
}

// leave ends the client after its current task, or now if it sleeps.
func (c *client) leave() {
	c.leaving.Store(true)
	c.Wake()
}

// Wake implements Sleeper. It does nothing if the client is awake or has ended.
func (c *client) Wake() {
	if c.asleep.CompareAndSwap(true, false) {
		c.exec.start(c)
	}
}

// A clientRunner runs the operations of clients. All clients of a run share it.
type clientRunner struct {
	*run
	seed   uint64
	fresh  bool                 // a session lasts one task
	jobs   bool                 // tasks are jobs
	cores  cores                // on which jobs burn; nil: computing is slept
	sums   sync.Map             // *workload.File of the file set: checksum of its content
	pages  sync.Pool            // of *[]byte, for pages of copies
	chunks sync.Pool            // of *[]byte of largestRead, for output on scratch disks
	due    <-chan time.Duration // open model: planned starts
}

// advance runs a client that has just started or woken up, until it sleeps or has ended.
func (l *clientRunner) advance(c *client) {
	if c.session == nil {
		if err := l.open(c); err != nil {
			l.rec.Meter().Fail(l.idle, err)
			l.pool.end(c)
			return
		}
	}
	if l.due != nil {
		l.serve(c)
	} else if l.loop(c) {
		return // c is no longer this goroutine's
	}
	_ = c.session.Close() // all operations of the session have ended
	c.session = nil
	l.pool.end(c)
}

func (l *clientRunner) open(c *client) error {
	c.meter = l.rec.Meter()
	number := l.Number(c.number)
	c.session = storage.ClientOf(l.Service, number)
	if past := c.past; past != nil && past.work != nil {
		c.work, c.rand, c.task, c.past = past.work, past.rand, past.task, nil
		return nil
	}
	c.rand = rand.New(rand.NewPCG(l.seed, uint64(number)))
	var err error
	if c.work, err = workload.New(l.Plan.Work, l.Files, number, l.Folder); err != nil || l.Homes == 0 || number < l.Homes ||
		!workload.Writes(l.Plan.Work) {
		return err
	}
	p := preparer{Config: l.Config}
	return p.mkdir(l.soft, c.session, workload.Home(l.Folder, number))
}

// loop implements the closed model: task, pause, task, until leave is called, or until all of its
// tasks are done. It returns true if c sleeps: the goroutine of its wake-up calls loop again.
func (l *clientRunner) loop(c *client) (asleep bool) {
	if c.planned > 0 && !c.leaving.Load() {
		c.meter.Late(c.task.Ops[0].Kind, l.rec.Now()-c.planned)
	}
	for c.planned = 0; ; {
		if c.pausing {
			c.pausing = false
			l.rec.Paused(-1)
			if l.sleep(c, c.task.Think) {
				return true
			}
		}
		if c.leaving.Load() {
			return false
		}
		c.work.Next(c.rand, &c.task)
		if !l.do(c, -1) {
			return false
		}
		if c.tasks--; c.tasks == 0 {
			c.meter.Task(0)
			return false
		}
		c.meter.Task(c.task.Think)
		pause := errorPause(c.failed, time.Duration(l.Plan.ErrorPause))
		if c.pausing = pause > 0; c.pausing {
			l.rec.Paused(1)
		} else {
			pause = c.task.Think
		}
		if l.sleep(c, pause) {
			return true
		}
	}
}

// sleep has c woken in d, or when it is to leave. It returns false if there is nothing to wait for;
// otherwise another goroutine may run c already.
func (l *clientRunner) sleep(c *client, d time.Duration) bool {
	if d <= 0 || c.leaving.Load() {
		return false
	}
	planned := l.rec.Now() + d
	c.planned = planned
	c.asleep.Store(true)
	if c.leaving.Load() && c.asleep.CompareAndSwap(true, false) {
		c.planned = 0
		return false // leave came too early to wake it
	}
	l.Pacer.Sleep(c, l.rec.Time(planned))
	return true
}

// serve implements the open model: a task for each arrival.
func (l *clientRunner) serve(c *client) {
	for planned := range l.due {
		l.rec.Active(1)
		c.work.Next(c.rand, &c.task)
		more := l.do(c, planned)
		c.meter.Task(0)
		l.rec.Active(-1)
		l.arrivals.idle.Add(1)
		if !more || c.leaving.Load() {
			return
		}
	}
}

// do runs the task; planned is the reading of the clock at which the task should have begun,
// negative for now. It returns false if the run was cancelled.
func (l *clientRunner) do(c *client, planned time.Duration) bool {
	c.obeyed = false
	var class storage.Class
	if l.jobs {
		class = l.job(c, planned)
	} else {
		class = l.operations(c, planned)
	}
	if class == storage.Canceled {
		return false
	}
	if l.fresh {
		ended := l.rec.Now()
		_ = c.session.Close() // a broken session is already counted by its operation
		c.meter.Closed(c.task.Ops[0].Kind, l.rec.Now()-ended)
	}
	if c.task.Failed = class != storage.None; c.task.Failed && !c.obeyed {
		c.failed++
	} else {
		c.failed = 0
	}
	return true
}

// operations runs the task's operations one after the other, up to the first failure, and returns
// the class of the last operation.
func (l *clientRunner) operations(c *client, planned time.Duration) storage.Class {
	for i := range c.task.Ops {
		if class := l.operation(c, &c.task.Ops[i], planned); class != storage.None {
			return class
		}
		planned = -1
	}
	return storage.None
}

// operation runs one operation, again if it failed and the plan allows it.
func (l *clientRunner) operation(c *client, op *storage.Op, planned time.Duration) storage.Class {
	for try := 0; ; try++ {
		err := l.remember(op) // before the clock of the operation starts: a manifest may be far away
		now := l.rec.Now()
		if planned < 0 {
			planned = now
		} else if try == 0 {
			c.meter.Late(op.Kind, now-planned)
		}
		c.meter.StartAt(op.Kind, now, planned)
		var res storage.Result
		if err == nil {
			if err = l.attempt(c, op, &res); err != nil && try == 0 && !c.meter.Opened() {
				err = l.refused(op, err)
			}
		}
		class := c.meter.End(&res, err)
		if op.Kind == storage.Copy {
			l.copied(c, op, class)
		}
		if class.Failure() {
			l.obey(c, err)
		}
		if !class.Failure() || try >= l.Plan.Work.Retries || !retryable(class) {
			return class
		}
		c.meter.Retried()
		if l.due == nil { // in the open model the arrival waits all the time
			planned = -1
		}
	}
}

// obey pauses for the time that the service requests (Retry-After), at most until the end of the
// step.
//
//go:noinline
func (l *clientRunner) obey(c *client, err error) {
	d := storage.RetryAfter(err)
	over := l.over.Load()
	if d <= 0 || over == nil || l.Plan.RetryAfter == scenario.IgnoreRetryAfter {
		return
	}
	select {
	case <-*over: // between steps clients pause as after other errors, but from the first error on
		c.failed = max(c.failed, failuresBeforePause-1)
		return
	default:
	}
	c.obeyed = true
	l.rec.Asked(1)
	defer l.rec.Asked(-1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-*over:
	case <-l.soft.Done():
	}
}

// remember writes the path that op is about to create to the manifest.
//
//go:noinline
func (l *clientRunner) remember(op *storage.Op) error {
	switch {
	case l.Manifest == nil:
		return nil
	case op.Kind == storage.Write, op.Kind == storage.Copy:
		return l.Manifest.Created(op.Path, op.Size, op.Seed)
	case op.Kind == storage.Mkdir:
		return l.Manifest.Created(op.Path+"/", 0, 0)
	case op.Kind == storage.Move: // the old name is in the manifest until its removal
		return l.Manifest.Created(l.entry(op.Path), op.Size, op.Seed)
	}
	return nil
}

// forget removes the path that op has removed from the manifest.
//
//go:noinline
func (l *clientRunner) forget(op *storage.Op) error {
	switch {
	case l.Manifest == nil:
		return nil
	case op.Kind == storage.Remove:
		return l.Manifest.Removed(l.entry(op.Path))
	case op.Kind == storage.Move:
		return l.Manifest.Removed(l.entry(op.Source))
	}
	return nil
}

// refused removes the path that op would have created from the manifest if err, with which op
// failed before anything was opened, is a refusal by the service. It returns err.
//
//go:noinline
func (l *clientRunner) refused(op *storage.Op, err error) error {
	class := storage.Classify(err)
	if l.Manifest == nil || class != storage.Denied && class != storage.NotFound && !errors.Is(err, storage.ErrLogin) {
		return err
	}
	switch op.Kind {
	case storage.Write:
		return errors.Join(err, l.Manifest.Removed(op.Path))
	case storage.Mkdir:
		return errors.Join(err, l.Manifest.Removed(op.Path+"/"))
	case storage.Move:
		return errors.Join(err, l.Manifest.Removed(l.entry(op.Path)))
	}
	return err
}

// entry returns the manifest's form of a path that clients remove or move: kind metadata makes only
// folders, which end in a slash.
func (l *clientRunner) entry(path string) string {
	if l.Plan.Work.Kind == workload.MetadataWork {
		return path + "/"
	}
	return path
}

// retryable reports whether another try could help. Another try with a full scratch disk would
// transfer all of the file for nothing.
func retryable(class storage.Class) bool {
	return class != storage.NotFound && class != storage.Denied && class != storage.Checksummed && class != storage.Scratch
}

// brokenOff makes err a cancellation, whichever error the driver returned, if this process
// cancelled the operation.
//
//go:noinline
func (l *clientRunner) brokenOff(err error) error {
	if l.soft.Err() != nil && !errors.Is(err, context.Canceled) {
		return errors.Join(err, context.Canceled)
	}
	return err
}

// attempt fills in res, which is not returned: copies of it would make the stack of each client
// larger than necessary.
func (l *clientRunner) attempt(c *client, op *storage.Op, res *storage.Result) error {
	if c.task.Verify && l.unknowable(c, op) {
		op.Sum = ""
	}
	var err error
	if *res, err = c.session.Do(l.soft, op, c.meter); err != nil {
		return l.brokenOff(err)
	}
	c.meter.Stopped()
	err = l.forget(op)
	if c.task.Verify && err == nil {
		err = l.verify(c, op, res)
	}
	return err
}
