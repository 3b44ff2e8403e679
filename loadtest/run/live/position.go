package live

import (
	"context"
	"fmt"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
)

// A position is the progress of a run in its plan.
type position struct {
	plan   *scenario.Plan
	total  time.Duration // planned
	series run.Series
	finish context.Context // ends when the load is to end early

	begun     time.Time // of the load
	step      scenario.Step
	place     int       // in the plan, from 1
	since     time.Time // when the step began
	phase     string
	ending    time.Time // since when the last operations end; zero: steps go on
	moved     int64
	done      int64
	jobs      int64   // that ended
	jobsBegun int64   // of these, before the step
	most      float64 // share that was shown: a bar does not go back
	pad       int     // columns of the longest text beside the bar
}

// begin records that a step begins.
func (c *position) begin(e *measure.Event) {
	c.since, c.phase, c.jobsBegun = time.Now(), measure.Ramp, c.jobs
	if f := c.plan.Find; f != nil {
		c.place++
		hold := unit.Duration(e.Duration * float64(time.Second))
		c.step = scenario.Step{Number: e.Step, Clients: e.Clients, Ramp: f.Ramp, Warmup: f.Warmup, Duration: hold, Cooldown: f.Cooldown}
		return
	}
	for i := range c.plan.Steps {
		if s := &c.plan.Steps[i]; s.Number == e.Step {
			c.step, c.place = *s, i+1
		}
	}
}

// interval records the phase and the counts for stop rules.
func (c *position) interval(v *measure.Interval) {
	if v.Step == c.step.Number {
		c.phase = v.Phase
	}
	c.moved += v.Moved
	c.done += v.Done
	c.jobs += v.Ended + v.Lost()
}

// left returns the remaining time of the load, and the share of it that is done.
func (c *position) left(now time.Time) (left time.Duration, share float64) {
	elapsed := now.Sub(c.begun)
	left = c.plan.Left(c.place, now.Sub(c.since), elapsed)
	for _, stop := range [][2]int64{{c.done, c.plan.Stop.Count}, {c.moved, int64(c.plan.Stop.Bytes)}} {
		if done, all := float64(stop[0]), float64(stop[1]); all > 0 && done > 0 {
			left = min(left, time.Duration(float64(elapsed)*max((all-done)/done, 0)))
		}
	}
	left += c.series.Ahead
	elapsed += c.series.Spent
	if all := elapsed + left; all > 0 {
		c.most = max(c.most, float64(elapsed)/float64(all))
	}
	if all := c.plan.Jobs(); all > 0 && c.series.All == 0 { // the duration of jobs is not planned
		c.most = max(c.most, float64(c.jobs)/float64(all))
	}
	if left == 0 {
		c.most = 1
	}
	return left, c.most
}

// open reports whether the time left is only a bound: a search, and a step of jobs, end earlier.
func (c *position) open() bool { return c.plan.Find != nil || c.step.Jobs > 0 }

// progress returns the last row that moves.
func (c *position) progress(now time.Time) screen.Progress {
	p := screen.Progress{Where: c.run(), Now: now, Most: c.open()}
	p.Left, p.Share = c.left(now)
	switch {
	case c.ends(now):
		p.Where += "the last operations end"
		if c.series.All == 0 {
			p.Share, p.Left, p.Most = 1, max(time.Duration(c.plan.GracefulStop)-now.Sub(c.ending), 0), true
		}
	case c.since.IsZero() && c.plan.On.Batch != "":
		p.Where += "waiting for workers"
	case c.since.IsZero() && c.plan.Find == nil:
		p.Where += "the load begins"
	case c.since.IsZero():
		p.Where += "monitoring the service before the first step"
	default:
		p.Where += fmt.Sprintf("step %d", c.place)
		if c.plan.Find == nil {
			p.Where += fmt.Sprintf(" of %d", len(c.plan.Steps))
		}
		if p.Where += ": "; c.phase == measure.GracefulStop {
			p.Where += "cool-down"
		} else {
			p.Where += c.phase
		}
		p.Detail = c.within(now)
	}
	c.pad = max(c.pad, len(p.Where)+len(p.Detail))
	p.Pad = c.pad
	return p
}

// ends reports whether only the last operations go on: the steps are over, or an
// interrupt has ended them.
func (c *position) ends(now time.Time) bool {
	last := c.plan.Find == nil && c.place == len(c.plan.Steps) && (now.Sub(c.since) > c.step.Time() || c.phase == measure.GracefulStop) ||
		c.plan.Find != nil && c.phase == measure.GracefulStop && now.Sub(c.begun) > c.total
	if c.ending.IsZero() && !c.since.IsZero() && (last || c.finish.Err() != nil) {
		c.ending = now
	}
	return !c.ending.IsZero()
}

// run returns the number of the run in its campaign, as a prefix.
func (c *position) run() string {
	if c.series.All == 0 {
		return ""
	}
	return fmt.Sprintf("run %d of %d, ", c.series.Number, c.series.All)
}

// within returns the progress of the phase: " 12 of 30 s", or " 3 of 20 jobs".
func (c *position) within(now time.Time) string {
	s := &c.step
	if all := int64(s.Clients) * int64(s.Jobs); all > 0 && c.phase == measure.Measured {
		return fmt.Sprintf(" %d of %s", c.jobs-c.jobsBegun, say.Plural(int(all), "job"))
	}
	elapsed := now.Sub(c.since)
	var all time.Duration
	switch c.phase {
	case measure.Ramp:
		all = time.Duration(s.Ramp)
	case measure.Warmup:
		elapsed, all = elapsed-time.Duration(s.Ramp), time.Duration(s.Warmup)
	case measure.Measured:
		elapsed, all = elapsed-time.Duration(s.Ramp+s.Warmup), time.Duration(s.Duration)
	}
	if all < 2*time.Second {
		return ""
	}
	elapsed = max(min(elapsed, all), 0)
	if all < time.Minute {
		return fmt.Sprintf(" %.0f of %.0f s", elapsed.Seconds(), all.Seconds())
	}
	return fmt.Sprintf(" %s of %s", screen.Clock(elapsed), screen.Clock(all))
}
