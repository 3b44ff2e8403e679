package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/loadtest/measure"
)

// An event is one line of events.jsonl.
type event struct {
	seq  int64
	Time time.Time `json:"time"`
	Kind string    `json:"event"`
	Step int       `json:"step,omitempty"`
	Text string    `json:"text"`
}

// Texts from outside are shortened to so many bytes.
const (
	mostText = 2000
	mostName = 200
)

// short returns text in the form that is shown: without control characters, and shortened to most
// bytes.
func short(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return say.Plain(text)
}

// event adds one line of events.jsonl.
func (h *history) event(e *measure.Event) {
	h.line()
	if !h.workers.apply(e) {
		return
	}
	text := short(e.Text, mostText)
	h.events = append(h.events, event{h.seq, e.Time, short(string(e.Kind), mostName), e.Step, text})
	if n := len(h.events) - mostEvents; n > mostEvents {
		h.events = slices.Delete(h.events, 0, n)
	}
	switch e.Kind {
	case "error":
		h.errorOf(e.Class).add(e.Time, text)
	case "step":
		h.begin(e)
	case "resume":
		h.resumed(e.Step)
	}
}

// workersOf contains the latest state of each worker of a run on many machines.
type workersOf map[string]string // state, by name

// apply applies an event. It returns false if the event is only counted and has no line of its own:
// hundreds of workers come and leave.
func (w workersOf) apply(e *measure.Event) bool {
	if e.Worker == nil {
		return true
	}
	name := e.Worker.Name
	if job := e.Worker.Job; job != "" && e.Worker.State == measure.Came {
		delete(w, "job "+job) // the job was held, for example, before its worker came
	}
	w[name] = e.Worker.State
	return e.Worker.State != measure.Came && e.Worker.State != measure.Left
}

// text returns the number of workers in each state, "" if there are no workers.
func (w workersOf) text() string {
	count := map[string]int{}
	for _, state := range w {
		count[state]++
	}
	var parts []string
	for _, x := range []struct{ state, what string }{{measure.Came, "there"}, {measure.Left, "done"}, {measure.Lost, "lost"},
		{measure.Held, "held"}, {measure.Failed, "failed"}, {measure.Absent, "never came"}} {
		if n := count[x.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, x.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return say.Plural(len(w), "worker") + ": " + strings.Join(parts, ", ")
}
