package engine

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// Arrivals without a client wait in a queue of at most this length; further arrivals are counted as
// missed.
const longestLine = 1 << 16

// arrivals makes the planned starts of the open model: tasks arrive at a rate,
// whether or not the service keeps up.
type arrivals struct {
	wakeup
	due   chan time.Duration // planned starts, on the recorder's clock
	idle  atomic.Int64       // clients without a task less tasks without a client
	rec   *measure.Recorder
	pacer Pacer
	kind  storage.Kind // of missed arrivals
	rand  *rand.Rand
	done  chan struct{}

	mu      sync.Mutex
	ended   bool
	pool    *clientPool
	now     scenario.Step
	from    float64       // rate before the step, per second
	began   time.Duration // when the step did
	started bool
}

func newArrivals(rec *measure.Recorder, p Pacer, kind storage.Kind, seed uint64) *arrivals {
	return &arrivals{
		due: make(chan time.Duration, longestLine), rec: rec, pacer: p, kind: kind,
		rand:   rand.New(rand.NewPCG(seed, 0x617272)), // not a client's stream
		wakeup: newWakeup(), done: make(chan struct{}),
	}
}

// step changes to the step's rate, evenly over its ramp.
func (a *arrivals) step(s scenario.Step, w *clientPool) {
	a.mu.Lock()
	now := a.rec.Now()
	a.from = a.rate(now)
	a.began, a.now, a.pool = now, s, w
	first := !a.started
	a.started = true
	a.mu.Unlock()
	if first {
		go a.loop(now)
	}
	a.Wake() // from a long gap of a slow step before
}

// rate returns the planned rate at t. The caller holds the lock.
func (a *arrivals) rate(t time.Duration) float64 {
	to, ramp := float64(a.now.Rate), time.Duration(a.now.Ramp)
	if t >= a.began+ramp {
		return to
	}
	return a.from + (to-a.from)*float64(t-a.began)/float64(ramp)
}

// loop plans arrivals by letting a stock fill up with the rate: the next task
// arrives when the stock holds one (or, Poisson, an exponential draw of mean one).
func (a *arrivals) loop(planned time.Duration) {
	defer close(a.done)
	const look = 10 * time.Millisecond // how far ahead the rate is taken as constant
	need := a.need()
	for {
		a.mu.Lock()
		ended, rate, pool, most := a.ended, a.rate(planned), a.pool, a.now.Clients
		a.mu.Unlock()
		if ended {
			return
		}
		gap := look
		if rate > 0 && need/rate < look.Seconds() {
			gap = time.Duration(need / rate * 1e9)
			need = 0
		} else {
			need -= rate * look.Seconds()
		}
		planned += gap
		if planned > a.rec.Now() {
			a.pacer.Sleep(a, a.rec.Time(planned))
			for planned > a.rec.Now() && !a.over() {
				<-a.wakeup
			}
			if a.over() {
				return // later planned arrivals do not arrive any more
			}
		}
		if need <= 0 {
			a.offer(planned, pool, most)
			need = a.need()
		}
	}
}

func (a *arrivals) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

func (a *arrivals) need() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.Poisson {
		return a.rand.ExpFloat64()
	}
	return 1
}

// offer gives an arrival to a client, or to a new client if no client is idle and there may be
// more.
func (a *arrivals) offer(planned time.Duration, w *clientPool, most int) {
	if a.idle.Add(-1) < 0 && w.size() < most {
		a.idle.Add(1)
		w.resize(w.size() + 1)
	}
	select {
	case a.due <- planned:
	default:
		a.idle.Add(1)
		a.rec.Missed(a.kind, 1)
	}
}

// close ends the arrivals; arrivals in the queue are missed. More calls do nothing.
func (a *arrivals) close() {
	a.mu.Lock()
	over, started := a.ended, a.started
	a.ended = true
	a.mu.Unlock()
	if over {
		return
	}
	if started {
		a.Wake()
		<-a.done
	}
	missed := int64(0)
	for len(a.due) > 0 {
		select {
		case <-a.due:
			missed++
		default: // a client was quicker
		}
	}
	close(a.due)
	if missed > 0 {
		a.rec.Missed(a.kind, missed)
	}
}
