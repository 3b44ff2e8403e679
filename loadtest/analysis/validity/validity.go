// Package validity judges whether the numbers of a run can be relied on. Each check looks for one kind of evidence against them; outages
// exclude steps from the curve.
package validity

import (
	"cmp"
	"maps"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/measure"
	"weir/storage"
)

// Evidence holds the values by which the checks judge a run.
type Evidence struct {
	Run       *steps.Run
	Hosts     *hosts.Watched
	Backends  *limits.Backends
	Bytes     *ByteSums
	Transfers *transfers.Sums // nil: the run is not a record of transfers
	Curve     *steps.Curve
	Outages   []Outage
	Phases    []steps.Phase
	Workers   []WorkerFigure
	Balance   *limits.Balance // nil: fewer than two servers shared the load
	Best      int             // index in the curve of the step that is the result; -1: no step
	Left      int             // steps that count
	Unclear   bool            // no peak can be named
}

// Validity runs all checks. A failed check makes the result invalid, a warning makes it suspect.
func (d *Evidence) Validity() Validity {
	curve, best, counting := d.Curve, d.Best, d.Curve.Counting()
	checks := []Check{
		d.checkData(curve), d.checkClock(), d.checkAvailability(curve), d.checkEnough(curve, best), d.checkErrors(curve, best),
		d.checkErrorPauses(curve),
		d.checkVerification(curve), d.checkBytes(),
		d.checkGenerator(curve, best), d.checkLittle(counting), checkSteady(counting), checkQuiet(curve), d.checkCost(),
	}
	for _, c := range []*Check{checkJobs(curve, best), d.checkWorkers(curve), d.checkLinks(curve), d.checkBackends()} {
		if c != nil {
			checks = append(checks, *c)
		}
	}
	return Judged(Valid, checks)
}

// checkBackends compares the sources that report on the backends. It returns nil if fewer than two
// of them report bytes.
func (d *Evidence) checkBackends() *Check {
	if d.Balance == nil {
		return nil
	}
	found, agree := d.Backends.Compare(d.Balance)
	if len(found) == 0 {
		return nil
	}
	c := &Check{Name: "backends agree", Status: OK}
	c.Add(found...)
	if !agree {
		c.Status = Warn
	}
	return c
}

// mostErrors returns the step with the largest share of failed operations.
func mostErrors(curve *steps.Curve) *steps.Working {
	most := curve.Steps[0]
	for i := range curve.Steps {
		if curve.Steps[i].ErrorRatio > most.ErrorRatio {
			most = curve.Steps[i]
		}
	}
	return most
}

// mostFailed is the share of failed operations at the best step from which that step does not
// measure the service.
const mostFailed = 0.25

// checkErrors judges the share of failed operations at the best step and over all steps.
func (d *Evidence) checkErrors(curve *steps.Curve, best int) Check {
	c := Check{Name: "errors", Status: OK}
	right, bad, by := curve.Counts()
	ended := right + bad
	if ended == 0 {
		c.Status = Fail
		c.addFact("check.errors.nothing")
		for i := range curve.Steps {
			if curve.Steps[i].Moved > 0 {
				c.Status = Warn // large files: bytes moved, but no whole file
			}
		}
		return c
	}
	share := stats.Ratio(float64(bad), float64(ended))
	c.addFact("check.errors.failed", "failed", bad, "ended", ended, "share", share)
	if text := steps.Classes(by); text != "" {
		c.addFact("check.errors.classes", "classes", text)
	}
	if best >= 0 {
		at := curve.Steps[best].ErrorRatio
		c.addFact("check.errors.best", "share", at)
		if at > 0.01 {
			c.Status = Warn
		}
	}
	if share > 0.01 {
		c.Status = worse(c.Status, Warn)
	}
	if s := mostErrors(curve); s.ErrorRatio > 0.5 {
		c.addFact("check.errors.most", "share", s.ErrorRatio, "load", curve.At(s))
		c.Status = worse(c.Status, Warn)
	}
	if s, n := d.failedLate(curve); s != nil {
		stuck := min(1, stats.Ratio(float64(n), s.ActiveClients))
		c.addFact("check.errors.late", "operations", n, "load", curve.At(s), "share", stuck)
		c.Status = worse(c.Status, Warn)
	}
	if right == 0 || best >= 0 && curve.Steps[best].ErrorRatio > mostFailed && !d.Run.Record {
		c.Status = Fail
	}
	return c
}

