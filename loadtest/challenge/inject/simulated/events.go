package simulated

import (
	"math"

	"weir/loadtest/challenge/inject"
)

// An occurrence is the kind of an event.
type occurrence int

const (
	serviceHasRequest occurrence = iota
	serviceBegins
	checksumIsKnown
	slotIsFree
	capacityChanges
	siteLeaves
	siteReturns
)

// An event happens at a time of the model.
type event struct {
	at    float64
	order uint64 // of events at the same time
	what  occurrence
	index int // of the site or change
	copy  *running
	turn  int // of copy; another value means that the copy has ended
}

// events are a heap by time.
type events struct {
	heap  []event
	order uint64
}

func (e *events) less(i, k int) bool {
	a, b := &e.heap[i], &e.heap[k]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// push adds an event.
func (e *events) push(x event) {
	e.order++
	x.order = e.order
	e.heap = append(e.heap, x)
	for i := len(e.heap) - 1; i > 0 && e.less(i, (i-1)/2); i = (i - 1) / 2 {
		e.heap[i], e.heap[(i-1)/2] = e.heap[(i-1)/2], e.heap[i]
	}
}

// first returns the time of the first event.
func (e *events) first() float64 {
	if len(e.heap) == 0 {
		return math.Inf(1)
	}
	return e.heap[0].at
}

// pop removes the first event.
func (e *events) pop() event {
	x, n := e.heap[0], len(e.heap)-1
	e.heap[0] = e.heap[n]
	e.heap[n] = event{}
	e.heap = e.heap[:n]
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < n; k++ {
			if e.less(k, least) {
				least = k
			}
		}
		if least == i {
			return x
		}
		e.heap[i], e.heap[least] = e.heap[least], e.heap[i]
		i = least
	}
}

// run moves the time to end, event by event.
func (s *Simulated) run(end float64) {
	for {
		s.sharing.share(s.links)
		next := min(end, max(s.now, s.events.first()))
		for _, i := range s.sharing.busy {
			if l := &s.links[i]; l.rate > 0 {
				next = min(next, s.now+max(0, l.next-l.level)/l.rate)
			}
		}
		s.advance(next)
		if next >= end {
			return
		}
		for s.events.first() <= s.now {
			s.handle(s.events.pop())
		}
	}
}

// advance moves bytes until the time next, and completes copies.
func (s *Simulated) advance(next float64) {
	dt := next - s.now
	s.now = next
	busy := s.sharing.busy
	for i := len(busy) - 1; i >= 0; i-- { // backwards: a link that is removed is replaced by the last
		l := &s.links[busy[i]]
		l.level += l.rate * dt
		// within the error of the sums: a thousandth of a byte
		for k := 0; l.next <= l.level+1e-3 && k < len(l.now); {
			if c := l.now[k]; c.until <= l.level+1e-3 {
				s.complete(c) // which puts another copy at k
			} else {
				k++
			}
		}
	}
}

// handle carries out an event.
func (s *Simulated) handle(e event) {
	if e.copy != nil && (e.copy.turn != e.turn || e.copy.state == ended) {
		return
	}
	switch e.what {
	case serviceHasRequest:
		s.arrive(e.copy)
	case serviceBegins:
		s.admit(e.copy)
	case checksumIsKnown:
		s.end(e.copy, inject.Done, "")
	case slotIsFree:
		s.fill()
	case capacityChanges:
		s.sharing.change(s.o.Changes[e.index])
	case siteLeaves:
		s.leave(e.index)
	case siteReturns:
		s.sites[e.index].away--
	}
}
