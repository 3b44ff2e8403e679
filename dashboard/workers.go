package dashboard

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/measure"
)

// workersOf keeps what became of each worker of a run on many machines, last.
type workersOf map[string]string // state, by name

// tell takes an event; false: it is counted, and no line of its own: hundreds
// come and leave.
func (w workersOf) tell(e *measure.Event) bool {
	if e.Worker == nil {
		return true
	}
	name := e.Worker.Name
	if job := e.Worker.Job; job != "" && e.Worker.State == measure.Came {
		delete(w, "job "+job) // it was held, or so, before it came
	}
	w[name] = e.Worker.State
	return e.Worker.State != measure.Came && e.Worker.State != measure.Left
}

// text says how many are there and how many are not, "" where there are none.
func (w workersOf) text() string {
	count := map[string]int{}
	for _, state := range w {
		count[state]++
	}
	var parts []string
	for _, x := range []struct{ state, what string }{{measure.Came, "there"}, {measure.Left, "done"}, {measure.Lost, "lost"}, {measure.Held, "held"}, {measure.Failed, "failed"}, {measure.Absent, "never came"}} {
		if n := count[x.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, x.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return say.Plural(len(w), "worker") + ": " + strings.Join(parts, ", ")
}
