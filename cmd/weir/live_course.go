package main

import (
	"context"
	"fmt"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/measure"
	"weir/run"
	"weir/scenario"
)

// A course is how far a run is on its way, by its plan and by what it told.
type course struct {
	plan   *scenario.Plan
	total  time.Duration // planned
	of     run.Series
	finish context.Context // ends when the load is to end early

	begun time.Time // of the load
	step  scenario.Step
	place int       // in the plan, from 1
	since time.Time // when the step began
	phase string
	over  time.Time // since when the last operations end; zero: steps go on
	moved int64
	done  int64
	jobs  int64   // that ended
	gone  int64   // of these, before the step
	most  float64 // share that was shown: a bar does not go back
	pad   int     // columns of the longest words beside the bar
}

// begin notes that a step begins.
func (c *course) begin(e *measure.Event) {
	c.since, c.phase, c.gone = time.Now(), measure.Ramp, c.jobs
	if f := c.plan.Find; f != nil {
		c.place++
		c.step = scenario.Step{
			Number: e.Step, Clients: e.Clients, Ramp: f.Ramp, Settle: f.Settle, Hold: unit.Duration(e.Hold * float64(time.Second)), Cool: f.Cool,
		}
		return
	}
	for i := range c.plan.Steps {
		if s := &c.plan.Steps[i]; s.Number == e.Step {
			c.step, c.place = *s, i+1
		}
	}
}

// interval notes the phase and what stop rules count.
func (c *course) interval(v *measure.Interval) {
	if v.Step == c.step.Number {
		c.phase = v.Phase
	}
	c.moved += v.Moved
	c.done += v.Done
	c.jobs += v.Ended + v.Lost()
}

// left is how long the load will go on, and how much of it is behind.
func (c *course) left(now time.Time) (left time.Duration, share float64) {
	gone := now.Sub(c.begun)
	left = c.plan.Left(c.place, now.Sub(c.since), gone)
	for _, stop := range []struct{ done, all int64 }{{c.done, c.plan.Stop.Count}, {c.moved, int64(c.plan.Stop.Bytes)}} {
		if stop.all > 0 && stop.done > 0 {
			left = min(left, time.Duration(float64(gone)*max(float64(stop.all-stop.done)/float64(stop.done), 0)))
		}
	}
	left += c.of.Ahead
	gone += c.of.Spent
	if all := gone + left; all > 0 {
		c.most = max(c.most, float64(gone)/float64(all))
	}
	if all := c.plan.Jobs(); all > 0 && c.of.All == 0 { // how long they take nobody knows
		c.most = max(c.most, float64(c.jobs)/float64(all))
	}
	if left == 0 {
		c.most = 1
	}
	return left, c.most
}

// progress is what the row below the table says.
func (c *course) progress(now time.Time) screen.Progress {
	p := screen.Progress{Where: c.where(), Now: now, Most: c.plan.Find != nil || c.step.Jobs > 0}
	p.Left, p.Share = c.left(now)
	switch {
	case c.ends(now):
		p.Where += "the last operations end"
		if c.of.All == 0 {
			p.Share, p.Left, p.Most = 1, max(time.Duration(c.plan.Drain)-now.Sub(c.over), 0), true
		}
	case c.since.IsZero() && c.plan.On.Batch != "":
		p.Where += "waiting for workers"
	case c.since.IsZero():
		p.Where += "watching the service before the first step"
		if c.plan.Find == nil {
			p.Where = c.where() + "the load begins"
		}
	case c.plan.Find != nil:
		p.Where += fmt.Sprintf("step %d: %s", c.place, c.phaseText())
		p.Detail = c.within(now)
	default:
		p.Where += fmt.Sprintf("step %d of %d: %s", c.place, len(c.plan.Steps), c.phaseText())
		p.Detail = c.within(now)
	}
	c.pad = max(c.pad, len(p.Where)+len(p.Detail))
	p.Pad = c.pad
	return p
}

// ends tells whether all that goes on is the last operations: the steps are
// over, or an interrupt has ended them.
func (c *course) ends(now time.Time) bool {
	last := c.plan.Find == nil && c.place == len(c.plan.Steps) && (now.Sub(c.since) > c.step.Time() || c.phase == measure.Drain) ||
		c.plan.Find != nil && c.phase == measure.Drain && now.Sub(c.begun) > c.total
	if c.over.IsZero() && !c.since.IsZero() && (last || c.finish.Err() != nil) {
		c.over = now
	}
	return !c.over.IsZero()
}

// where says which run of a campaign this is.
func (c *course) where() string {
	if c.of.All == 0 {
		return ""
	}
	return fmt.Sprintf("run %d of %d, ", c.of.Number, c.of.All)
}

// phaseText is the phase in the words of people.
func (c *course) phaseText() string {
	if c.phase == measure.Drain {
		return "rest"
	}
	return c.phase
}

// within says how far the phase is: " 12 of 30 s", or " 3 of 20 jobs".
func (c *course) within(now time.Time) string {
	s := &c.step
	if all := int64(s.Clients) * int64(s.Jobs); all > 0 && c.phase == measure.Hold {
		return fmt.Sprintf(" %d of %s", c.jobs-c.gone, say.Plural(int(all), "job"))
	}
	gone := now.Sub(c.since)
	var all time.Duration
	switch c.phase {
	case measure.Ramp:
		all = time.Duration(s.Ramp)
	case measure.Settle:
		gone, all = gone-time.Duration(s.Ramp), time.Duration(s.Settle)
	case measure.Hold:
		gone, all = gone-time.Duration(s.Ramp+s.Settle), time.Duration(s.Hold)
	default:
		return ""
	}
	if all < 2*time.Second {
		return ""
	}
	gone = max(min(gone, all), 0)
	if all < time.Minute {
		return fmt.Sprintf(" %.0f of %.0f s", gone.Seconds(), all.Seconds())
	}
	return fmt.Sprintf(" %s of %s", screen.Clock(gone), screen.Clock(all))
}