// failedLate returns the step with the most operations that failed in its graceful stop, and their
// number: all of them had begun before. It returns nil if the errors of the measurement explain
// these failures in all steps.
func (d *Evidence) failedLate(curve *steps.Curve) (step *steps.Working, n int64) {
	for _, p := range d.Phases {
		i := curve.IndexOf(p.Step)
		if p.Phase != measure.GracefulStop || p.Errors <= max(n, 2) || i < 0 {
			continue
		}
		if s := curve.Steps[i]; float64(p.Errors) > (0.01+2*s.ErrorRatio)*s.ActiveClients {
			step, n = s, p.Errors
		}
	}
	return step, n
}

// mostLeftOut is the maximum number of named devices with left out seconds.
const mostLeftOut = 4

// checkCost judges the CPU time that sampling the hosts took.
func (d *Evidence) checkCost() Check {
	c := Check{Name: "monitoring", Status: OK}
	w := d.Hosts
	if w.Count == 0 {
		return c.unchecked(fact.New("check.monitoring.none"))
	}
	share := stats.Ratio(w.Cost, w.Span)
	c.addFact("check.monitoring.cost", "samples", w.Count, "share", share)
	if share > 0.05 {
		c.Status = Warn
	}
	if w.Broken > 0 {
		c.Note(fact.New("check.monitoring.incomplete", "incomplete", w.Broken, "samples", w.Count), fact.New("remedy.allow_counters"))
	}
	sources := slices.SortedFunc(maps.Keys(w.LeftOut), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.LeftOut[b], w.LeftOut[a]), cmp.Compare(a, b))
	})
	for _, source := range sources[:min(len(sources), mostLeftOut)] {
		c.Note(fact.New("check.monitoring.left_out", "source", source, "seconds", w.LeftOut[source]), fact.New("remedy.steady_counters"))
	}
	if n := len(sources) - mostLeftOut; n > 0 {
		c.Note(fact.New("check.more", "number", n), fact.New("remedy.steady_counters"))
	}
	return c
}

// checkVerification checks whether payloads were correct. A wrong payload is evidence; payloads
// that could not be judged are not.
func (d *Evidence) checkVerification(curve *steps.Curve) Check {
	c := Check{Name: "verification", Status: OK}
	_, _, by := curve.Counts()
	var checked, encoded int64
	for _, s := range curve.Steps {
		checked, encoded = checked+s.Verified, encoded+s.Encoded
	}
	payloads, share := d.payloads(), float64(d.Run.Plan.Work.Verify)
	d.noteUnverified(&c)
	switch wrong := by[storage.Checksummed]; {
	case wrong > 0:
		c.addFact("check.verification.wrong", "wrong", wrong, "correct", checked)
		c.Status = Fail
	case d.Run.Moved == 0:
		c.Skip(fact.New("check.verification.no_payload"))
	case checked > 0:
		c.addFact("check.verification.correct", "correct", checked, "payloads", payloads)
	case len(c.notes) > 0:
		c.Skip(c.notes[0].what...)
	case share <= 0:
		c.unchecked(fact.New("check.verification.off"), fact.New("remedy.verify"))
	default:
		c.unchecked(fact.New("check.verification.none", "payloads", payloads, "share", share), fact.New("remedy.verify_more"))
	}
	if encoded > 0 {
		c.addFact("check.verification.encoded", "reads", encoded)
		c.worsen(Warn, fact.New("effect.compressed"))
	}
	return c
}

// payloads returns the number of operations of the measurement times that moved payloads or
// reported their checksums.
func (d *Evidence) payloads() (n int64) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write, storage.Checksum, storage.Copy} {
		if t := d.Run.Kinds[kind.String()]; t != nil {
			n += t.Done
		}
	}
	return n
}

// noteUnverified reports payloads that should have been checked but could not be.
func (d *Evidence) noteUnverified(c *Check) {
	for _, kind := range []storage.Kind{storage.Read, storage.Write, storage.Copy} {
		t := d.Run.Kinds[kind.String()]
		if t == nil || t.Unverifiable == 0 {
			continue
		}
		n, of := t.Unverifiable, t.Done
		switch {
		case kind == storage.Write || kind == storage.Copy:
			c.Note(fact.New("check.verification.late_checksums", "payloads", n, "written", of), fact.New("remedy.verify_less_or_read"))
		case d.inParts():
			c.Note(fact.New("check.verification.parts", "payloads", n, "read", of), fact.New("remedy.make_files_parts"))
		case d.Run.Plan.Files.Make != nil:
			c.Note(fact.New("check.verification.no_checksums", "payloads", n, "read", of), fact.New("remedy.verify_less"))
		default:
			c.Note(fact.New("check.verification.no_checksums", "payloads", n, "read", of), fact.New("remedy.make_files"))
		}
	}
}

// inParts reports whether clients read parts of files.
func (d *Evidence) inParts() bool { return d.Run.Plan.Work.Part != nil || d.Run.Plan.Work.Job != nil }
