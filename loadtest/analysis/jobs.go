package analysis

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
)

// JobFigures are what a step reports on jobs: tasks of many operations, or programs of the user's. Where there are none
// it is zero.
type JobFigures struct {
	Jobs        *JobCounts `json:"jobs,omitempty"`         // nil: the run has no jobs
	RunningJobs float64    `json:"running_jobs,omitempty"` // mean
	JobSeconds  *Quantiles `json:"job_seconds"`            // wall clock time of jobs that came to their end; nil: none did
	// JobSecondsEstimate stands in for the mean of JobSeconds where no job ended: the events of a job over the events
	// per second of a running job.
	JobSecondsEstimate *float64 `json:"job_seconds_estimate,omitempty"`
	JobFailureRatio    *float64 `json:"job_failure_ratio,omitempty"` // failed ones of those that ended
	CrashRatio         *float64 `json:"crash_ratio,omitempty"`       // crashed ones of those that ended

	CPUEfficiency     *float64 `json:"cpu_efficiency"` // time that jobs computed over the time for which they ran; nil: nothing was computed
	CPUEfficiencyLow  *float64 `json:"cpu_efficiency_low,omitempty"`
	CPUEfficiencyHigh *float64 `json:"cpu_efficiency_high,omitempty"`

	// ClusterThroughput is the running jobs times their CPU efficiency.
	ClusterThroughput     *float64 `json:"cluster_throughput,omitempty"`
	ClusterThroughputLow  *float64 `json:"cluster_throughput_low,omitempty"`
	ClusterThroughputHigh *float64 `json:"cluster_throughput_high,omitempty"`

	EventRate     float64  `json:"events_per_second,omitempty"`
	EventRateLow  *float64 `json:"events_low,omitempty"`
	EventRateHigh *float64 `json:"events_high,omitempty"`

	Staged        int64    `json:"staged_bytes,omitempty"`   // payload copied to scratch disks
	Used          int64    `json:"used_bytes,omitempty"`     // payload that jobs worked on
	Outputs       int64    `json:"output_files,omitempty"`   // files that jobs wrote to the target
	Output        int64    `json:"output_bytes,omitempty"`   // payload of these
	OutputSeconds *float64 `json:"output_seconds,omitempty"` // mean wall clock time of writing one, with scratch disks; nil: none was written
	OutputShare   *float64 `json:"writing_share,omitempty"`  // of the jobs' time, spent writing; nil: none was written
	UsedRatio     *float64 `json:"used_ratio,omitempty"`     // of the payload that was read
	ProgramMemory int64    `json:"program_memory_bytes,omitempty"`
	// Scratch is the busiest disk that copies lie on; nil: none was among those that were watched.
	Scratch      *DiskFigure  `json:"scratch,omitempty"`
	ScratchDisks []DiskFigure `json:"scratch_disks,omitempty"` // of each machine with copies, the busiest first
}

// JobCounts are jobs of the measurement time of a step. Those that the run broke off have begun and not ended.
type JobCounts struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // that came to their end
	Failed  int64 `json:"failed"`  // that another failure ended than a request without an answer
	Crashed int64 `json:"crashed"` // that a request ended which was not answered in time
}

// Ended returns how many jobs ended, however they did.
func (c *JobCounts) Ended() int64 { return c.Done + c.Failed + c.Crashed }

// A DiskFigure is one disk of a host over the measurement time of a step.
type DiskFigure struct {
	Host  string   `json:"host"`
	Disk  string   `json:"disk"`
	Busy  *float64 `json:"disk_busy"`
	Read  float64  `json:"disk_read_bytes_per_second"`
	Write float64  `json:"disk_write_bytes_per_second"`
	Queue *float64 `json:"disk_queue"` // mean requests waiting or in service
	// IOWait is the share of the time of the host's cores in which they were idle and waited for a disk.
	IOWait *float64 `json:"iowait"`
}

// OfJobs reports whether the run's clients ran jobs.
func (f *Findings) OfJobs() bool {
	for s := range each(f.Curve) {
		if s.Jobs != nil {
			return true
		}
	}
	return false
}

