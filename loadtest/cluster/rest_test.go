package cluster

import (
	"context"
	"io"
	"math"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// reader is a step source that reads the written results of the last step before it returns the
// next step, after a delay.
type reader struct {
	notes *notes
	steps []scenario.Step
	think time.Duration
	seen  []float64 // seconds of hold of each step, at the request for the next
}

func (p *reader) Next(ctx context.Context) (scenario.Step, error) {
	p.notes.mu.Lock()
	held := 0.0
	for _, v := range p.notes.intervals {
		if v.Step == len(p.seen) && v.Phase == measure.Measured {
			held += v.Seconds
		}
	}
	p.notes.mu.Unlock()
	p.seen = append(p.seen, held)
	select {
	case <-time.After(p.think):
	case <-ctx.Done():
		return scenario.Step{}, ctx.Err()
	}
	if len(p.seen) > len(p.steps) {
		return scenario.Step{}, io.EOF
	}
	return p.steps[len(p.seen)-1], nil
}

// Steps with a rest between them, in several processes: the step source can read the whole hold of
// a step before it returns the next step, its delay is rest, and seconds of all processes add up,
// also while clients leave at different moments.
func TestStepsOfSeveralProcessesStandApart(t *testing.T) {
	tier.Slow(t, "starts processes")
	workers := []*hired{hire(t, "1"), hire(t, "2"), hire(t, "3")}
	one, two := stepOf(7, 1.3), stepOf(3, 1)
	one.Number, two.Number = 1, 2
	one.Cooldown, two.Cooldown = unit.Duration(300*time.Millisecond), unit.Duration(300*time.Millisecond)
	conf, n := plan(), &notes{}
	conf.Plan.Find = &scenario.Find{Max: 7}
	pilot := &reader{notes: n, steps: []scenario.Step{one, two}, think: 1200 * time.Millisecond}
	conf.Sink, conf.Steps = n, pilot
	calm := watchCalm(t)
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	timely := calm()
	if len(pilot.seen) != 3 || timely && (math.Abs(pilot.seen[1]-1.3) > .15 || math.Abs(pilot.seen[2]-1) > .15) {
		t.Errorf("when it was asked for a step the step source could read %v s of hold of the one before, want 0, 1.3 and 1", pilot.seen)
	}
	var rest float64
	slots := map[string]bool{}
	for _, v := range n.intervals {
		if v.Phase == measure.GracefulStop && v.Clients == 0 {
			rest += v.Seconds
			if v.Begun > 0 {
				t.Errorf("%d operations began in a rest", v.Begun)
			}
		}
		at := v.Start.Truncate(time.Second).String() + v.Phase + string(rune('0'+v.Step))
		if slots[at] || timely && v.Seconds > 1.5 {
			t.Errorf("two intervals for %s, or one of %v s", at, v.Seconds)
		}
		slots[at] = true
	}
	if rest < 1.2 {
		t.Errorf("%v s without clients, want most of 3 s", rest)
	}
	if !n.has("step", "step 2: 3 clients") || !n.has("end", "all steps are done") {
		t.Errorf("events %+v", n.events)
	}
}

// Finish ends the run at once while the step source is busy.
func TestFinishWhileThePilotOfSeveralProcessesThinks(t *testing.T) {
	t.Parallel()
	workers := []*hired{hire(t, "1"), hire(t, "2")}
	one := stepOf(4, .5)
	one.Number, one.Cooldown = 1, unit.Duration(100*time.Millisecond)
	conf, n := plan(), &notes{}
	conf.Plan.Find = &scenario.Find{Max: 4}
	finish := make(chan struct{})
	conf.Finish = finish
	pilot := &reader{notes: n, steps: []scenario.Step{one, one}, think: 0}
	conf.Sink = n
	conf.Steps = &closing{reader: pilot, finish: finish}
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	if !n.ended(measure.Interrupted) {
		t.Errorf("events %+v", n.events)
	}
}

// closing is a step source that is interrupted during the request for the second step.
type closing struct {
	*reader
	finish chan struct{}
}

func (p *closing) Next(ctx context.Context) (scenario.Step, error) {
	if len(p.seen) == 1 {
		close(p.finish)
		<-ctx.Done()
		return scenario.Step{}, ctx.Err()
	}
	return p.reader.Next(ctx)
}
