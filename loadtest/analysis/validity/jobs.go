package validity

import (
	"cmp"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check of jobs.
const (
	jobsWarn = 0.01 // share of the jobs that did not succeed
	jobsFail = 0.5
)

// checkJobs judges the share of successful jobs. The curve also includes the bytes that other jobs
// moved before they ended. It returns nil in runs without jobs.
func checkJobs(curve *steps.Curve, best int) *Check {
	if !curve.OfJobs() {
		return nil
	}
	c := &Check{Name: "jobs", Status: OK}
	found, _ := jobsFacts(curve)
	c.Add(found...)
	begun, ended := int64(0), int64(0)
	for i := range curve.Steps {
		s := curve.Steps[i]
		if s.Jobs == nil {
			continue
		}
		begun, ended = begun+s.Jobs.Begun, ended+s.Jobs.Ended()
		switch {
		case s.LostJobs() > jobsFail && i == best:
			c.Status = Fail
		case s.LostJobs() > jobsWarn:
			c.Status = worse(c.Status, Warn)
		}
	}
	if ended == 0 {
		c.unchecked(fact.New("check.jobs.none_ended", "begun", begun), fact.New("remedy.smaller_jobs"))
	}
	return c
}

// LostJobs returns the facts on failed jobs as one value of a fact; ok is false if no job failed.
func LostJobs(curve *steps.Curve) (lost fact.Shown, ok bool) {
	found, bad := jobsFacts(curve)
	return fact.As(found, sentence(found)), bad
}

// jobsFacts returns facts on the successful jobs of the whole run and the first failed jobs; bad
// reports whether jobs failed.
func jobsFacts(curve *steps.Curve) (found []fact.Fact, bad bool) {
	var all steps.JobCounts
	var first, crashed, failed, most *steps.Working // crashed, failed: first step with such jobs
	for _, s := range curve.Steps {
		j := s.Jobs
		if j == nil {
			continue
		}
		all.Done, all.Failed, all.Crashed = all.Done+j.Done, all.Failed+j.Failed, all.Crashed+j.Crashed
		if j.Crashed > 0 {
			crashed = cmp.Or(crashed, s)
		}
		if j.Failed > 0 {
			failed = cmp.Or(failed, s)
		}
		if j.Failed+j.Crashed > 0 {
			first = cmp.Or(first, s)
			if most == nil || s.LostJobs() > most.LostJobs() {
				most = s
			}
		}
	}
	ended := all.Ended()
	switch {
	case ended == 0:
		return nil, false
	case most == nil && ended == 1:
		return []fact.Fact{fact.New("check.jobs.only_one")}, false
	case most == nil:
		return []fact.Fact{fact.New("check.jobs.all", "jobs", ended)}, false
	}
	if crashed != nil {
		found = append(found, fact.New("check.jobs.crashed", "crashed", all.Crashed, "ended", ended,
			"share", stats.Ratio(float64(all.Crashed), float64(ended)), "load", curve.At(crashed)))
	}
	if failed != nil {
		found = append(found, fact.New("check.jobs.failed", "failed", all.Failed, "ended", ended,
			"share", stats.Ratio(float64(all.Failed), float64(ended)), "load", curve.At(failed)))
	}
	if most != first {
		found = append(found, fact.New("check.jobs.most", "load", curve.At(most), "share", most.LostJobs()))
	}
	return found, true
}
