package analysis

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
)

// Bounds of the check of jobs.
const (
	jobsWarn = 0.01 // share of the jobs that ended otherwise than well
	jobsFail = 0.5
)

// checkJobs asks how many jobs did what they were to do. What the others moved
// before they ended is in the curve, too; nil in runs without jobs.
func checkJobs(f *Findings, best int) *Check {
	if !f.OfJobs() {
		return nil
	}
	c := &Check{Name: "jobs", Status: OK, Detail: f.jobsText()}
	begun, ended := int64(0), int64(0)
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Jobs == nil {
			continue
		}
		begun, ended = begun+s.Jobs.Begun, ended+s.Jobs.Ended()
		if bad(s) > jobsWarn {
			c.Status = worse(c.Status, Warn)
		}
		if bad(s) > jobsFail && i == best {
			c.Status = Fail
		}
	}
	if ended == 0 {
		c.unchecked(fmt.Sprintf("no job ended while load was held, %s began", say.Plural(int(begun), "job")), "hold longer, or use smaller jobs")
	}
	return c
}

// jobsText tells how many jobs of the whole run ended well, and where the
// first others did not.
func (f *Findings) jobsText() string {
	var all JobCounts
	first, most := "", -1
	for i := range f.Curve {
		j := f.Curve[i].Jobs
		if j == nil {
			continue
		}
		all.Done, all.Failed, all.Crashed = all.Done+j.Done, all.Failed+j.Failed, all.Crashed+j.Crashed
		if j.Failed+j.Crashed == 0 {
			continue
		}
		if first == "" {
			first = f.at(&f.Curve[i])
		}
		if most < 0 || bad(&f.Curve[i]) > bad(&f.Curve[most]) {
			most = i
		}
	}
	var said []string
	for _, x := range []struct {
		n    int64
		word string
	}{{all.Crashed, "crashed"}, {all.Failed, "failed"}} {
		if x.n > 0 {
			said = append(said, fmt.Sprintf("%s of %s %s (%s)", unit.Count(float64(x.n)), say.Plural(int(all.Ended()), "job"), x.word, unit.Percent(ratio(float64(x.n), float64(all.Ended())))))
		}
	}
	switch {
	case all.Ended() == 0:
		return ""
	case len(said) == 0 && all.Ended() == 1:
		return "the one job that ended came to its end"
	case len(said) == 0:
		return fmt.Sprintf("all %s that ended came to their end", say.Plural(int(all.Ended()), "job"))
	}
	text := strings.Join(said, ", ") + ", the first with " + first
	if at := f.at(&f.Curve[most]); at != first {
		text += fmt.Sprintf("; with %s %s did not come to their end", at, unit.Percent(bad(&f.Curve[most])))
	}
	return text
}

// bad is the share of a step's jobs that did not come to their end.
func bad(s *Step) float64 { return value(s.JobFailureRatio) + value(s.CrashRatio) }

// jobClauses are the sentences of the verdict on jobs: what the best step gave
// each, and how many did not come to their end.
func (f *Findings) jobClauses(s *Step) []string {
	if s.Jobs == nil {
		return nil
	}
	var said, all []string
	if e := s.CPUEfficiency; e != nil {
		said = append(said, "the CPU efficiency is "+unit.Percent(*e)+percentRange(s.CPUEfficiencyLow, s.CPUEfficiencyHigh),
			"the cluster throughput "+unit.Significant(*s.ClusterThroughput)+" jobs' worth of CPU")
	}
	if t, estimated, ok := s.MeanJob(); ok {
		how := " on average"
		if estimated {
			how = " by estimate, as none ended"
		}
		said = append(said, "a job takes "+unit.Seconds(t)+how)
	}
	if len(said) > 0 {
		all = append(all, fmt.Sprintf("With %s %s.", f.at(s), strings.Join(said, ", ")))
	}
	if text := f.jobsText(); text != "" && !strings.HasPrefix(text, "all ") && !strings.HasPrefix(text, "the one") {
		all = append(all, say.Capital(text)+".")
	}
	return all
}

// percentRange writes an interval of a share: " (43% to 47%)".
func percentRange(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	return " (" + unit.Percent(*low) + " to " + unit.Percent(*high) + ")"
}
