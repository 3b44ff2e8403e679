package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/engine"
	"weir/internal/pause"
	"weir/internal/unit"
	"weir/scenario"
)

// timedSteps begins each step at the time that the plan gives. It omits a step
// that others hold already when it would begin, and joins them at the next one.
type timedSteps struct {
	engine.StepSource
	finish context.Context
	warn   func(string) error
	any    bool // a step was not omitted
}

// Next implements engine.StepSource.
func (p *timedSteps) Next(ctx context.Context) (scenario.Step, error) {
	for {
		s, err := p.StepSource.Next(ctx)
		if errors.Is(err, io.EOF) && !p.any {
			return s, errors.New("all steps were to be over by now: nothing was measured")
		}
		if err != nil || s.Begin.IsZero() {
			return s, err
		}
		if late := time.Since(s.Begin); late > time.Duration(s.Ramp+s.Settle)+time.Second {
			if err := p.warn(fmt.Sprintf("step %d was to begin %v ago: it is left out", s.Number, unit.Duration(late.Round(time.Second)))); err != nil {
				return s, err
			}
			continue
		}
		p.any = true
		if !pause.For(p.finish, time.Until(s.Begin)) && p.finish.Err() != nil {
			return s, io.EOF
		}
		return s, ctx.Err()
	}
}
