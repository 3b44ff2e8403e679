package conduct

import (
	"context"
	"sync"
	"time"
)

// siteJobs is the number of verifications and removals at a site at once.
const siteJobs = 8

// A pool does jobs at the sites when they are due. A slow site delays no other. The pool has no
// goroutine while there is nothing to do: its owner calls run from time to time.
type pool struct {
	ctx context.Context

	mu      sync.Mutex
	queues  map[string][]job // by site, in the order of their times
	active  map[string]int
	working sync.WaitGroup
	closed  bool
}

// A job is work at a site.
type job struct {
	due time.Time
	do  func(ctx context.Context)
}

func newPool(ctx context.Context) *pool {
	return &pool{ctx: ctx, queues: map[string][]job{}, active: map[string]int{}}
}

// add adds a job. Jobs with a later time do not delay it if they were added to another queue: a queue
// has the jobs of one kind at one site.
func (p *pool) add(queue string, due time.Time, do func(ctx context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues[queue] = append(p.queues[queue], job{due, do})
}

// run starts the jobs that are due.
func (p *pool) run(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for queue, jobs := range p.queues {
		for p.active[queue] < siteJobs && len(jobs) > 0 && !jobs[0].due.After(now) && !p.closed {
			p.active[queue]++
			p.start(queue, jobs[0])
			jobs = jobs[1:]
		}
		if p.queues[queue] = jobs; len(jobs) == 0 {
			delete(p.queues, queue)
		}
	}
}

// start does a job of a queue in a goroutine. It is called with the lock.
func (p *pool) start(queue string, j job) {
	p.working.Go(func() {
		j.do(p.ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.active[queue]--
	})
}

// close drops the jobs that have not begun and waits for the others.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.working.Wait()
}
