package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// validity runs all checks. One that fails makes the result invalid, one that warns suspect.
func (d *data) validity(f *Findings, best, left int) Validity {
	counting := f.Counting()
	checks := []Check{
		d.checkData(f), d.checkClock(), f.checkAvailability(left), d.checkEnough(f, best), checkErrors(f, best), d.checkErrorPauses(f),
		d.checkVerification(f), d.checkBytes(),
		d.checkGenerator(f, best), d.checkLittle(counting), checkSteady(counting), checkQuiet(f), d.checkCost(),
	}
	for _, c := range []*Check{checkJobs(f, best), d.checkWorkers(f), d.checkLinks(f), d.checkBackends(f)} {
		if c != nil {
			checks = append(checks, *c)
		}
	}
	return judged(Valid, checks)
}

// judged is the validity that follows from checks. status is that of a result of which no check warns.
func judged(status string, checks []Check) Validity {
	v := Validity{Status: status, Checks: checks, Notes: []Note{}}
	for c := range each(checks) {
		v.Notes = append(v.Notes, c.notes...)
		switch c.Status {
		case Fail:
			v.Status = Invalid
		case Warn:
			if v.Status != Invalid {
				v.Status = Suspect
			}
		default:
			continue
		}
		if c.Effect == "" {
			c.Effect = cmp.Or(effects()[c.Name], "the result may be wrong")
		}
	}
	return v
}

// effects tells what a warning or failure of a check means for the result, unless the check itself is more exact.
func effects() map[string]string {
	return map[string]string{
		"availability":    "steps during which the service was unavailable are excluded from the curve",
		"error pauses":    "that step shows the pauses of the clients (load.error_pause), not the service",
		"errors":          "the throughput is that of the successful operations only",
		"verification":    "bytes that are not the content of the files count as payload",
		"both ends agree": "the throughput may be wrong by the same amount",
		"generator":       "the curve may show the load generator instead of the service",
		"Little's law":    "the actual load was not the one on the axis of the curve",
		"steadiness":      "the mean of these steps depends on when they were measured",
		"monitoring":      "monitoring took CPU time from the test",
		"jobs":            "jobs that were not completed transferred only part of their data",
		"workers":         "the load was not as planned",
		"links":           "the links were not as specified",
		"backends agree":  "the throughput or the shares of the backends may be wrong by the same amount",
	}
}

// checkData asks whether the run directory is whole.
func (d *data) checkData(f *Findings) Check {
	c := Check{Name: "data", Status: OK}
	if len(f.Curve) == 0 {
		c.addDetail("no step was measured: %d seconds of other phases were recorded", len(d.seconds))
		if end := d.ending(); end != nil && end.Outcome == measure.BrokenOff {
			c.addDetail("the run %s", end.Text)
		}
		c.worsen(Fail, "there is no result")
	}
	if gap, where := d.gaps(); gap > 0 {
		c.addDetail("%.1f s are missing, beginning in step %d", gap, where)
		c.worsen(Warn, "the result does not include that time")
	}
	if !d.goesOn {
		d.noteMissing(f, &c)
	}
	d.noteResumed(&c)
	d.noteDamage(f, &c)
	if host, silent := d.silent(); silent > 0 {
		c.note(fmt.Sprintf("host %s in the last %.0f s, for which it sent no sample", host, silent),
			"keep its monitoring running until the run ends")
	}
	if c.Status == OK {
		how := "the run ended as planned"
		switch end := d.ending(); {
		case d.goesOn:
			how = "the run continues"
		case end.Outcome != measure.Complete:
			how = "the run " + end.Text
		}
		c.addDetail("%d steps, %.0f s of measurement, nothing missing, %s", len(f.Curve), d.hold, how)
	}
	return c
}

