package monitor

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A probe samples one host. look may return a sample, an error, or a partial sample with an error.
// The first call of look has no earlier counters and returns neither.
type probe interface {
	look(ctx context.Context) (*Sample, error)
	close()
}

// A result is the outcome of a look.
type result struct {
	sample *Sample
	err    error
}

// A runner takes the samples of one host. Each look has a goroutine of its own, so that a hanging
// look is reported in time.
type runner struct {
	watch   *Watch
	host    string
	role    Role
	probe   probe
	timeout time.Duration
	pending chan result // of the running look, or nil
	started time.Time   // of that look
	faults  throttle
}

// run takes looks until the watch stops.
func (r *runner) run(ctx context.Context) {
	r.start(ctx)
	r.await(ctx, r.watch.stop, r.timeout)
	timer := time.NewTimer(untilNext(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			r.leave()
			return
		case <-r.watch.stop:
			r.last(ctx)
			return
		case res := <-r.pending:
			r.finish(res)
			continue
		case <-timer.C:
		}
		if r.pending != nil {
			r.hangs()
		} else {
			r.start(ctx)
			r.await(ctx, r.watch.stop, r.timeout)
		}
		timer.Reset(untilNext(time.Now()))
	}
}

// start begins a look.
func (r *runner) start(ctx context.Context) {
	done := make(chan result, 1)
	r.pending, r.started = done, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		done <- measured(ctx, r.probe)
	}()
}

// measured takes a look and writes its cost into the sample. The thread is the look's own meanwhile, so that its
// clock counts nothing else.
func measured(ctx context.Context, p probe) (res result) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if v := recover(); v != nil { // the run is worth more than a sample
			res = result{err: fmt.Errorf("defect in the monitor: %v", v)}
		}
	}()
	before := threadCPU()
	s, err := p.look(ctx)
	if s != nil {
		s.Cost = (threadCPU() - before).Seconds()
	}
	return result{s, err}
}

// await waits for the look that is under way, until it takes too long or one of the others ends.
func (r *runner) await(ctx context.Context, stop <-chan struct{}, atMost time.Duration) {
	timer := time.NewTimer(atMost + tooSoon) // its own time-out comes first
	defer timer.Stop()
	select {
	case res := <-r.pending:
		r.finish(res)
	case <-ctx.Done():
	case <-stop:
	case <-timer.C:
		r.hangs()
	}
}

// last takes the final sample, which spans less than a second.
func (r *runner) last(ctx context.Context) {
	if r.pending != nil {
		r.await(ctx, nil, r.timeout)
	}
	if r.pending == nil && ctx.Err() == nil {
		r.start(ctx)
		r.await(ctx, nil, r.timeout)
	}
	r.leave()
}

// leave waits a moment for the running look, whose context has ended or will soon, and closes the
// probe. A look that hangs in the kernel is abandoned.
func (r *runner) leave() {
	if r.pending != nil {
		timer := time.NewTimer(r.timeout)
		defer timer.Stop()
		select {
		case <-r.pending:
		case <-timer.C:
			return
		}
	}
	r.probe.close()
}

func (r *runner) finish(res result) {
	r.pending = nil
	if res.err == nil {
		if res.sample != nil {
			r.faults.good()
			r.emit(res.sample)
		}
		return
	}
	if res.sample != nil {
		res.sample.Error = res.err.Error()
		r.emit(res.sample)
		return
	}
	r.fault(res.err.Error())
}

func (r *runner) hangs() {
	r.fault(fmt.Sprintf("no answer for %s", time.Since(r.started).Round(100*time.Millisecond)))
}

// fault reports on a look that brought nothing: at first, then once a minute.
func (r *runner) fault(text string) {
	if r.faults.bad(time.Now()) {
		r.emit(&Sample{Time: time.Now().Round(0), Error: text})
	}
}

func (r *runner) emit(s *Sample) {
	s.Host, s.Role = r.host, r.role
	r.watch.emit(s)
}

// A throttle lets the first few faults in a row through and then one a minute.
type throttle struct {
	row  int
	last time.Time
}

const (
	firstFaults = 3
	faultAgain  = time.Minute
)

func (t *throttle) bad(now time.Time) bool {
	t.row++
	if t.row > firstFaults && now.Sub(t.last) < faultAgain {
		return false
	}
	t.last = now
	return true
}

func (t *throttle) good() { t.row = 0 }

// threadCPU returns the CPU time that the calling thread used, in user mode and in the kernel. The caller has locked
// its goroutine to the thread.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
