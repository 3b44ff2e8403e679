package measure

import (
	"sync"
	"sync/atomic"

	"weir/storage"
)

// How many errors are kept whole between two cuts of the same step and class.
const examplesPerClass = 3

// examples keeps the first errors of each class in each step.
type examples struct {
	seen [storage.Classes]atomic.Int32 // in this step
	mu   sync.Mutex
	step int
	kept []Event
}

func (x *examples) add(r *Recorder, at address, class storage.Class, err error) {
	if err == nil || x.seen[class].Load() >= examplesPerClass {
		return
	}
	if x.seen[class].Add(1) > examplesPerClass {
		return
	}
	x.mu.Lock()
	x.kept = append(x.kept, Event{Time: r.date(r.Now()), Kind: "error", Text: err.Error(), Class: class, On: at.server, What: at.kind.String()})
	x.mu.Unlock()
}

// take returns the errors kept since the last call, which belong to step, and
// begins anew when the step differs from the last call's.
func (x *examples) take(step int) []Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	kept := x.kept
	x.kept = nil
	for i := range kept {
		kept[i].Step = step
	}
	if step != x.step {
		x.step = step
		for i := range x.seen {
			x.seen[i].Store(0)
		}
	}
	return kept
}
