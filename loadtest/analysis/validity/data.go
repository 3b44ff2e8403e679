package validity

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// checkData asks whether the run directory is whole.
func (d *Evidence) checkData(curve *steps.Curve) Check {
	c := Check{Name: "data", Status: OK}
	if len(curve.Steps) == 0 {
		c.addDetail("no step was measured: %d seconds of other phases were recorded", len(d.Run.Seconds))
		if end := d.Run.Ending(); end != nil && end.Outcome == measure.BrokenOff {
			c.addDetail("the run %s", end.Text)
		}
		c.worsen(Fail, "there is no result")
	}
	if gap, where := gaps(d.Run); gap > 0 {
		c.addDetail("%.1f s are missing, beginning in step %d", gap, where)
		c.worsen(Warn, "the result does not include that time")
	}
	if !d.Run.GoesOn {
		d.noteMissing(curve, &c)
	}
	d.noteResumed(&c)
	d.noteDamage(curve, &c)
	if host, silent := d.silent(); silent > 0 {
		c.Note(fmt.Sprintf("host %s in the last %.0f s, for which it sent no sample", host, silent),
			"keep its monitoring running until the run ends")
	}
	if c.Status == OK {
		how := "the run ended as planned"
		switch end := d.Run.Ending(); {
		case d.Run.GoesOn:
			how = "the run continues"
		case end.Outcome != measure.Complete:
			how = "the run " + end.Text
		}
		c.addDetail("%d steps, %.0f s of measurement, nothing missing, %s", len(curve.Steps), d.Run.Hold, how)
	}
	return c
}

// noteMissing says what a run that is over should have and has not. Whether a step that was held for less than
// planned was held long enough is a check by itself.
func (d *Evidence) noteMissing(curve *steps.Curve, c *Check) {
	for _, torn := range d.Run.Torn {
		c.addDetail("%s", torn)
		c.worsen(Warn, "the result does not include the damaged lines")
	}
	if d.Run.Ending() == nil {
		c.addDetail("the run was aborted: it has no end event")
		c.worsen(Warn, "the curve ends where the run was aborted")
	}
	if n, planned := len(curve.Steps), len(d.Run.Plan.Steps); n > 0 && n < planned {
		why := ""
		if d.Run.Plan.On.JobPerClient {
			why = ": in the others the first clients left before the last ones started; measure longer than the batch system takes to start them all"
		}
		c.addDetail("only %d of %d planned steps were measured%s", n, planned, why)
		c.worsen(Warn, "the curve lacks the loads that were not measured")
	}
	for i := range curve.Steps {
		for _, p := range d.Run.Plan.Steps {
			if want := durationSeconds(p.Duration); p.Number == curve.Steps[i].Step && p.Jobs == 0 && !d.Run.Plan.On.JobPerClient &&
				curve.Steps[i].Duration < 0.9*want-0.1 {
				c.addDetail("step %d was measured for %.1f s of %.1f s", p.Number, curve.Steps[i].Duration, want)
			}
		}
	}
}

// silent returns the host whose last sample lies the longest before the end of the last interval, and how many seconds; 0 if none was
// lost.
func (d *Evidence) silent() (host string, seconds float64) {
	if len(d.Run.Seconds) == 0 {
		return "", 0
	}
	var end time.Time
	for i := range d.Run.Seconds {
		if e := d.Run.Seconds[i].End(); e.After(end) {
			end = e
		}
	}
	return d.Hosts.Silent(end.Sub(d.Run.Begin()).Seconds())
}

func durationSeconds(d unit.Duration) float64 { return float64(d) / 1e9 }

// noteResumed adds to the check that the run was resumed, which is no fault.
func (d *Evidence) noteResumed(c *Check) {
	var again []string
	times := int64(0)
	for _, e := range d.Run.Events {
		if e.Kind != measure.EventResume {
			continue
		}
		times++
		if d.Run.Repeated(e.Step) {
			again = append(again, fmt.Sprint(e.Step))
		}
	}
	if times == 0 {
		return
	}
	text := "the run was resumed " + say.Times(times)
	if len(again) > 0 {
		text += fmt.Sprintf("; the interrupted part of step %s does not count", strings.Join(again, ", "))
	}
	c.addDetail("%s", text)
}

