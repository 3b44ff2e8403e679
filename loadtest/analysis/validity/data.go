package validity

import (
	"math"
	"slices"
	"strconv"
	"time"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// checkData checks whether the run directory is complete.
func (d *Evidence) checkData(curve *steps.Curve) Check {
	c := Check{Name: "data", Status: OK}
	if len(curve.Steps) == 0 {
		c.addFact("check.data.no_step", "intervals", len(d.Run.Seconds))
		if end := d.Run.Ending(); end != nil && end.Outcome == measure.BrokenOff {
			c.addFact("check.data.broken_off", "ending", end.Text)
		}
		c.worsen(Fail, fact.New("effect.no_result"))
	}
	if gap, where := gaps(d.Run); gap > 0 {
		c.addFact("check.data.gap", "seconds", gap, "step", where)
		c.worsen(Warn, fact.New("effect.time_missing"))
	}
	if !d.Run.GoesOn {
		d.noteMissing(curve, &c)
	}
	d.noteResumed(&c)
	d.noteDamage(curve, &c)
	if host, silent := d.silent(); silent > 0 {
		c.Note(fact.New("check.data.silent_host", "host", host, "seconds", silent), fact.New("remedy.watch_to_the_end"))
	}
	if c.Status == OK {
		n, held := len(curve.Steps), d.Run.Hold
		switch end := d.Run.Ending(); {
		case d.Run.GoesOn:
			c.addFact("check.data.continues", "steps", n, "seconds", held)
		case end.Outcome != measure.Complete:
			c.addFact("check.data.ended_early", "steps", n, "seconds", held, "ending", end.Text)
		default:
			c.addFact("check.data.whole", "steps", n, "seconds", held)
		}
	}
	return c
}

// noteMissing adds the data that a finished run should have but lacks. A separate check judges
// whether a step that was held for less than planned was held long enough.
func (d *Evidence) noteMissing(curve *steps.Curve, c *Check) {
	for _, torn := range d.Run.Torn {
		c.addFact("check.data.damaged", "damage", torn)
		c.worsen(Warn, fact.New("effect.lines_missing"))
	}
	if d.Run.Ending() == nil {
		c.addFact("check.data.aborted")
		c.worsen(Warn, fact.New("effect.curve_ends"))
	}
	if n, planned := len(curve.Steps), len(d.Run.Plan.Steps); n > 0 && n < planned {
		if d.Run.Plan.On.JobPerClient {
			c.addFact("check.data.never_together", "measured", n, "planned", planned)
		} else {
			c.addFact("check.data.steps_missing", "measured", n, "planned", planned)
		}
		c.worsen(Warn, fact.New("effect.loads_missing"))
	}
	for i := range curve.Steps {
		for _, p := range d.Run.Plan.Steps {
			if want := durationSeconds(p.Duration); p.Number == curve.Steps[i].Step && p.Jobs == 0 && !d.Run.Plan.On.JobPerClient &&
				curve.Steps[i].Duration < 0.9*want-0.1 {
				c.addFact("check.data.short_step", "step", p.Number, "seconds", curve.Steps[i].Duration, "planned", want)
			}
		}
	}
}

// silent returns the host whose last sample lies the longest before the end of the last interval,
// and that time in seconds; 0 if no host was lost.
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

// noteResumed adds to the check that the run was resumed, which is not a fault.
func (d *Evidence) noteResumed(c *Check) {
	var again []string
	times := int64(0)
	for _, e := range d.Run.Events {
		if e.Kind != measure.EventResume {
			continue
		}
		times++
		if d.Run.Repeated(e.Step) {
			again = append(again, strconv.Itoa(e.Step))
		}
	}
	if times == 0 {
		return
	}
	c.addFact("check.data.resumed", "times", times)
	if len(again) > 0 {
		c.addFact("check.data.repeated", "steps", fact.List(again))
	}
}

// noteDamage adds to the check data that no run writes.
func (d *Evidence) noteDamage(curve *steps.Curve, c *Check) {
	if d.Run.Twice > 0 {
		c.addFact("check.data.twice", "intervals", d.Run.Twice)
		c.worsen(Warn, fact.New("effect.count_twice"))
	}
	empty, moved := 0, int64(0)
	for s := range basics.Each(d.Run.Seconds) {
		if s.Seconds <= 0 && s.Moved+s.Done > 0 {
			empty, moved = empty+1, moved+s.Moved
		}
	}
	if empty > 0 {
		c.addFact("check.data.no_duration", "intervals", empty, "bytes", moved)
		c.worsen(Warn, fact.New("effect.time_not_counted"))
	}
	var unplanned []string
	for i := range curve.Steps {
		step := curve.Steps[i].Step
		if !slices.ContainsFunc(d.Run.Plan.Steps, func(p scenario.Step) bool { return p.Number == step }) && d.Run.Announced(step) == nil {
			unplanned = append(unplanned, strconv.Itoa(step))
		}
	}
	if len(unplanned) > 0 {
		c.addFact("check.data.unplanned", "steps", fact.List(unplanned))
		c.worsen(Warn, fact.New("effect.load_unknown"))
	}
}

// gap is the longest time between the end of an interval and the beginning of the next interval
// before a part of the phase counts as missing.
const gap = 0.25

// gaps returns the number of seconds within phases that no interval covers.
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

// checkClock checks whether time only went forward, and at the same speed on the wall clock as in
// the durations.
func (d *Evidence) checkClock() Check {
	c := Check{Name: "clock", Status: OK}
	if len(d.Run.Seconds) < 2 {
		return c.Skip(fact.New("check.clock.too_short"))
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
	c.addFact("check.clock.compared", "intervals", len(d.Run.Seconds), "back", d.Run.Back, "overlapping", overlaps, "sum", sum, "wall", wall)
	switch {
	case d.Run.Back > 0 || overlaps > 0 || off > 0.01:
		c.addFact("check.clock.set_back")
		c.worsen(Warn, fact.New("effect.rates_wrong", "share", math.Abs(off)))
		if off > 0.05 {
			c.worsen(Fail, fact.New("effect.rates_wrong", "share", off))
		}
	case off < -0.05:
		c.addFact("check.clock.set_forward")
		c.worsen(Warn, fact.New("effect.clock_jumped", "seconds", wall-sum))
	}
	return c
}

// leastOff is the least error of a clock, in seconds, that counts: a clock may be adjusted by less
// in any run.
const leastOff = 0.1

// between returns the seconds without clients between steps whose clients are jobs of a batch
// system, or between cases of transfers: these seconds have no measurements.
func (d *Evidence) between() (seconds float64) {
	for i := 1; i < len(d.Run.Seconds) && (d.Run.Plan.On.JobPerClient || d.Run.Record); i++ {
		if a, b := &d.Run.Seconds[i-1], &d.Run.Seconds[i]; a.Step != b.Step {
			seconds += max(b.Start.Sub(a.End()).Seconds(), 0)
		}
	}
	return seconds
}
