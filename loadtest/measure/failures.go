package measure

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/storage"
)

// Failures counts the operations that failed or had a wrong payload in the newest step, in all its
// phases, and in its newest second. The zero value is empty.
type Failures struct {
	step          int
	at            time.Time
	whole, second ended
	lost          int64 // jobs
}

// ended counts operations that ended, and of these the operations that failed or had a wrong
// payload.
type ended struct{ failed, all int64 }

func (e *ended) add(v *Interval) {
	e.failed += v.Bad()
	e.all += v.Errors() + v.Done
}

func (e *ended) share() float64 { return float64(e.failed) / max(float64(e.all), 1) }

// Add adds the next interval; an interval of another step begins anew.
func (f *Failures) Add(v *Interval) {
	if v.Step != f.step {
		*f = Failures{step: v.Step}
	}
	if !v.Start.Equal(f.at) {
		f.at, f.second = v.Start, ended{}
	}
	f.whole.add(v)
	f.second.add(v)
	f.lost += v.Lost()
}

// Count returns the number of operations that failed or had a wrong payload in the step so far.
func (f *Failures) Count() int64 { return f.whole.failed }

// Lost returns the number of jobs that crashed or failed in the step so far.
func (f *Failures) Lost() int64 { return f.lost }

// Worse returns the number of operations that failed of all that ended in the newest second, and
// reports whether that is a larger share than in the whole step.
func (f *Failures) Worse() (failed, all int64, worse bool) {
	return f.second.failed, f.second.all, f.second.share() > f.whole.share()
}

// The number of errors that are kept whole between two cuts of the same step and class.
const examplesPerClass = 3

// examples keeps the first errors of each class in each step, and the first unrequested content encoding of the run.
type examples struct {
	seen   [storage.Classes]atomic.Int32 // in this step
	warned atomic.Bool                   // the warning of a content encoding is kept or written
	mu     sync.Mutex
	step   int
	kept   []Event
}

func (x *examples) add(r *Recorder, at address, class storage.Class, err error) {
	if err == nil || x.seen[class].Load() >= examplesPerClass {
		return
	}
	if x.seen[class].Add(1) > examplesPerClass {
		return
	}
	x.mu.Lock()
	x.kept = append(x.kept, Event{Time: r.date(r.Now()), Kind: EventError, Text: err.Error(), Class: class, On: at.server,
		What: at.kind.String(), Exhausted: exhausted(err)})
	x.mu.Unlock()
}

// exhausted returns the value of Event.Exhausted for an error.
func exhausted(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return OpenFiles
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return Ports
	}
	return ""
}

// encoded keeps a warning of a content encoding that was not requested.
func (x *examples) encoded(r *Recorder, encoding string) {
	if x.warned.Load() || x.warned.Swap(true) {
		return
	}
	x.mu.Lock()
	x.kept = append(x.kept, Event{Time: r.date(r.Now()), Kind: EventWarning, Text: fmt.Sprintf("answers have Content-Encoding %q, which was "+
		"not requested, and the sizes of the files are unknown: the payload may be compressed content", encoding)})
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