// noteDamage adds to the check what no run writes.
func (d *Evidence) noteDamage(curve *steps.Curve, c *Check) {
	if d.Run.Twice > 0 {
		c.addDetail("%d intervals are recorded twice and count twice", d.Run.Twice)
		c.worsen(Warn, "their bytes and operations count twice")
	}
	empty, moved := 0, int64(0)
	for s := range basics.Each(d.Run.Seconds) {
		if s.Seconds <= 0 && s.Moved+s.Done > 0 {
			empty, moved = empty+1, moved+s.Moved
		}
	}
	if empty > 0 {
		c.addDetail("%d intervals have no duration but transferred %d bytes", empty, moved)
		c.worsen(Warn, "their bytes count without their time")
	}
	var unplanned []string
	for i := range curve.Steps {
		step := curve.Steps[i].Step
		if !slices.ContainsFunc(d.Run.Plan.Steps, func(p scenario.Step) bool { return p.Number == step }) && d.Run.Announced(step) == nil {
			unplanned = append(unplanned, strconv.Itoa(step))
		}
	}
	if len(unplanned) > 0 {
		c.addDetail("steps that are not in the plan were measured: %s", strings.Join(basics.Head(unplanned, 4), ", "))
		c.worsen(Warn, "their load is unknown; only their clients are known")
	}
}

// gap is how far the next interval may begin after the end of the one before before a part of the phase counts as
// missing.
const gap = 0.25

// gaps returns the seconds that no interval covers inside of phases.
func gaps(d *steps.Run) (seconds float64, step int) {
	for i := 1; i < len(d.Seconds); i++ {
		a, b := &d.Seconds[i-1], &d.Seconds[i]
		if a.Step != b.Step || a.Phase != b.Phase {
			continue
		}
		if hole := b.Start.Sub(a.End()).Seconds(); hole > gap {
			if seconds == 0 {
				step = b.Step
			}
			seconds += hole
		}
	}
	return seconds, step
}

// checkClock asks whether time only went forward, and as fast on the wall clock as in the durations.
func (d *Evidence) checkClock() Check {
	c := Check{Name: "clock", Status: OK}
	if len(d.Run.Seconds) < 2 {
		return c.Skip("fewer than two intervals")
	}
	overlaps, sum := 0, 0.0
	for i := range d.Run.Seconds {
		sum += d.Run.Seconds[i].Seconds
		if i > 0 && d.Run.Seconds[i-1].End().Sub(d.Run.Seconds[i].Start).Seconds() > 0.1 {
			overlaps++
		}
	}
	last := &d.Run.Seconds[len(d.Run.Seconds)-1]
	wall := last.End().Sub(d.Run.Seconds[0].Start).Seconds() - d.Run.Interrupted() - d.between()
	off := stats.Ratio(sum-wall, wall)
	if math.Abs(sum-wall) <= leastOff {
		off = 0
	}
	c.Detail = fmt.Sprintf("%d intervals, %d of them out of order, %d overlapping; durations sum to %.2f s in %.2f s of wall-clock time",
		len(d.Run.Seconds), d.Run.Back, overlaps, sum, wall)
	switch {
	case d.Run.Back > 0 || overlaps > 0 || off > 0.01:
		c.Detail += ": the clock was set back, or two processes wrote to the run"
		c.worsen(Warn, "rates may be wrong by %s", unit.Percent(math.Abs(off)))
		if off > 0.05 {
			c.worsen(Fail, "rates may be wrong by %s", unit.Percent(off))
		}
	case off < -0.05:
		c.Detail += ": the clock was set forward, or seconds are missing"
		c.worsen(Warn, "the clock jumped, or the result lacks %.1f s", wall-sum)
	}
	return c
}

// leastOff is how many seconds a clock must be off before it counts: it may be adjusted by less in any run.
const leastOff = 0.1

// between returns the seconds without clients between steps whose clients are jobs of a batch system, or that are cases
// of transfers, in which there are no measurements.
func (d *Evidence) between() (seconds float64) {
	for i := 1; i < len(d.Run.Seconds) && (d.Run.Plan.On.JobPerClient || d.Run.Record); i++ {
		if a, b := &d.Run.Seconds[i-1], &d.Run.Seconds[i]; a.Step != b.Step {
			seconds += max(b.Start.Sub(a.End()).Seconds(), 0)
		}
	}
	return seconds
}
