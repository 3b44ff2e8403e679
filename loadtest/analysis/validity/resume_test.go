package validity

import (
	"testing"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// heldSeconds adds seconds of a step's hold, the first at from.
func heldSeconds(d *steps.Run, step, from, n int) {
	for i := range n {
		s := steps.Second{Start: time.Unix(int64(1_700_000_000+from+i), 0), Seconds: 1, Step: step, Phase: measure.Measured, Clients: 4}
		d.Seconds = append(d.Seconds, s)
		t := basics.EntryOf(&d.Steps, step)
		t.Number, t.Span = step, t.Span+1
	}
}

func event(kind measure.EventKind, step, at int) *measure.Event {
	return &measure.Event{Kind: kind, Step: step, Time: time.Unix(int64(1_700_000_000+at), 0), Clients: 10 * step}
}

// resumedRun returns a run of three steps that was broken off in the second step, and resumed an
// hour later.
func resumedRun() *steps.Run {
	d := &steps.Run{Steps: map[int]*steps.Total{}}
	heldSeconds(d, 1, 0, 5)
	heldSeconds(d, 2, 5, 3)
	heldSeconds(d, 4, 3608, 5)
	d.Events = []*measure.Event{event("step", 1, 0), event("step", 2, 5), event("resume", 2, 3607), event("step", 4, 3608)}
	return d
}

func TestATimeBetweenTwoPartsIsNoFault(t *testing.T) {
	d := resumedRun()
	e := &Evidence{Run: d}
	curve := steps.CurveOf([]steps.Figures{{Step: 1}, {Step: 4}}, "", "", false)
	d.Plan = &scenario.Plan{Steps: []scenario.Step{{Number: 1}, {Number: 2}}}
	var damage Check
	if e.noteDamage(curve, &damage); damage.Detail != "" {
		t.Error(damage.Detail)
	}
	if c := e.checkClock(); c.Status != OK {
		t.Errorf("%+v", c)
	}
	if got := d.Interrupted(); got != 3600 {
		t.Errorf("interrupted for %v s, want 3600", got)
	}
	if gap, step := gaps(d); gap > 0 {
		t.Errorf("%v s are missing in step %d", gap, step)
	}
	if d.Ending() != nil {
		t.Error("it has no end")
	}
	end := event("end", 4, 3613)
	end.Outcome = measure.Complete
	d.Events = append(d.Events, end)
	if d.Ending() == nil {
		t.Error("it has an end")
	}
	if got := d.Ending(); got.Outcome != measure.Complete {
		t.Error(got)
	}
	early := event("end", 4, 3614)
	early.Outcome, early.Text = measure.Interrupted, "ended early: interrupted"
	if got := (&steps.Run{Events: append(d.Events, early)}).Ending(); got.Text != early.Text || got.Outcome != measure.Interrupted {
		t.Error(got)
	}
	d.Events = append(d.Events, event("resume", 0, 3700))
	if d.Ending() != nil {
		t.Error("it was resumed after its end")
	}
}
