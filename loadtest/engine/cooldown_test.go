package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// rest sums the seconds after a step in which no client was there, and the
// operations that began in them.
func (n *notes) rest(step int) (seconds float64, begun int64) {
	for _, v := range n.intervals {
		if v.Step == step && v.Phase == measure.GracefulStop && v.Clients == 0 {
			seconds += v.Seconds
			begun += v.Begun
		}
	}
	return seconds, begun
}

func TestNoOperationWhileTheServiceRests(t *testing.T) {
	for model, work := range map[scenario.Model]workload.Work{
		scenario.ClosedModel: {Kind: "read", Session: "kept", Pick: "random"},
		scenario.OpenModel:   {Kind: "read", Session: "kept", Pick: "random"},
	} {
		t.Run(string(model), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := stepOf(8, 5), stepOf(3, 5)
				one.Cooldown = seconds(4)
				one.Rate, two.Rate = 100, 50
				conf, n := closed(t, "simulated://x?servers=4&service=20ms&dist=constant&files=100x1KiB", work, one, two)
				conf.Plan.Model = model
				begin := time.Now()
				require.NoError(t, Run(t.Context(), conf))
				if rest, begun := n.rest(1); rest < 3 || rest > 5 || begun > 0 {
					t.Errorf("%v s without clients, %d operations in them, want about 4 s and none", rest, begun)
				}
				// 25 s, at most 0.06 s for the last operations, 4 s, 25 s
				if gone := time.Since(begin).Seconds(); gone < 54 || gone > 54.3 {
					t.Errorf("the run took %v s, want 54 s and the last operations", gone)
				}
				if a, b := n.held(1), n.held(2); a.Done == 0 || b.Done == 0 {
					t.Errorf("%d and %d operations", a.Done, b.Done)
				}
				checkRestEvents(t, n)
			})
		})
	}
}

func checkRestEvents(t *testing.T, n *notes) {
	t.Helper()
	var steps []measure.Event
	for _, e := range n.events {
		if e.Kind == measure.EventStep {
			steps = append(steps, e)
		}
	}
	if len(steps) != 2 || steps[0].Clients != 8 || steps[1].Clients != 3 || steps[1].Rate != 50 {
		t.Errorf("events of steps %+v, want their loads", steps)
	}
	var end time.Time
	for _, v := range n.intervals {
		if d := v.Start.Sub(end); !end.IsZero() && d.Abs() > time.Millisecond && v.Kind == n.intervals[0].Kind {
			t.Errorf("the interval at %v begins %v after the end of the one before", v.Start, d)
		}
		end = v.Start.Add(time.Duration(v.Seconds * 1e9))
	}
}

// Operations that hang are cancelled after the drain time, and the next step's clients work as if
// nothing had happened.
func TestOperationsThatHangAreBrokenOffBeforeARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := scenario.Step{Clients: 4, Duration: seconds(2), Cooldown: seconds(1)}, scenario.Step{Clients: 1, Duration: seconds(120)}
		conf, n := closed(t, "simulated://x?servers=1&service=40s&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"},
			one, two)
		conf.Plan.GracefulStop = seconds(5)
		require.NoError(t, Run(t.Context(), conf))
		if v := n.held(2); v.Done < 2 {
			t.Errorf("%d operations in the step after it, want 2 or 3", v.Done)
		}
		told := false
		for _, e := range n.events {
			told = told || e.Kind == measure.EventWarning && strings.Contains(e.Text, "5s after step 1 were broken off")
		}
		if !told {
			t.Errorf("nobody tells that operations were broken off: %+v", n.events)
		}
	})
}

// thinker is a StepSource that waits before it returns a step.
type thinker struct {
	steps []scenario.Step
	think time.Duration
	asked []time.Time
}

func (p *thinker) Next(ctx context.Context) (scenario.Step, error) {
	p.asked = append(p.asked, time.Now())
	select {
	case <-time.After(p.think):
	case <-ctx.Done():
		return scenario.Step{}, ctx.Err()
	}
	if len(p.asked) > len(p.steps) {
		return scenario.Step{}, io.EOF
	}
	return p.steps[len(p.asked)-1], nil
}

func TestSecondsAreWrittenWhileThePilotThinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf, n := closed(t, "simulated://x?servers=4&service=20ms&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"})
		conf.Plan.Steps = nil
		step := scenario.Step{Number: 1, Clients: 2, Duration: seconds(3), Cooldown: seconds(1)}
		second := step
		second.Number = 2
		conf.Steps = &thinker{steps: []scenario.Step{step, second}, think: 10 * time.Second}
		require.NoError(t, Run(t.Context(), conf))
		if n.intervals[0].Phase == measure.GracefulStop || n.intervals[0].Seconds > 1 {
			t.Errorf("the first interval is %s of %v s: waiting for the first step belongs to none", n.intervals[0].Phase, n.intervals[0].Seconds)
		}
		if rest, begun := n.rest(1); rest < 10 || begun > 0 {
			t.Errorf("%v s of rest, %d operations, want 11 s and none", rest, begun)
		}
		for _, v := range n.intervals {
			if v.Seconds > 1.001 {
				t.Errorf("an interval of %v s", v.Seconds)
			}
		}
	})
}

// A run that is to finish does so also while it rests and while its StepSource waits.
func TestFinishWhileResting(t *testing.T) {
	for _, after := range []time.Duration{3500 * time.Millisecond, 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			conf, n := closed(t, "simulated://x?servers=4&service=20ms&dist=constant&files=100x1KiB", workload.Work{Kind: "read", Session: "kept"})
			conf.Steps = &thinker{steps: []scenario.Step{{Number: 1, Clients: 2, Duration: seconds(3), Cooldown: seconds(2)}},
				think: time.Millisecond}
			begin := time.Now()
			if after > 5*time.Second {
				conf.Steps.(*thinker).think = 6 * time.Second
				after += 6 * time.Second
			}
			finish := make(chan struct{})
			conf.Finish = finish
			time.AfterFunc(after, func() { close(finish) })
			if err := Run(t.Context(), conf); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if gone := time.Since(begin); gone > after+time.Second {
				t.Errorf("ended %v after the begin, want %v", gone, after)
			}
			if last := n.events[len(n.events)-1]; last.Kind != "end" || last.Outcome != measure.Interrupted {
				t.Errorf("the end is %+v", last)
			}
		})
	}
}
