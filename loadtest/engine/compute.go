package engine

import (
	"context"
	"runtime"
	"time"

	"weir/internal/burn"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// Computing is counted while it goes on: a job may compute for minutes on one event, and steps end
// in between. Computing that sleeps is counted in parts of at most this length.
const longestPart = 200 * time.Millisecond

// A computer computes for a client's jobs. It has a meter and an alarm of its own, so that a job
// can compute while its client reads.
type computer struct {
	wakeup
	runner *clientRunner
	meter  *measure.Meter
	burner burn.Burner
}

// computer returns the computer of c's jobs.
func (l *clientRunner) computer(c *client) *computer {
	if c.computer == nil {
		c.computer = &computer{runner: l, meter: l.rec.Meter(), wakeup: newWakeup()}
	}
	return c.computer
}

// work computes on a piece of a job. It returns false if the run was cancelled meanwhile; then the
// time until then counts.
func (k *computer) work(p workload.Piece) bool {
	whole := true
	if p.Compute > 0 {
		if k.runner.cores != nil {
			whole = k.burn(p.Compute)
		} else {
			whole = k.sleep(p.Compute)
		}
	}
	if whole {
		k.meter.Worked(storage.Read, p.Events, p.Bytes, 0)
	}
	return whole
}

func (k *computer) computed(d time.Duration) { k.meter.Worked(storage.Read, 0, 0, d) }

// beside returns work for a goroutine of its own, which takes one piece at a time: work waits until
// the piece before is done. finish ends the goroutine, after its last piece, and reports whether
// all pieces were computed.
func (k *computer) beside() (work func(workload.Piece) bool, finish func() bool) {
	pieces, whole := make(chan workload.Piece), make(chan bool)
	go func() {
		all := true
		for p := range pieces {
			all = k.work(p) && all
		}
		whole <- all
	}()
	return func(p workload.Piece) bool { pieces <- p; return true }, func() bool { close(pieces); return <-whole }
}

// sleep spends d without a processor, as a job on one of many machines would.
func (k *computer) sleep(d time.Duration) bool {
	l := k.runner
	begin, done := l.rec.Now(), time.Duration(0)
	for done < d {
		part := min(d-done, longestPart)
		if !k.until(begin + done + part) {
			k.computed(min(max(l.rec.Now()-begin-done, 0), part))
			return false
		}
		k.computed(part)
		done += part
	}
	k.meter.Late(storage.Read, l.rec.Now()-begin-d)
	return true
}

// until waits for the given reading of the clock. It returns false as soon as the run is cancelled.
func (k *computer) until(due time.Duration) bool {
	l := k.runner
	l.Pacer.Sleep(k, l.rec.Time(due))
	for l.rec.Now() < due {
		select {
		case <-k.wakeup:
		case <-l.soft.Done():
			return false
		}
	}
	return l.soft.Err() == nil
}

// burn keeps a core busy until it has used d of its time. If more jobs burn than there are cores,
// they take turns, and each takes longer.
func (k *computer) burn(d time.Duration) bool {
	l := k.runner
	for done := time.Duration(0); done < d; {
		if !l.cores.enter(l.soft) {
			return false
		}
		used := k.burner.For(min(d-done, turn))
		l.cores.leave()
		k.computed(used)
		done += used
		runtime.Gosched() // clients that have something to read come first
	}
	return l.soft.Err() == nil
}

// The duration for which a job has a core before another job has it.
const turn = 500 * time.Microsecond

// cores limits the jobs that burn at once to the number of cores of this machine.
type cores chan struct{}

// newCores returns the cores that goroutines may use now, and lets them use one more from then on
// until back is called. Otherwise jobs that burn all cores would delay responses from the network:
// Go polls the network when a processor has nothing else to do, or every ten milliseconds. The
// system's scheduler runs a thread at once that was woken by a response.
func newCores() (c cores, back func()) {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + 1)
	return make(cores, n), func() { runtime.GOMAXPROCS(n) }
}

// enter waits for a core, and returns false if ctx ends before.
func (c cores) enter(ctx context.Context) bool {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (c cores) leave() { <-c }
