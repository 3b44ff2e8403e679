package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/internal/pause"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/scenario"
)

// Timed reports whether the plan says when its steps begin.
func Timed(p *scenario.Plan) bool { return len(p.Steps) > 0 && !p.Steps[0].Begin.IsZero() }

// parseBegin reads a time of the day within the next 12 hours, or a time with its day.
func parseBegin(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Before(now) {
			err = errors.New("this time is over")
		}
		return at, err
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		y, m, d := now.Date()
		at = time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		if at.Before(now) {
			at = at.AddDate(0, 0, 1)
		}
		if at.Sub(now) > 12*time.Hour {
			err = fmt.Errorf("this time is over for today (it is %s): add the day, as in %s", now.Format(time.TimeOnly), at.Format(time.RFC3339))
		}
		return at, err
	}
	return now, fmt.Errorf("use a time of the day, as in 14:30 or 14:30:15, or one with its day, as in %s", now.Format(time.RFC3339))
}

// timedSteps begins each step at the time that the plan gives. It leaves out a step that
// other machines already measure when it would begin, and joins them at the next one.
type timedSteps struct {
	engine.StepSource
	finish context.Context
	warn   func(string) error
	begun  bool // a step was not left out
}

// Next implements engine.StepSource.
func (p *timedSteps) Next(ctx context.Context) (scenario.Step, error) {
	for {
		s, err := p.StepSource.Next(ctx)
		if errors.Is(err, io.EOF) && !p.begun {
			return s, errors.New("the times of all steps are over: nothing was measured")
		}
		if err != nil || s.Begin.IsZero() {
			return s, err
		}
		if late := time.Since(s.Begin); late > time.Duration(s.Ramp+s.Warmup)+time.Second {
			if err := p.warn(fmt.Sprintf("step %d was to begin %v ago: it is left out", s.Number,
				unit.Duration(late.Round(time.Second)))); err != nil {
				return s, err
			}
			continue
		}
		p.begun = true
		if !pause.For(p.finish, time.Until(s.Begin)) && p.finish.Err() != nil {
			return s, io.EOF
		}
		return s, ctx.Err()
	}
}