// noteMissing says what a run that is over should have and has not. Whether a step that was held for less than
// planned was held long enough is a check by itself.
func (d *data) noteMissing(f *Findings, c *Check) {
	for _, torn := range d.torn {
		c.addDetail("%s", torn)
		c.worsen(Warn, "the result does not include the damaged lines")
	}
	if d.ending() == nil {
		c.addDetail("the run was aborted: it has no end event")
		c.worsen(Warn, "the curve ends where the run was aborted")
	}
	if n, planned := len(f.Curve), len(d.plan.Steps); n > 0 && n < planned {
		why := ""
		if d.plan.On.JobPerClient {
			why = ": in the others the first clients left before the last ones started; measure longer than the batch system takes to start them all"
		}
		c.addDetail("only %d of %d planned steps were measured%s", n, planned, why)
		c.worsen(Warn, "the curve lacks the loads that were not measured")
	}
	for i := range f.Curve {
		for _, p := range d.plan.Steps {
			if want := durationSeconds(p.Duration); p.Number == f.Curve[i].Step && p.Jobs == 0 && !d.plan.On.JobPerClient &&
				f.Curve[i].Duration < 0.9*want-0.1 {
				c.addDetail("step %d was measured for %.1f s of %.1f s", p.Number, f.Curve[i].Duration, want)
			}
		}
	}
}

func durationSeconds(d unit.Duration) float64 { return float64(d) / 1e9 }

// ending is how the run ended, nil if it goes on or was killed.
func (d *data) ending() *measure.Ending {
	var end measure.EndTracker
	for _, e := range d.events {
		end.Saw(e)
	}
	return end.Ending()
}

// gap is how far the next interval may begin after the end of the one before before a part of the phase counts as
// missing.
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

// checkClock asks whether time only went forward, and as fast on the wall clock as in the durations.
func (d *data) checkClock() Check {
	c := Check{Name: "clock", Status: OK}
	if len(d.seconds) < 2 {
		return c.skip("fewer than two intervals")
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
	if math.Abs(sum-wall) <= leastOff {
		off = 0
	}
	c.Detail = fmt.Sprintf("%d intervals, %d of them out of order, %d overlapping; durations sum to %.2f s in %.2f s of wall-clock time",
		len(d.seconds), d.back, overlaps, sum, wall)
	switch {
	case d.back > 0 || overlaps > 0 || off > 0.01:
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

// between is for how long there were no clients between steps whose clients are jobs of a batch system, or that are
// cases of transfers: nothing is measured then.
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

// mostFailed is the share of failed operations at the best step from which on that step is no measure of the service.
const mostFailed = 0.25

// checkErrors judges the share of failed operations at the best step and over all.
func checkErrors(f *Findings, best int) Check {
	c := Check{Name: "errors", Status: OK}
	right, bad, by := counts(f)
	ended := right + bad
	if ended == 0 {
		c.Status, c.Detail = Fail, "no operation was completed during the measurement: measure longer, or use smaller files"
		for i := range f.Curve {
			if f.Curve[i].Moved > 0 {
				c.Status = Warn // large files: bytes moved, none was whole
			}
		}
		return c
	}
	share := ratio(float64(bad), float64(ended))
	c.Detail = fmt.Sprintf("%d of %d operations failed (%s)", bad, ended, unit.Percent(share))
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
		c.Detail += fmt.Sprintf("; %s at %s", unit.Percent(s.ErrorRatio), f.at(s))
		c.Status = worse(c.Status, Warn)
	}
	if s, n := f.failedLate(); s != nil {
		stuck := min(1, ratio(float64(n), s.ActiveClients))
		c.Detail += fmt.Sprintf("; %d operations at %s failed only in the graceful stop: up to %s of the clients may have waited for them "+
			"during the measurement", n, f.at(s), unit.Percent(stuck))
		c.Status = worse(c.Status, Warn)
	}
	if right == 0 || best >= 0 && f.Curve[best].ErrorRatio > mostFailed && f.Transfers == nil {
		c.Status = Fail
	}
	return c
}

// failedLate returns the step with the most operations that failed in its graceful stop, and how many: all had begun before. nil if they
// are nowhere more than the errors of the measurement explain.
func (f *Findings) failedLate() (step *Step, n int64) {
	for _, p := range f.Phases {
		i := f.indexOf(p.Step)
		if p.Phase != measure.GracefulStop || p.Errors <= max(n, 2) || i < 0 {
			continue
		}
		if s := &f.Curve[i]; float64(p.Errors) > (0.01+2*s.ErrorRatio)*s.ActiveClients {
			step, n = s, p.Errors
		}
	}
	return step, n
}

// counts returns how many operations of all steps were right, and how many failed or had a wrong payload, those also by class.
func counts(f *Findings) (right, bad int64, by map[storage.Class]int64) {
	by = map[storage.Class]int64{}
	for s := range each(f.Curve) {
		right += max(0, s.Done-s.Wrong)
		bad += s.Bad()
		for class, n := range s.BadBy() {
			by[class] += n
		}
	}
	return right, bad, by
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

// mostLeftOut is how many devices with left out seconds are named.
const mostLeftOut = 4

// checkCost asks what looking at the hosts cost.
func (d *data) checkCost() Check {
	c := Check{Name: "monitoring", Status: OK}
	w := &d.watched
	if w.count == 0 {
		return c.unchecked("no host was monitored", "")
	}
	share := ratio(w.cost, w.span)
	c.Detail = fmt.Sprintf("%d samples used %s of one core", w.count, unit.Percent(share))
	if share > 0.05 {
		c.Status = Warn
	}
	if w.broken > 0 {
		c.note(fmt.Sprintf("the missing parts of %d of %d incomplete samples", w.broken, w.count),
			"allow weir to read the counters of these hosts; the field error of the samples names what failed")
	}
	for _, what := range head(slices.SortedFunc(maps.Keys(w.leftOut), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.leftOut[b], w.leftOut[a]), cmp.Compare(a, b))
	}), mostLeftOut) {
		c.note(fmt.Sprintf("%s: %s, in which a counter fell, rose by more than it can, or was not a number", what,
			say.Plural(w.leftOut[what], "second")), "use another exporter or driver, and keep host and service running during the test")
	}
	return c
}

