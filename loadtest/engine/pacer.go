package engine

import "time"

// A Sleeper can be woken. Wake never blocks, and waking a Sleeper again changes nothing.
type Sleeper interface{ Wake() }

// A wakeup is the Sleeper of one goroutine, which waits by receiving from it.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

// Wake implements Sleeper.
func (b wakeup) Wake() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// A Pacer wakes sleepers at their time.
type Pacer interface {
	// Sleep has s woken at the given time. It returns at once.
	Sleep(s Sleeper, until time.Time)
	// Close ends the pacer; no client is woken after it.
	Close() error
}

// Timers returns a pacer made of the standard library's timers, which are up
// to a millisecond late but run everywhere, also under testing/synctest.
func Timers() Pacer { return timers{} }

type timers struct{}

func (timers) Sleep(s Sleeper, until time.Time) { time.AfterFunc(time.Until(until), s.Wake) }
func (timers) Close() error                     { return nil }

// An alarm is one sleeper's time.
type alarm struct {
	due     time.Duration // on the pacer's clock
	sleeper Sleeper
}

// alarms is a binary heap, the earliest first. (container/heap would allocate
// for each alarm.)
type alarms []alarm

func (h *alarms) push(a alarm) {
	*h = append(*h, a)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].due <= s[i].due {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *alarms) pop() alarm {
	s := *h
	top, last := s[0], len(s)-1
	s[0], s[last] = s[last], alarm{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && s[down].due < s[least].due {
				least = down
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
