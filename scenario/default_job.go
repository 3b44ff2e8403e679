package scenario

import (
	"cmp"
	"time"

	"weir/internal/unit"
	"weir/workload"
)

// defaultJob is the job of the MONARC tests of 1999: 3000 events of 40 KB, read
// one page of 8 KB at a time.
func defaultJob() workload.Job {
	return workload.Job{Access: workload.Direct, Events: 3000, Event: 40 << 10, Page: 8 << 10, Skim: 1, Slim: 1}
}

// defaultCopy is the longest that a staged job's copy may take.
const defaultCopy = unit.Duration(time.Hour)

// completeJob returns j with the defaults of what it leaves out.
func completeJob(j *workload.Job) *workload.Job {
	whole := defaultJob()
	if j == nil {
		return &whole
	}
	out := *j
	out.Access = cmp.Or(out.Access, whole.Access)
	out.Events = cmp.Or(out.Events, whole.Events)
	out.Event = cmp.Or(out.Event, whole.Event)
	out.Page = cmp.Or(out.Page, min(whole.Page, out.Event))
	out.Skim = cmp.Or(out.Skim, unit.Fraction(1))
	out.Slim = cmp.Or(out.Slim, unit.Fraction(1))
	if out.Access == workload.Staged {
		out.Copy = cmp.Or(out.Copy, defaultCopy)
	}
	return &out
}

// completeJobs fills in the defaults of a load of a number of jobs: all of each
// counts, and no job that could be done is cut off.
func (s *Scenario) completeJobs() {
	l, usual := &s.Load, defaults().Load
	if l.Jobs <= 0 {
		return
	}
	if l.Cool == 0 {
		l.Cool = defaultCool
	}
	for _, k := range []struct {
		key      string
		at       *unit.Duration
		usual, d unit.Duration
	}{{"ramp", &l.Ramp, usual.Ramp, 0}, {"settle", &l.Settle, usual.Settle, 0}, {"hold", &l.Hold, usual.Hold, defaultJobsHold}} {
		if !s.given("load."+k.key) && *k.at == k.usual {
			*k.at = k.d
		}
	}
}

// Defaults of a load of a number of jobs.
const (
	defaultCool     = unit.Duration(time.Second)
	defaultJobsHold = unit.Duration(time.Hour)
)