// MeanJob returns the mean wall clock time of a job in seconds, measured or, where no job ended, estimated; ok is
// false where nothing tells it.
func (s *JobFigures) MeanJob() (seconds float64, estimated, ok bool) {
	switch {
	case s.JobSeconds != nil:
		return s.JobSeconds.Mean, false, true
	case s.JobSecondsEstimate != nil:
		return *s.JobSecondsEstimate, true, true
	}
	return 0, false, false
}

// unwell returns the share of what ended that did not end well: of operations, or of jobs if that is more. A job is
// thousands of operations, and the last of them alone tells that it failed.
func (s *Step) unwell() float64 {
	return max(s.ErrorRatio, s.lostJobs())
}

// worked returns the time for which jobs and programs of an interval computed.
func worked(iv *measure.Interval) float64 { return iv.Compute + iv.CPU }

// What is counted in a second of jobs.
func eventsIn(x *second) float64  { return float64(x.events) }
func workIn(x *second) float64    { return x.work }
func runningIn(x *second) float64 { return x.running * x.seconds }

// jobs fills in what the sums report on jobs.
func (s *JobFigures) jobs(t *total) {
	j := &t.Jobs
	if !j.Any() {
		return
	}
	s.Jobs = &JobCounts{j.Started, j.Ended, j.JobsFailed, j.Crashed}
	area := 0.0 // job seconds
	for i := range t.seconds {
		area += runningIn(&t.seconds[i])
	}
	s.RunningJobs = ratio(area, t.span)
	s.JobSeconds = QuantilesOf(&j.Wall)
	if n := s.Jobs.Ended(); n > 0 {
		s.JobFailureRatio, s.CrashRatio = part(float64(j.JobsFailed), float64(n)), part(float64(j.Crashed), float64(n))
	}
	s.EventRate = ratio(float64(j.Events), t.span)
	s.EventRateLow, s.EventRateHigh = interval(batches(t.seconds, eventsIn))
	s.Staged, s.Used, s.ProgramMemory = j.Staged, j.Used, t.Memory
	if s.Outputs, s.Output = j.Outputs, j.Output; j.Outputs > 0 {
		s.OutputSeconds, s.OutputShare = part(j.OutputTime, float64(j.Outputs)), part(j.OutputTime, area)
	}
	if read := t.Moved - j.Output; read > 0 {
		s.UsedRatio = part(float64(j.Used), float64(read))
	}
	if work := j.Compute + t.CPU; work > 0 && area > 0 {
		s.computed(t, work, area)
	}
}

// computed fills in what follows from the time for which jobs computed, of area job seconds: the efficiency, and by
// it the cluster throughput, which is how many jobs computed at once on average.
func (s *JobFigures) computed(t *total, work, area float64) {
	s.CPUEfficiency, s.ClusterThroughput = part(work, area), part(work, t.span)
	done, ran := batches(t.seconds, workIn), batches(t.seconds, runningIn)
	s.ClusterThroughputLow, s.ClusterThroughputHigh = interval(done)
	ratios := make([]stats.Point, 0, len(done)) // a ratio of means: each batch counts as much as jobs ran in it
	for i, p := range done {
		if x := ran[i].Value * ran[i].Weight; x > 0 {
			ratios = append(ratios, stats.Point{Value: p.Value * p.Weight / x, Weight: x})
		}
	}
	s.CPUEfficiencyLow, s.CPUEfficiencyHigh = interval(ratios)
}

// complete fills in what follows from the plan, and from the other steps.
func (d *data) complete(s *JobFigures) {
	if s.CPUEfficiency == nil && d.computed && s.RunningJobs > 0 {
		zero := 0.0 // elsewhere jobs computed: here they only waited
		s.CPUEfficiency, s.ClusterThroughput = &zero, &zero
	}
	j := d.plan.Work.Job
	if j == nil {
		return
	}
	if s.JobSeconds == nil && s.EventRate > 0 && s.RunningJobs > 0 {
		s.JobSecondsEstimate = part(float64(j.Reads())*s.RunningJobs, s.EventRate)
	}
	atMost(s.CPUEfficiencyHigh, 1, s.CPUEfficiency) // a job computes on one core at a time
	atMost(s.ClusterThroughputHigh, s.RunningJobs, s.ClusterThroughput)
}

