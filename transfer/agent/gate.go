package agent

import (
	"context"
	"slices"
	"sync"

	"weir/transfer"
)

// A gate lets only so many copies run at once, of all links together and of each
// one, in their order; links take turns.
type gate struct {
	mu    sync.Mutex
	free  int
	lanes map[link]*lane
	turns []link // of lanes, the next one first
}

// A link is the way from a site to another.
type link struct{ source, dest string }

func linkOf(l *transfer.Lease) link { return link{l.Source.Site, l.Dest.Site} }

// A lane is what goes over a link.
type lane struct {
	limit   int // as the last lease had it; 0: any number
	running int
	waiting []*ticket
}

// A ticket is a copy that waits.
type ticket struct {
	in   chan struct{} // closed when it may run
	gone bool          // nobody waits for it any more
}

func newGate(places int) *gate { return &gate{free: places, lanes: map[link]*lane{}} }

// enter waits for the turn of a copy over the link, of which limit may run at
// once; false if ctx ended first. Who has entered leaves.
func (g *gate) enter(ctx context.Context, way link, limit int) bool {
	t := &ticket{in: make(chan struct{})}
	g.mu.Lock()
	l := g.lanes[way]
	if l == nil {
		l = &lane{}
		g.lanes[way] = l
		g.turns = append(g.turns, way)
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
	case <-t.in: // just now
		g.left(way)
	default:
		t.gone = true
	}
	return false
}

// leave makes room for the next one.
func (g *gate) leave(way link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left(way)
}

func (g *gate) left(way link) {
	g.lanes[way].running--
	g.free++
	g.admit()
}

// admit lets in whose turn it is.
func (g *gate) admit() {
	for g.free > 0 {
		i := slices.IndexFunc(g.turns, func(way link) bool { return g.lanes[way].ready() })
		if i < 0 {
			break
		}
		way := g.turns[i]
		g.turns = append(slices.Delete(g.turns, i, i+1), way)
		l := g.lanes[way]
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running++
		g.free--
		close(t.in)
	}
	g.turns = slices.DeleteFunc(g.turns, func(way link) bool {
		l := g.lanes[way]
		empty := l.running == 0 && !l.ready()
		if empty {
			delete(g.lanes, way)
		}
		return empty
	})
}

// ready tells whether the first one that waits may run, if there is a place.
func (l *lane) ready() bool {
	for len(l.waiting) > 0 && l.waiting[0].gone {
		l.waiting = l.waiting[1:]
	}
	return len(l.waiting) > 0 && (l.limit == 0 || l.running < l.limit)
}
