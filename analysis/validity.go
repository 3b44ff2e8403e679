package analysis

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/unit"
	"weir/storage"
)

// validity runs all checks. One that fails makes the result invalid, one that
// warns suspect.
func (d *data) validity(f *Findings, best, left int) Validity {
	v := Validity{Status: Valid, Checks: []Check{
		d.checkData(f), d.checkClock(), f.checkAvailability(left), checkErrors(f, best), d.checkErrorPauses(f), d.checkVerification(f), d.checkBytes(),
		d.checkGenerator(f, best), d.checkLittle(f), checkSteady(f), checkQuiet(f), d.checkCost(),
	}}
	for _, c := range []*Check{checkJobs(f, best), d.checkWorkers(f), d.checkLinks(f), d.checkBackends(f)} {
		if c != nil {
			v.Checks = append(v.Checks, *c)
		}
	}
	for _, c := range v.Checks {
		switch {
		case c.Status == Fail:
			v.Status = Invalid
		case c.Status == Warn && v.Status == Valid:
			v.Status = Suspect
		}
	}
	return v
}

// worse returns the more serious of two states.
func worse(a, b string) string {
	order := map[string]int{Skipped: 0, OK: 1, Warn: 2, Fail: 3}
	if order[b] > order[a] {
		return b
	}
	return a
}

// checkData asks whether the run directory is whole.
func (d *data) checkData(f *Findings) Check {
	c := Check{Name: "data", Status: OK}
	var notes []string
	note := func(status, format string, args ...any) {
		c.Status = worse(c.Status, status)
		notes = append(notes, fmt.Sprintf(format, args...))
	}
	if len(f.Curve) == 0 {
		note(Fail, "no step was held: %d seconds of other phases were recorded", len(d.seconds))
	}
	if gap, where := d.gaps(); gap > 0 {
		note(Warn, "%.1f s are missing, the first in step %d", gap, where)
	}
	if !d.goesOn {
		d.noteMissing(f, note)
	}
	d.noteResumed(note)
	d.noteDamage(f, note)
	if c.Status == OK {
		how := "run " + d.ending()
		if d.goesOn {
			how = "the run goes on"
		}
		notes = append(notes, fmt.Sprintf("%d steps, %.0f s of hold time, nothing missing, %s", len(f.Curve), d.hold, how))
	}
	c.Detail = strings.Join(notes, "; ")
	return c
}

// noteMissing says what a run that is over should have and has not.
func (d *data) noteMissing(f *Findings, note func(status, format string, args ...any)) {
	for _, torn := range d.torn {
		note(Warn, "%s", torn)
	}
	if !d.finished() {
		note(Warn, "the run was broken off: it has no end event")
	}
	if n, planned := len(f.Curve), len(d.plan.Steps); n > 0 && n < planned {
		why := ""
		if d.plan.On.JobPerClient {
			why = ": in the others the first clients left before the last came; hold longer than the batch system takes to start them all"
		}
		note(Warn, "only %d of %d planned steps were held%s", n, planned, why)
	}
	for i := range f.Curve {
		for _, p := range d.plan.Steps {
			if want := durationSeconds(p.Hold); p.Number == f.Curve[i].Step && p.Jobs == 0 && !d.plan.On.JobPerClient && f.Curve[i].Hold < 0.9*want-0.1 {
				note(Warn, "step %d was held %.1f s of %.1f s", p.Number, f.Curve[i].Hold, want)
			}
		}
	}
}

func durationSeconds(d unit.Duration) float64 { return float64(d) / 1e9 }

// finished tells whether the run wrote its end, and was not resumed after it.
func (d *data) finished() bool {
	ended := false
	for _, e := range d.events {
		ended = e.Kind == "end" || ended && e.Kind != "resume"
	}
	return ended
}

// ending says how a run that has an end came to it.
func (d *data) ending() string {
	for _, e := range slices.Backward(d.events) {
		if e.Kind == "end" && strings.HasPrefix(e.Text, "ended early") {
			return e.Text
		}
		if e.Kind == "end" {
			break
		}
	}
	return "ended by itself"
}

// gap is how far the next interval may begin after the end of the one before
// before a part of the phase counts as missing.
const gap = 0.25

// gaps returns the seconds that no interval covers inside of phases.
func (d *data) gaps() (seconds float64, step int) {
	for i := 1; i < len(d.seconds); i++ {
		a, b := &d.seconds[i-1], &d.seconds[i]
		if a.step != b.step || a.phase != b.phase {
			continue
		}
		if hole := b.start.Sub(a.end()).Seconds(); hole > gap {
			if seconds == 0 {
				step = b.step
			}
			seconds += hole
		}
	}
	return seconds, step
}

// checkClock asks whether time only went forward, and as fast on the wall
// clock as in the durations.
func (d *data) checkClock() Check {
	c := Check{Name: "clock", Status: OK}
	if len(d.seconds) < 2 {
		c.Status, c.Detail = Skipped, "fewer than two intervals"
		return c
	}
	overlaps, sum := 0, 0.0
	for i := range d.seconds {
		sum += d.seconds[i].seconds
		if i > 0 && d.seconds[i-1].end().Sub(d.seconds[i].start).Seconds() > 0.1 {
			overlaps++
		}
	}
	last := &d.seconds[len(d.seconds)-1]
	wall := last.end().Sub(d.seconds[0].start).Seconds() - d.interrupted() - d.between()
	off := ratio(sum-wall, wall)
	c.Detail = fmt.Sprintf("%d intervals, %d of them out of order, %d overlapping; durations sum to %.2f s in %.2f s of wall clock", len(d.seconds), d.back, overlaps, sum, wall)
	switch {
	case d.back > 0 || overlaps > 0 || off > 0.01:
		c.Status = Warn
		if off > 0.05 {
			c.Status = Fail
		}
		c.Detail += ": the clock was set back, or two writers shared the run"
	case off < -0.05:
		c.Status = Warn
		c.Detail += ": the clock was set forward, or seconds are missing"
	}
	return c
}

