package sockdiag

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// mostTraces is the number of sockets that Traces holds.
const mostTraces = 4096

// Traces holds the traces of sockets. The zero value is ready; its methods are safe for concurrent
// use.
type Traces struct {
	mu     sync.Mutex
	rounds int
	all    []*Trace
	open   map[ends]*Trace
	left   int
}

type ends struct{ local, remote netip.AddrPort }

// Add adds one reading of sockets at the time at. Sockets that are not in the first reading were
// opened after it, so that their traces count from their opening.
func (t *Traces) Add(at time.Duration, sockets []Socket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[ends]*Trace{}
	}
	for i := range sockets {
		s := &sockets[i]
		key := ends{s.Local, s.Remote}
		trace := t.open[key]
		if trace == nil || trace.last.received > s.BytesReceived || trace.last.acked > s.BytesAcked { // a new socket
			if len(t.all) == mostTraces {
				t.left++
				continue
			}
			trace = &Trace{Whole: t.rounds > 0}
			t.open[key] = trace
			t.all = append(t.all, trace)
		}
		trace.Add(at, s)
	}
	t.rounds++
}

// All returns copies of the traces, those with the most bytes first.
func (t *Traces) All() []Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Trace, len(t.all))
	for i, trace := range t.all {
		all[i] = *trace
		all[i].In, all[i].Out = slices.Clone(trace.In), slices.Clone(trace.Out)
	}
	slices.SortStableFunc(all, func(a, b Trace) int {
		return cmp.Compare(b.BytesReceived+b.BytesAcked, a.BytesReceived+a.BytesAcked)
	})
	return all
}

// Left returns the number of samples that were discarded because 4,096 other sockets had traces.
func (t *Traces) Left() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}

// Sample reads the sockets of filter at once, at intervals of every, and when ctx ends, and adds
// them to into. Times are since the first reading. It returns nil when ctx ends.
func Sample(ctx context.Context, r *Reader, every time.Duration, filter func() Filter, into *Traces) error {
	begin := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var sockets []Socket
	for {
		ended := ctx.Err() != nil
		var err error
		if sockets, err = r.Sockets(filter(), sockets[:0]); err != nil {
			return err
		}
		if into.Add(time.Since(begin), sockets); ended {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
