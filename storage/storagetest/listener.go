package storagetest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"weir/storage"
)

// A listener hears an operation's progress and remembers what was wrong with
// it. Only its first lines are safe against the faults that it looks for.
type listener struct {
	busy    atomic.Bool // a call is going on
	over    atomic.Bool // Do has returned
	clashes atomic.Int64
	late    atomic.Int64

	moved   int64
	calls   int
	first   int64 // bytes of the first call of Moved
	bad     []string
	phases  []storage.Phase
	servers []string
	onMoved func() // called at every Moved
}

// enter says whether a call is in order; leave ends one that is.
func (l *listener) enter() bool {
	if l.over.Load() {
		l.late.Add(1)
		return false
	}
	if !l.busy.CompareAndSwap(false, true) {
		l.clashes.Add(1)
		return false
	}
	return true
}

func (l *listener) leave() { l.busy.Store(false) }

func (l *listener) end() { l.over.Store(true) }

// Reached implements storage.Progress.
func (l *listener) Reached(p storage.Phase) {
	if !l.enter() {
		return
	}
	defer l.leave()
	if p >= storage.Phases {
		l.bad = append(l.bad, fmt.Sprintf("reached phase %d, which does not exist", p))
	}
	l.phases = append(l.phases, p)
}

// Moved implements storage.Progress.
func (l *listener) Moved(n int) {
	if !l.enter() {
		return
	}
	defer l.leave()
	if n < 0 {
		l.bad = append(l.bad, fmt.Sprintf("moved %d bytes", n))
	}
	l.moved += int64(n)
	if l.calls == 0 {
		l.first = int64(n)
	}
	l.calls++
	if l.onMoved != nil {
		l.onMoved()
	}
}

// ServedBy implements storage.Progress.
func (l *listener) ServedBy(host string) {
	if !l.enter() {
		return
	}
	defer l.leave()
	l.servers = append(l.servers, host)
}

func (l *listener) reached(p storage.Phase) bool { return slices.Contains(l.phases, p) }

// faults lists what was wrong with the progress of an operation of kind k.
func (l *listener) faults(k storage.Kind) []string {
	bad := l.bad
	if n := l.clashes.Load(); n > 0 {
		bad = append(bad, fmt.Sprintf("%d calls of Progress while another was going on", n))
	}
	if n := l.late.Load(); n > 0 {
		bad = append(bad, fmt.Sprintf("%d calls of Progress after Do had returned", n))
	}
	for i, p := range l.phases {
		switch {
		case slices.Contains(l.phases[:i], p):
			bad = append(bad, fmt.Sprintf("phase %d reached twice: %v", p, l.phases))
		case i > 0 && p < l.phases[i-1] && l.phases[i-1] != storage.Redirected:
			bad = append(bad, fmt.Sprintf("phases out of order: %v", l.phases))
		}
	}
	if k == storage.Read && (l.moved > 0) != l.reached(storage.FirstByte) {
		bad = append(bad, fmt.Sprintf("%d bytes moved, but phases are %v", l.moved, l.phases))
	}
	return bad
}
