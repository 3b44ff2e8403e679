package run

import (
	"context"
	"sync"
	"time"

	"weir/monitor"
)

// A quiescence records from the monitor's samples how busy the servers were
// before a search, and waits until they are as calm again. The clients' own host
// counts if the service is on it as well.
type quiescence struct {
	mu       sync.Mutex
	base     map[string]use // busiest of each host before the first step
	now      map[string]use
	learning bool
	news     chan struct{} // holds at most one token
}

// A use is how busy a server is. What a sample does not tell is 0.
type use struct {
	end          time.Time
	span         time.Duration
	busy, iowait float64 // shares of all cores
	queue        float64 // requests that wait for the busiest disk, or jobs for a thread
}

// The server is calm when it is no busier than before by more than this.
const (
	calmBusy  = 0.1
	calmWait  = 0.05
	calmQueue = 1.0
	learnFor  = 3 * time.Second
)

// DefaultCool is the usual rest between the steps of a search.
const DefaultCool = 2 * time.Second

func newQuiescence() *quiescence {
	return &quiescence{base: map[string]use{}, now: map[string]use{}, news: make(chan struct{}, 1)}
}

// Sample takes what the monitor sees.
func (w *quiescence) Sample(s *monitor.Sample) {
	if s.Role == "client" || s.Error != "" || s.CPU == nil && s.Service == nil {
		return
	}
	u := use{end: s.Time, span: time.Duration(s.Seconds * float64(time.Second))}
	if s.CPU != nil {
		u.busy, u.iowait = s.CPU.Busy(), s.CPU.IOWait
	}
	for _, d := range s.Disks {
		u.queue = max(u.queue, d.Queue)
	}
	if s.Service != nil {
		u.queue = max(u.queue, float64(s.Service.Queue))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[s.Host] = u
	if b := w.base[s.Host]; w.learning {
		w.base[s.Host] = use{busy: max(b.busy, u.busy), iowait: max(b.iowait, u.iowait), queue: max(b.queue, u.queue)}
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// learn watches for so long what the servers do without load.
func (w *quiescence) learn(ctx context.Context, long time.Duration) {
	w.mu.Lock()
	w.learning = true
	w.mu.Unlock()
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	w.mu.Lock()
	w.learning = false
	w.mu.Unlock()
}

// calm waits until the servers are as calm as they were when it learned, at
// most for so long. It does not wait if nobody tells how they are.
func (w *quiescence) calm(ctx context.Context, most time.Duration) {
	over := time.NewTimer(max(most, 0))
	defer over.Stop()
	began := time.Now()
	for !w.isCalm(began) {
		select {
		case <-w.news:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// isCalm holds the newest samples against what was learned. Those whose time
// began long before the rest did say nothing about it.
func (w *quiescence) isCalm(since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for host, base := range w.base {
		u := w.now[host]
		if u.end.Add(-u.span).Before(since.Add(-DefaultCool)) || u.busy > base.busy+calmBusy || u.iowait > base.iowait+calmWait || u.queue > base.queue+calmQueue {
			return false
		}
	}
	return true
}
