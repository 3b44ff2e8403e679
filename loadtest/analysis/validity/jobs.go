package validity

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check of jobs.
const (
	jobsWarn = 0.01 // share of the jobs that ended otherwise than well
	jobsFail = 0.5
)

// checkJobs asks how many jobs did what they were to do. What the others moved before they ended is in the curve as
// well. It returns nil in runs without jobs.
func checkJobs(curve *steps.Curve, best int) *Check {
	if !curve.OfJobs() {
		return nil
	}
	c := &Check{Name: "jobs", Status: OK}
	c.Detail, _ = JobsText(curve)
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
		c.unchecked(fmt.Sprintf("no job ended during the measurement, %s began", say.Plural(int(begun), "job")),
			"measure longer, or use smaller jobs")
	}
	return c
}

// JobsText returns a sentence on the successful jobs of the whole run and the first failed ones; bad is whether there
// were others.
func JobsText(curve *steps.Curve) (text string, bad bool) {
	var all steps.JobCounts
	first, most := "", (*steps.Working)(nil)
	for _, s := range curve.Steps {
		j := s.Jobs
		if j == nil {
			continue
		}
		all.Done, all.Failed, all.Crashed = all.Done+j.Done, all.Failed+j.Failed, all.Crashed+j.Crashed
		if j.Failed+j.Crashed == 0 {
			continue
		}
		if first == "" {
			first = curve.At(s)
		}
		if most == nil || s.LostJobs() > most.LostJobs() {
			most = s
		}
	}
	ended := say.Plural(int(all.Ended()), "job")
	var said []string
	for _, x := range []struct {
		n    int64
		word string
	}{{all.Crashed, "crashed"}, {all.Failed, "failed"}} {
		if x.n > 0 {
			said = append(said, fmt.Sprintf("%s of %s %s (%s)", unit.Count(float64(x.n)), ended, x.word,
				unit.Percent(stats.Ratio(float64(x.n), float64(all.Ended())))))
		}
	}
	switch {
	case all.Ended() == 0:
		return "", false
	case most == nil && all.Ended() == 1:
		return "the only job that ended was completed", false
	case most == nil:
		return fmt.Sprintf("all %s that ended were completed", ended), false
	}
	text = strings.Join(said, ", ") + ", the first at " + first
	if at := curve.At(most); at != first {
		text += fmt.Sprintf("; at %s %s were not completed", at, unit.Percent(most.LostJobs()))
	}
	return text, true
}
