package steps

import (
	"testing"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// heldSeconds adds n seconds of a step's hold, starting at second from.
func heldSeconds(d *Run, step, from, n int) {
	for i := range n {
		s := Second{Start: time.Unix(int64(1_700_000_000+from+i), 0), Seconds: 1, Step: step, Phase: measure.Measured, Clients: 4}
		d.Seconds = append(d.Seconds, s)
		t := basics.EntryOf(&d.Steps, step)
		t.Number, t.Span = step, t.Span+1
	}
}

func event(kind measure.EventKind, step, at int) *measure.Event {
	return &measure.Event{Kind: kind, Step: step, Time: time.Unix(int64(1_700_000_000+at), 0), Clients: 10 * step}
}

// resumedRun returns a run of three steps that was interrupted in the second step, and resumed an
// hour later.
func resumedRun() *Run {
	d := &Run{Steps: map[int]*Total{}}
	heldSeconds(d, 1, 0, 5)
	heldSeconds(d, 2, 5, 3)
	heldSeconds(d, 4, 3608, 5)
	d.Events = []*measure.Event{event("step", 1, 0), event("step", 2, 5), event("resume", 2, 3607), event("step", 4, 3608)}
	return d
}

func TestStepsThatAreRepeatedAreNoPoints(t *testing.T) {
	d := resumedRun()
	var numbers []int
	for _, s := range d.Held() {
		numbers = append(numbers, s.Number)
	}
	if len(numbers) != 2 || numbers[0] != 1 || numbers[1] != 4 {
		t.Errorf("steps %v, want 1 and 4", numbers)
	}
	if got := d.Announced(4); got == nil || got.Clients != 40 {
		t.Errorf("step 4 was announced by %+v", got)
	}
	d.Steps[4].Span = 0 // not repeated yet
	if n := len(d.Held()); n != 2 {
		t.Errorf("%d steps, want 1 and what there is of 2", n)
	}
}

// The steps of a resumed run are the steps of the plan, continuing with the step that was
// interrupted.
func TestPlacesOfSteps(t *testing.T) {
	d := newRun(&scenario.Plan{Steps: make([]scenario.Step, 3)})
	begun, resumed := measure.EventStep, measure.EventResume
	d.Events = []*measure.Event{event(begun, 1, 0), event(begun, 2, 1), event(resumed, 2, 2), event(begun, 4, 3), event(resumed, 4, 4),
		event(begun, 6, 5), event(resumed, 0, 6), event(begun, 8, 7)}
	for step, want := range map[int]int{1: 0, 2: 1, 4: 1, 6: 1, 8: 2, 9: 3} {
		if got := d.place(step); got != want {
			t.Errorf("step %d has place %d, want %d", step, got, want)
		}
	}
}
