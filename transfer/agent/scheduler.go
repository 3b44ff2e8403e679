package agent

import (
	"context"
	"slices"
	"sync"

	"weir/transfer"
)

// A scheduler limits the number of copies that run at once, of all links together and of each link.
// They start in their order; links take turns.
type scheduler struct {
	mu     sync.Mutex
	free   int
	queues map[link]*linkQueue
	order  []link // of queues, the next link first
}

// A link is the connection from a site to another.
type link struct{ source, dest string }

func linkOf(l *transfer.Lease) link { return link{l.Source.Site, l.Dest.Site} }

// A linkQueue holds the copies over a link.
type linkQueue struct {
	limit   int // of the last lease; 0: no limit
	running int
	waiting []*waiter
}

// A waiter is a copy that waits for its turn.
type waiter struct {
	in   chan struct{} // closed when it may run
	gone bool          // it has given up
}

func newScheduler(places int) *scheduler {
	return &scheduler{free: places, queues: map[link]*linkQueue{}}
}

// enter waits for the turn of a copy over the link, of which limit may run at once; it returns
// false if ctx ended first. If it returns true, the caller must call leave.
func (g *scheduler) enter(ctx context.Context, way link, limit int) bool {
	t := &waiter{in: make(chan struct{})}
	g.mu.Lock()
	l := g.queues[way]
	if l == nil {
		l = &linkQueue{}
		g.queues[way] = l
		g.order = append(g.order, way)
	}
	l.limit = limit
	l.waiting = append(l.waiting, t)
	g.admit()
	g.mu.Unlock()
	select {
	case <-t.in:
		return true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.in: // admitted just now
		g.left(way)
	default:
		t.gone = true
	}
	return false
}

// leave makes room for the next copy.
func (g *scheduler) leave(way link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left(way)
}

func (g *scheduler) left(way link) {
	g.queues[way].running--
	g.free++
	g.admit()
}

// admit starts the waiting copies whose turn it is.
func (g *scheduler) admit() {
	for g.free > 0 {
		i := slices.IndexFunc(g.order, func(way link) bool { return g.queues[way].ready() })
		if i < 0 {
			break
		}
		way := g.order[i]
		g.order = append(slices.Delete(g.order, i, i+1), way)
		l := g.queues[way]
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running++
		g.free--
		close(t.in)
	}
	g.order = slices.DeleteFunc(g.order, func(way link) bool {
		l := g.queues[way]
		empty := l.running == 0 && !l.ready()
		if empty {
			delete(g.queues, way)
		}
		return empty
	})
}

// ready reports whether the first waiting copy may run if a slot is free.
func (l *linkQueue) ready() bool {
	for len(l.waiting) > 0 && l.waiting[0].gone {
		l.waiting = l.waiting[1:]
	}
	return len(l.waiting) > 0 && (l.limit == 0 || l.running < l.limit)
}
