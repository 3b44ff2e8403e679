package measure

import (
	"fmt"
	"slices"
	"time"
)

// An Outcome classifies the end of a run.
type Outcome string

// Outcomes of a run.
const (
	Complete      Outcome = "complete"       // all steps were held, or the search ended by itself
	FinishedEarly Outcome = "finished_early" // a planned amount was reached: stop.time, stop.count, stop.bytes
	StoppedByRule Outcome = "stop_rule"      // a rule of the plan ended it: stop.error_ratio, a threshold with "or stop"
	Interrupted   Outcome = "interrupted"    // a signal ended it
	BrokenOff     Outcome = "broken_off"     // an error ended it
)

// ByThreshold is a reason of an Ending, besides the names of signals (SIGINT, SIGTERM, SIGHUP) and
// of the keys below stop (stop.time, stop.error_ratio ...).
const ByThreshold = "thresholds" // a threshold with "or stop" was not met

// An Ending is the outcome of a run and its reason, as its event "end" records them.
type Ending struct {
	Outcome Outcome `json:"outcome"`
	// A key of the plan, or a signal; "" if the outcome is enough, or Text has an error.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"` // for people
}

// AllDone is the text of the ending Completed.
const AllDone = "all steps are done"

// Completed returns the ending of a run that came to its last step's end.
func Completed() Ending { return Ending{Outcome: Complete, Text: AllDone} }

// InterruptedBy returns the ending of a run that a signal ended, by the signal's name. The last
// operations may end.
func InterruptedBy(signal string) Ending {
	e := Ending{Outcome: Interrupted, Reason: signal, Text: early + "interrupted"}
	if signal != "" {
		e.Text += " by " + signal
	}
	return e
}

// Early returns the ending of a run that the plan's reason ended before its last step did.
func Early(outcome Outcome, reason, text string) Ending {
	return Ending{Outcome: outcome, Reason: reason, Text: early + text}
}

// Broken returns the ending of a run that err ended.
func Broken(err error) Ending {
	return Ending{Outcome: BrokenOff, Text: fmt.Sprintf("%s%v", brokenOff, err)}
}

// Event returns the event "end" with this ending, of a run whose last step is step.
func (e Ending) Event(at time.Time, step int) Event {
	return Event{Time: at.UTC(), Kind: EventEnd, Step: step, Text: e.Text, Outcome: e.Outcome, Reason: e.Reason}
}

// Beginnings of the texts of endings.
const (
	early     = "ended early: "
	brokenOff = "broken off: "
)

// Ending returns the ending that an event "end" records.
func (e *Event) Ending() Ending { return Ending{e.Outcome, e.Reason, e.Text} }

// Worse reports whether more of a run may be missing with outcome o than with other.
func (o Outcome) Worse(other Outcome) bool {
	order := []Outcome{Complete, FinishedEarly, StoppedByRule, Interrupted, BrokenOff}
	return slices.Index(order, o) > slices.Index(order, other)
}

// An EndTracker receives the events of a run in their order, and keeps the ending of the run. The
// zero value has received no event.
type EndTracker struct {
	ending *Ending
}

// Saw adds the next event. A run that is resumed goes on.
func (t *EndTracker) Saw(e *Event) {
	switch e.Kind {
	case EventResume:
		*t = EndTracker{}
	case EventEnd:
		end := e.Ending()
		t.ending = &end
	}
}

// Ending returns the ending of the run, nil if it goes on or was killed.
func (t *EndTracker) Ending() *Ending { return t.ending }
