package analysis

import (
	"testing"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// held makes seconds of a step's hold from a second on.
func heldSeconds(d *data, step, from, n int) {
	for i := range n {
		s := second{start: time.Unix(int64(1_700_000_000+from+i), 0), seconds: 1, step: step, phase: measure.Measured, clients: 4}
		d.seconds = append(d.seconds, s)
		t := entryOf(&d.steps, step)
		t.number, t.span = step, t.span+1
	}
}

func event(kind measure.EventKind, step, at int) *measure.Event {
	return &measure.Event{Kind: kind, Step: step, Time: time.Unix(int64(1_700_000_000+at), 0), Clients: 10 * step}
}

// A run of three steps that was broken off in the second, and resumed an hour later.
func resumedRun() *data {
	d := &data{steps: map[int]*total{}}
	heldSeconds(d, 1, 0, 5)
	heldSeconds(d, 2, 5, 3)
	heldSeconds(d, 4, 3608, 5)
	d.events = []*measure.Event{event("step", 1, 0), event("step", 2, 5), event("resume", 2, 3607), event("step", 4, 3608)}
	return d
}

func TestStepsThatAreRepeatedAreNoPoints(t *testing.T) {
	d := resumedRun()
	var numbers []int
	for _, s := range d.held() {
		numbers = append(numbers, s.number)
	}
	if len(numbers) != 2 || numbers[0] != 1 || numbers[1] != 4 {
		t.Errorf("steps %v, want 1 and 4", numbers)
	}
	if got := d.announced(4); got == nil || got.Clients != 40 {
		t.Errorf("step 4 was announced by %+v", got)
	}
	d.steps[4].span = 0 // not repeated yet
	if n := len(d.held()); n != 2 {
		t.Errorf("%d steps, want 1 and what there is of 2", n)
	}
}

func TestATimeBetweenTwoPartsIsNoFault(t *testing.T) {
	d := resumedRun()
	f := &Findings{Curve: []Step{{Step: 1}, {Step: 4}}}
	d.plan = &scenario.Plan{Steps: []scenario.Step{{Number: 1}, {Number: 2}}}
	var damage Check
	if d.noteDamage(f, &damage); damage.Detail != "" {
		t.Error(damage.Detail)
	}
	if c := d.checkClock(); c.Status != OK {
		t.Errorf("%+v", c)
	}
	if got := d.interrupted(); got != 3600 {
		t.Errorf("interrupted for %v s, want 3600", got)
	}
	if gap, step := d.gaps(); gap > 0 {
		t.Errorf("%v s are missing in step %d", gap, step)
	}
	if d.ending() != nil {
		t.Error("it has no end")
	}
	end := event("end", 4, 3613)
	end.Outcome = measure.Complete
	d.events = append(d.events, end)
	if d.ending() == nil {
		t.Error("it has an end")
	}
	if got := d.ending(); got.Outcome != measure.Complete {
		t.Error(got)
	}
	early := event("end", 4, 3614)
	early.Outcome, early.Text = measure.Interrupted, "ended early: interrupted"
	if got := (&data{events: append(d.events, early)}).ending(); got.Text != early.Text || got.Outcome != measure.Interrupted {
		t.Error(got)
	}
	d.events = append(d.events, event("resume", 0, 3700))
	if d.ending() != nil {
		t.Error("it was resumed after its end")
	}
}

// Steps of a resumed run are those of the plan from the one that was broken off on.
func TestPlacesOfSteps(t *testing.T) {
	d := newData(&scenario.Plan{Steps: make([]scenario.Step, 3)})
	begun, resumed := measure.EventStep, measure.EventResume
	d.events = []*measure.Event{event(begun, 1, 0), event(begun, 2, 1), event(resumed, 2, 2), event(begun, 4, 3), event(resumed, 4, 4),
		event(begun, 6, 5), event(resumed, 0, 6), event(begun, 8, 7)}
	for step, want := range map[int]int{1: 0, 2: 1, 4: 1, 6: 1, 8: 2, 9: 3} {
		if got := d.place(step); got != want {
			t.Errorf("step %d has place %d, want %d", step, got, want)
		}
	}
}