// jobs fills in what only the plan reports on a step's jobs.
func (d *data) jobs(s *Step) {
	if s.Jobs == nil {
		return
	}
	t := d.steps[s.Step]
	d.complete(&s.JobFigures)
	s.Sites = d.sites(s, t)
	if j := d.plan.Work.Job; j != nil && j.Burn {
		s.burned = ratio(t.Compute, s.Duration)
	}
	s.eachJob = d.plan.Work.Kind == workload.JobWork
	s.programs = d.plan.Work.Kind == workload.CommandJobWork
	s.oneByOne = d.inRequests()
	s.computeSeconds = t.Compute
}

// atMost lowers high, the upper end of x's interval, to what x can be.
func atMost(high *float64, most float64, x *float64) {
	if high != nil {
		*high = min(*high, max(most, *x))
	}
}

// bounded reports whether a step was to end with the last of so many jobs, rather than when its time was over.
func (d *data) bounded(step int) bool {
	for _, p := range d.plan.Steps {
		if p.Number == step {
			return p.Jobs > 0
		}
	}
	return false
}

// Bounds of the check of jobs.
const (
	jobsWarn = 0.01 // share of the jobs that ended otherwise than well
	jobsFail = 0.5
)

// checkJobs asks how many jobs did what they were to do. What the others moved before they ended is in the curve as
// well. It returns nil in runs without jobs.
func checkJobs(f *Findings, best int) *Check {
	if !f.OfJobs() {
		return nil
	}
	c := &Check{Name: "jobs", Status: OK}
	c.Detail, _ = f.jobsText()
	begun, ended := int64(0), int64(0)
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Jobs == nil {
			continue
		}
		begun, ended = begun+s.Jobs.Begun, ended+s.Jobs.Ended()
		switch {
		case s.lostJobs() > jobsFail && i == best:
			c.Status = Fail
		case s.lostJobs() > jobsWarn:
			c.Status = worse(c.Status, Warn)
		}
	}
	if ended == 0 {
		c.unchecked(fmt.Sprintf("no job ended during the measurement, %s began", say.Plural(int(begun), "job")),
			"measure longer, or use smaller jobs")
	}
	return c
}

// jobsText tells how many jobs of the whole run ended well, and where the first others did not; bad is whether there
// were others.
func (f *Findings) jobsText() (text string, bad bool) {
	var all JobCounts
	first, most := "", (*Step)(nil)
	for s := range each(f.Curve) {
		j := s.Jobs
		if j == nil {
			continue
		}
		all.Done, all.Failed, all.Crashed = all.Done+j.Done, all.Failed+j.Failed, all.Crashed+j.Crashed
		if j.Failed+j.Crashed == 0 {
			continue
		}
		if first == "" {
			first = f.at(s)
		}
		if most == nil || s.lostJobs() > most.lostJobs() {
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
				unit.Percent(ratio(float64(x.n), float64(all.Ended())))))
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
	if at := f.at(most); at != first {
		text += fmt.Sprintf("; at %s %s were not completed", at, unit.Percent(most.lostJobs()))
	}
	return text, true
}

// lostJobs is the share of a step's jobs that did not complete.
func (s *JobFigures) lostJobs() float64 { return value(s.JobFailureRatio) + value(s.CrashRatio) }

// jobClauses are the sentences of the verdict on jobs: what the best step gave each, and how many did not come to
// their end.
func (f *Findings) jobClauses(s *Step) []string {
	if s.Jobs == nil {
		return nil
	}
	var said, all []string
	if e := s.CPUEfficiency; e != nil {
		said = append(said, "the CPU efficiency is "+unit.Percent(*e)+percentRange(s.CPUEfficiencyLow, s.CPUEfficiencyHigh),
			"the cluster throughput "+unit.Significant(*s.ClusterThroughput)+" jobs")
	}
	if t, estimated, ok := s.MeanJob(); ok {
		how := " on average"
		if estimated {
			how = " (estimated: no job was completed)"
		}
		said = append(said, "a job takes "+unit.Seconds(t)+how)
	}
	if len(said) > 0 {
		all = append(all, fmt.Sprintf("At %s %s.", f.at(s), strings.Join(said, ", ")))
	}
	if text, bad := f.jobsText(); bad {
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
