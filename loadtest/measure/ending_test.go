package measure

import (
	"errors"
	"testing"
	"time"
)

// An event "end" keeps its ending.
func TestEndings(t *testing.T) {
	for _, end := range []Ending{
		Completed(), InterruptedBy("SIGTERM"), Early(FinishedEarly, "stop.time", "stop.time: 5s have passed"),
		Early(StoppedByRule, "stop.error_ratio", "stop.error_ratio: 3 of 4"), Broken(errors.New("no space left")),
	} {
		e := end.Event(time.Now(), 3)
		if got := e.Ending(); got != end || e.Kind != EventEnd || e.Step != 3 {
			t.Errorf("%+v came back as %+v", end, got)
		}
	}
}

func TestEndTracker(t *testing.T) {
	end := Completed().Event(time.Now(), 1)
	for name, c := range map[string]struct {
		events []Event
		want   *Ending
	}{
		"killed":   {[]Event{{Kind: "step"}}, nil},
		"complete": {[]Event{{Kind: "step"}, end}, &Ending{Outcome: Complete, Text: AllDone}},
		"resumed":  {[]Event{end, {Kind: "resume"}}, nil},
	} {
		var track EndTracker
		for _, e := range c.events {
			track.Saw(&e)
		}
		if got := track.Ending(); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWorse(t *testing.T) {
	if !BrokenOff.Worse(Interrupted) || Complete.Worse(Complete) || Complete.Worse(FinishedEarly) || !Interrupted.Worse(StoppedByRule) {
		t.Error("the order of outcomes is not that of what may be missing")
	}
}