// checkVerification asks whether payloads were what they should be. One that was wrong is evidence; those that could
// not be judged are not.
func (d *data) checkVerification(f *Findings) Check {
	c := Check{Name: "verification", Status: OK}
	_, _, by := counts(f)
	var checked, encoded int64
	for s := range each(f.Curve) {
		checked, encoded = checked+s.Verified, encoded+s.Encoded
	}
	payloads, share := d.payloads(), float64(d.plan.Work.Verify)
	c.Detail = fmt.Sprintf("%d of %d payloads were checked and correct", checked, payloads)
	d.noteUnverified(&c)
	switch wrong := by[storage.Checksummed]; {
	case wrong > 0:
		c.Detail = fmt.Sprintf("%d payloads were wrong, %d correct", wrong, checked)
		c.worsen(Fail, "bytes that are not the content of the files count as payload")
	case d.moved == 0:
		c.Status, c.Detail = Skipped, "no payload was transferred"
	case checked > 0:
	case len(c.notes) > 0:
		c.Status, c.Detail = Skipped, c.notes[0].Unchecked
	case share <= 0:
		c.unchecked("payloads: workload.verify is 0", "set workload.verify")
	default:
		c.unchecked(fmt.Sprintf("payloads: none of %d was checked, although %s should have been", payloads, unit.Percent(share)),
			"measure longer, or raise workload.verify")
	}
	if encoded > 0 {
		c.addDetail("%d reads of files of unknown size were answered in a content encoding that was not requested", encoded)
		c.worsen(Warn, "the throughput may be that of compressed content, not of the files")
	}
	return c
}

// payloads returns how many operations of the measurement times moved payloads or reported their checksums.
func (d *data) payloads() (n int64) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write, storage.Checksum} {
		if t := d.kinds[kind.String()]; t != nil {
			n += t.Done
		}
	}
	return n
}

