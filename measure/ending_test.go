package measure

import (
	"errors"
	"testing"
	"time"
)

// What an ending says comes back from its event, with a type or, as older runs
// have it, by its text alone.
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		end     Ending
		untyped Ending
	}{
		{Completed(), Ending{Outcome: Complete}},
		{InterruptedBy("SIGTERM"), Ending{Outcome: Interrupted, Reason: ByFinish}},
		{Early(FinishedEarly, "stop.time", "stop.time: 5s have passed"), Ending{Outcome: FinishedEarly, Reason: "stop.time"}},
		{Early(StoppedByRule, "stop.error_ratio", "stop.error_ratio: 3 of 4"), Ending{Outcome: StoppedByRule, Reason: "stop.error_ratio"}},
		{Broken(errors.New("no space left")), Ending{Outcome: BrokenOff}},
		{Ending{Interrupted, "SIGINT", "broken off: stopped by a second interrupt"}, Ending{Outcome: Interrupted}},
		{Ending{StoppedByRule, "stop.error_ratio", "ended early: stop.time: 5s; ended early: stop.error_ratio: 3 of 4; " +
			"ended early: stop.count: 4"}, Ending{Outcome: StoppedByRule, Reason: "stop.error_ratio"}},
	} {
		e := c.end.Event(time.Now(), 3)
		if got := e.Ending(); got != c.end || e.Kind != EventEnd || e.Step != 3 {
			t.Errorf("%+v came back as %+v", c.end, got)
		}
		e.Outcome, e.Reason = "", ""
		if got := e.Ending(); got.Outcome != c.untyped.Outcome || got.Reason != c.untyped.Reason || got.Text != c.end.Text {
			t.Errorf("%q was read as %+v, want %+v", e.Text, got, c.untyped)
		}
	}
}

func TestEndTracker(t *testing.T) {
	end := Completed().Event(time.Now(), 1)
	asked := Event{Kind: EventEnd, Text: "ended early: finish was asked for"}
	for name, c := range map[string]struct {
		events []Event
		want   *Ending
	}{
		"killed":            {[]Event{{Kind: "step"}}, nil},
		"complete":          {[]Event{{Kind: "step"}, end}, &Ending{Outcome: Complete}},
		"resumed":           {[]Event{asked, {Kind: "resume"}}, nil},
		"untyped signal":    {[]Event{{Kind: "step"}, asked}, &Ending{Outcome: Interrupted, Reason: ByFinish}},
		"untyped threshold": {[]Event{{Kind: "threshold"}, asked}, &Ending{Outcome: StoppedByRule, Reason: ByThreshold}},
	} {
		var track EndTracker
		for _, e := range c.events {
			track.Saw(&e)
		}
		got := track.Ending()
		if (got == nil) != (c.want == nil) || got != nil && (got.Outcome != c.want.Outcome || got.Reason != c.want.Reason) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWorse(t *testing.T) {
	if !BrokenOff.Worse(Interrupted) || Complete.Worse(Complete) || Complete.Worse(FinishedEarly) || !Interrupted.Worse(StoppedByRule) {
		t.Error("the order of outcomes is not that of what may be missing")
	}
}