// between is for how long there were no clients between steps whose clients are
// jobs of a batch system, or that are cases of transfers: nobody measures then.
func (d *data) between() (seconds float64) {
	for i := 1; i < len(d.seconds) && (d.plan.On.JobPerClient || d.transfers != nil); i++ {
		if a, b := &d.seconds[i-1], &d.seconds[i]; a.step != b.step {
			seconds += max(b.start.Sub(a.end()).Seconds(), 0)
		}
	}
	return seconds
}

// mostErrors is the step of which the largest share failed.
func (f *Findings) mostErrors() *Step {
	most := &f.Curve[0]
	for i := range f.Curve {
		if f.Curve[i].ErrorRatio > most.ErrorRatio {
			most = &f.Curve[i]
		}
	}
	return most
}

// checkErrors judges the share of failed operations at the best step and over all.
func checkErrors(f *Findings, best int) Check {
	c := Check{Name: "errors", Status: OK}
	done, errors, by := counts(f)
	if done+errors == 0 {
		c.Status, c.Detail = Fail, "no operation ended in the hold time: hold longer, or use smaller files"
		for i := range f.Curve {
			if f.Curve[i].Moved > 0 {
				c.Status = Warn // large files: bytes moved, none was whole
			}
		}
		return c
	}
	share := ratio(float64(errors), float64(done+errors))
	c.Detail = fmt.Sprintf("%d of %d operations failed (%s)", errors, done+errors, unit.Percent(share))
	if text := classes(by); text != "" {
		c.Detail += ": " + text
	}
	if best >= 0 {
		at := f.Curve[best].ErrorRatio
		c.Detail += fmt.Sprintf("; %s at the best step", unit.Percent(at))
		if at > 0.01 {
			c.Status = Warn
		}
	}
	if share > 0.01 {
		c.Status = worse(c.Status, Warn)
	}
	if s := f.mostErrors(); s.ErrorRatio > 0.5 {
		c.Detail += fmt.Sprintf("; %s with %s", unit.Percent(s.ErrorRatio), f.at(s))
		c.Status = worse(c.Status, Warn)
	}
	if done == 0 || best >= 0 && f.Curve[best].ErrorRatio > 0.5 {
		c.Status = Fail
	}
	return c
}

func counts(f *Findings) (done, errors int64, by map[storage.Class]int64) {
	by = map[storage.Class]int64{}
	for i := range f.Curve {
		done += f.Curve[i].Done
		errors += f.Curve[i].Errors
		for class, n := range f.Curve[i].ErrorsBy {
			by[class] += n
		}
	}
	return done, errors, by
}

// classes lists counts by class in the order of the classes: "3 timeout, 1 reset".
func classes(by map[storage.Class]int64) string {
	var parts []string
	for class := range storage.Classes {
		if by[class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[class], class))
		}
	}
	return strings.Join(parts, ", ")
}

// checkVerification asks whether payloads were what they should be.
func (d *data) checkVerification(f *Findings) Check {
	c := Check{Name: "verification", Status: OK}
	_, _, by := counts(f)
	var checked, unproven, done int64
	for i := range f.Curve {
		checked += f.Curve[i].Verified
		unproven += f.Curve[i].Unverified
		done += f.Curve[i].Done
	}
	c.Detail = fmt.Sprintf("%d payloads of %d operations were checked and right", checked, done)
	if unproven > 0 {
		c.Detail += fmt.Sprintf(", %d more could not be: the service gave no checksum for them, or not in time", unproven)
	}
	switch wrong := by[storage.Checksummed]; {
	case wrong > 0:
		c.Status = Fail
		c.Detail = fmt.Sprintf("%d payloads were wrong, %d right", wrong, checked)
	case d.moved == 0:
		c.Status, c.Detail = Skipped, "no payload was moved"
	case checked == 0 && d.plan.Work.Verify <= 0:
		c.Status, c.Detail = Skipped, "not asked for (workload.verify is 0)"
	case checked == 0 && unproven > 0, d.plan.Work.Verify >= 1 && unproven > 0:
		c.Status = Warn // a sample may have gaps, all of them may not
	case checked == 0 && float64(d.plan.Work.Verify)*float64(done) > 10:
		c.Status = Warn
		c.Detail = fmt.Sprintf("none of %d payloads was checked although %s were to be", done, unit.Percent(float64(d.plan.Work.Verify)))
	case checked == 0:
		c.Status, c.Detail = Skipped, fmt.Sprintf("none of %d operations was chosen for it", done)
	}
	return c
}

func head(texts []string, n int) []string {
	if len(texts) > n {
		return append(texts[:n:n], fmt.Sprintf("and %d more", len(texts)-n))
	}
	return texts
}

// checkCost asks what looking at the hosts cost.
func (d *data) checkCost() Check {
	c := Check{Name: "monitoring", Status: OK}
	w := &d.watched
	if w.count == 0 {
		c.Status, c.Detail = Skipped, "no host was watched"
		return c
	}
	share := ratio(w.cost, w.span)
	c.Detail = fmt.Sprintf("%d samples took %s of one core", w.count, unit.Percent(share))
	if share > 0.05 {
		c.Status = Warn
	}
	if w.broken > 0 {
		c.Status = Warn
		c.Detail += fmt.Sprintf("; %d of them are not whole", w.broken)
	}
	return c
}
