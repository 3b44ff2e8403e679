package run

import (
	"context"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/monitor"
)

// A quiescence records from the monitor's samples how busy the servers were before a
// search, and waits until they are as idle again. The clients' own host counts if the
// service is also on it.
type quiescence struct {
	mu       sync.Mutex
	base     map[string]serverLoad // highest of each host before the first step
	now      map[string]serverLoad
	learning bool
	news     chan struct{} // holds at most one token
}

// A serverLoad is the load of a server. Numbers that a sample lacks are 0.
type serverLoad struct {
	end          time.Time
	span         time.Duration
	busy, iowait float64 // shares of all cores
	queue        float64 // requests that wait for the busiest disk, or jobs for a thread
}

// The server is idle if its load exceeds the load before by at most these numbers.
const (
	moreBusy  = 0.1
	moreWait  = 0.05
	moreQueue = 1.0
	learnFor  = 3 * time.Second
)

func newQuiescence() *quiescence {
	return &quiescence{base: map[string]serverLoad{}, now: map[string]serverLoad{}, news: make(chan struct{}, 1)}
}

// Sample records a sample of the monitor.
func (q *quiescence) Sample(s *monitor.Sample) {
	if s.Role == "client" || s.Error != "" || s.CPU == nil && s.Service == nil {
		return
	}
	u := serverLoad{end: s.Time, span: time.Duration(s.Seconds * float64(time.Second))}
	if s.CPU != nil {
		u.busy, u.iowait = s.CPU.Busy(), s.CPU.IOWait
	}
	for _, d := range s.Disks {
		u.queue = max(u.queue, d.Queue)
	}
	if s.Service != nil {
		u.queue = max(u.queue, float64(s.Service.Queue))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.now[s.Host] = u
	if b := q.base[s.Host]; q.learning {
		q.base[s.Host] = serverLoad{busy: max(b.busy, u.busy), iowait: max(b.iowait, u.iowait), queue: max(b.queue, u.queue)}
	}
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// learn records the load of the servers without clients for the given time.
func (q *quiescence) learn(ctx context.Context, long time.Duration) {
	set := func(on bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.learning = on
	}
	set(true)
	pause.For(ctx, long)
	set(false)
}

// wait waits until the servers are as idle as when it learned, for at most the given
// time. It does not wait if no server is monitored.
func (q *quiescence) wait(ctx context.Context, most time.Duration) {
	over := time.NewTimer(max(most, 0))
	defer over.Stop()
	began := time.Now()
	for !q.idle(began) {
		select {
		case <-q.news:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// idle compares the newest samples with the samples without load. Samples that began long before
// since do not count.
func (q *quiescence) idle(since time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for host, base := range q.base {
		u := q.now[host]
		old := u.end.Add(-u.span).Before(since.Add(-DefaultCooldown))
		if old || u.busy > base.busy+moreBusy || u.iowait > base.iowait+moreWait || u.queue > base.queue+moreQueue {
			return false
		}
	}
	return true
}