// noteUnverified reports on payloads that were to be checked and could not be.
func (d *data) noteUnverified(c *Check) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write} {
		t := d.kinds[kind.String()]
		if t == nil || t.Unverifiable == 0 {
			continue
		}
		why, remedy := "the service returned no checksum for them, or not in time", "let the run create its files (files.make), "+
			"or enable checksums in the service"
		switch {
		case kind == storage.Write:
			why = "the service returned checksums more slowly than files were written, not before the run ended, or not at all"
			remedy = "lower workload.verify, or let the clients read what they write"
		case d.inParts():
			why, remedy = "only parts of files were read, and a service returns the checksum of a whole file",
				"let the run create its files (files.make): then the content of each part is known"
		case d.plan.Files.Make != nil:
			remedy = "lower workload.verify"
		}
		c.note(fmt.Sprintf("%d of %d payloads (%s): %s", t.Unverifiable, t.Done, kind, why), remedy)
	}
}

// inParts reports whether clients read parts of files.
func (d *data) inParts() bool { return d.plan.Work.Part != nil || d.plan.Work.Job != nil }

// A place is what at most one interval of a second is of.
type place struct {
	kind       storage.Kind
	server     string
	population string
}

// A trace is what the last interval of a place counted, and in which second.
type trace struct {
	second             int
	moved, begun, done int64
}

// repeats reports whether iv stands in the file a second time, as after a copy that went wrong: the same second, place
// and counts, none of them zero.
func (d *data) repeats(second int, iv *measure.Interval) bool {
	p, t := place{iv.Kind, iv.Server, iv.Population}, trace{second, iv.Moved, iv.Begun, iv.Done}
	if d.traces == nil {
		d.traces = map[place]trace{}
	}
	again := d.traces[p] == t && iv.Moved+iv.Begun+iv.Done > 0
	d.traces[p] = t
	return again
}

// noteDamage adds to the check what no run writes.
func (d *data) noteDamage(f *Findings, c *Check) {
	if d.twice > 0 {
		c.addDetail("%d intervals are recorded twice and count twice", d.twice)
		c.worsen(Warn, "their bytes and operations count twice")
	}
	empty, moved := 0, int64(0)
	for s := range each(d.seconds) {
		if s.seconds <= 0 && s.moved+s.done > 0 {
			empty, moved = empty+1, moved+s.moved
		}
	}
	if empty > 0 {
		c.addDetail("%d intervals have no duration but transferred %d bytes", empty, moved)
		c.worsen(Warn, "their bytes count without their time")
	}
	var unplanned []string
	for i := range f.Curve {
		step := f.Curve[i].Step
		if !slices.ContainsFunc(d.plan.Steps, func(p scenario.Step) bool { return p.Number == step }) && d.announced(step) == nil {
			unplanned = append(unplanned, strconv.Itoa(step))
		}
	}
	if len(unplanned) > 0 {
		c.addDetail("steps that are not in the plan were measured: %s", strings.Join(head(unplanned, 4), ", "))
		c.worsen(Warn, "their load is unknown; only their clients are known")
	}
}

// Bounds from which a host that was watched counts as lost: so many seconds, and such a part of the run.
const (
	leastSilent = 10.0
	partSilent  = 0.05
)

// silent returns the host whose last sample lies the longest before the end of the last interval, and how many
// seconds; 0 if none was lost.
func (d *data) silent() (host string, seconds float64) {
	if len(d.seconds) == 0 {
		return "", 0
	}
	var end time.Time
	for i := range d.seconds {
		if e := d.seconds[i].end(); e.After(end) {
			end = e
		}
	}
	last := end.Sub(d.begin()).Seconds()
	for _, h := range d.watched.hostSeries() { // by name, so that the same one is named each time
		if len(h.Points) > 0 {
			if gone := last - h.last; gone > max(seconds, leastSilent, partSilent*last) {
				host, seconds = h.Host, gone
			}
		}
	}
	return host, seconds
}
