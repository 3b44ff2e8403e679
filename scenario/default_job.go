package scenario

import (
	"cmp"

	"weir/internal/unit"
	"weir/workload"
)

// defaultJob is the job of the MONARC tests of 1999: 3000 events of 40 KB, read
// one page of 8 KB at a time.
func defaultJob() workload.Job {
	return workload.Job{Access: workload.Direct, Events: 3000, Event: 40 << 10, Page: 8 << 10, Skim: 1, Slim: 1, Copy: seconds(3600)}
}

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
		out.Copy = cmp.Or(out.Copy, whole.Copy)
	}
	return &out
}
