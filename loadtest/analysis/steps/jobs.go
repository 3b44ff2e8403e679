package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
)

// JobFigures are the figures of the jobs of a step: tasks of many operations, or programs of the
// user. It is zero if the run has no jobs.
type JobFigures struct {
	Jobs        *JobCounts `json:"jobs,omitempty"`         // nil: the run has no jobs
	RunningJobs float64    `json:"running_jobs,omitempty"` // mean
	JobSeconds  *Quantiles `json:"job_seconds"`            // wall clock time of jobs that completed; nil: no job did
	// JobSecondsEstimate replaces the mean of JobSeconds if no job ended: the number of events of a
	// job divided by the events per second of a running job.
	JobSecondsEstimate *float64 `json:"job_seconds_estimate,omitempty"`
	JobFailureRatio    *float64 `json:"job_failure_ratio,omitempty"` // failed jobs per ended job
	CrashRatio         *float64 `json:"crash_ratio,omitempty"`       // crashed jobs per ended job

	CPUEfficiency     *float64 `json:"cpu_efficiency"` // computing time of jobs as a share of their running time; nil: no computing
	CPUEfficiencyLow  *float64 `json:"cpu_efficiency_low,omitempty"`
	CPUEfficiencyHigh *float64 `json:"cpu_efficiency_high,omitempty"`

	// ClusterThroughput is the number of running jobs times their CPU efficiency.
	ClusterThroughput     *float64 `json:"cluster_throughput,omitempty"`
	ClusterThroughputLow  *float64 `json:"cluster_throughput_low,omitempty"`
	ClusterThroughputHigh *float64 `json:"cluster_throughput_high,omitempty"`

	EventRate     float64  `json:"events_per_second,omitempty"`
	EventRateLow  *float64 `json:"events_low,omitempty"`
	EventRateHigh *float64 `json:"events_high,omitempty"`

	Staged        int64    `json:"staged_bytes,omitempty"`   // payload copied to scratch disks
	Used          int64    `json:"used_bytes,omitempty"`     // payload that jobs processed
	Outputs       int64    `json:"output_files,omitempty"`   // files that jobs wrote to the target
	Output        int64    `json:"output_bytes,omitempty"`   // payload of these
	OutputSeconds *float64 `json:"output_seconds,omitempty"` // mean wall clock time of writing a file, with scratch disks; nil: no output
	OutputShare   *float64 `json:"writing_share,omitempty"`  // of the jobs' time, spent writing; nil: no files written
	UsedRatio     *float64 `json:"used_ratio,omitempty"`     // share of the payload that was read
	ProgramMemory int64    `json:"program_memory_bytes,omitempty"`
	// Scratch is the busiest disk with copies of files, or nil if no such disk was monitored.
	Scratch      *hosts.DiskFigure  `json:"scratch,omitempty"`
	ScratchDisks []hosts.DiskFigure `json:"scratch_disks,omitempty"` // of each machine with copies, the busiest first
}

// JobCounts are the numbers of jobs in the measurement time of a step. Jobs that the end of the run
// interrupted have begun and not ended.
type JobCounts struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // completed
	Failed  int64 `json:"failed"`  // ended by a failure other than a request without a response
	Crashed int64 `json:"crashed"` // ended by a request without a response in time
}

// Ended returns the number of jobs that ended, regardless of the result.
func (c *JobCounts) Ended() int64 { return c.Done + c.Failed + c.Crashed }

// MeanJob returns the mean wall clock time of a job in seconds, measured or, if no job ended,
// estimated; ok is false if it is unknown.
func (s *JobFigures) MeanJob() (seconds float64, estimated, ok bool) {
	switch {
	case s.JobSeconds != nil:
		return s.JobSeconds.Mean, false, true
	case s.JobSecondsEstimate != nil:
		return *s.JobSecondsEstimate, true, true
	}
	return 0, false, false
}

// LostJobs returns the share of a step's jobs that did not complete.
func (s *JobFigures) LostJobs() float64 {
	return basics.Value(s.JobFailureRatio) + basics.Value(s.CrashRatio)
}

// worked returns the computing time of the jobs and programs in an interval.
func worked(iv *measure.Interval) float64 { return iv.Compute + iv.CPU }

// eventsIn, workIn and runningIn return the counts of one second of jobs.
func eventsIn(x *Second) float64 { return float64(x.Events) }

func workIn(x *Second) float64 { return x.Work }

func runningIn(x *Second) float64 { return x.Running * x.Seconds }

// jobs fills in the figures of jobs that the sums determine.
func (s *JobFigures) jobs(t *Total) {
	j := &t.Jobs
	if !j.Any() {
		return
	}
	s.Jobs = &JobCounts{j.Started, j.Ended, j.JobsFailed, j.Crashed}
	area := 0.0 // job seconds
	for i := range t.Seconds {
		area += runningIn(&t.Seconds[i])
	}
	s.RunningJobs = stats.Ratio(area, t.Span)
	s.JobSeconds = QuantilesOf(&j.Wall)
	if n := s.Jobs.Ended(); n > 0 {
		s.JobFailureRatio, s.CrashRatio = basics.Part(float64(j.JobsFailed), float64(n)), basics.Part(float64(j.Crashed), float64(n))
	}
	s.EventRate = stats.Ratio(float64(j.Events), t.Span)
	s.EventRateLow, s.EventRateHigh = interval(batches(t.Seconds, eventsIn))
	s.Staged, s.Used, s.ProgramMemory = j.Staged, j.Used, t.Memory
	if s.Outputs, s.Output = j.Outputs, j.Output; j.Outputs > 0 {
		s.OutputSeconds, s.OutputShare = basics.Part(j.OutputTime, float64(j.Outputs)), basics.Part(j.OutputTime, area)
	}
	if read := t.Moved - j.Output; read > 0 {
		s.UsedRatio = basics.Part(float64(j.Used), float64(read))
	}
	if work := j.Compute + t.CPU; work > 0 && area > 0 {
		s.computed(t, work, area)
	}
}

// computed fills in the figures that depend on the computing time of jobs, work, in area job
// seconds: the efficiency, and the cluster throughput, which is the mean number of jobs that
// computed at the same time.
func (s *JobFigures) computed(t *Total, work, area float64) {
	s.CPUEfficiency, s.ClusterThroughput = basics.Part(work, area), basics.Part(work, t.Span)
	done, ran := batches(t.Seconds, workIn), batches(t.Seconds, runningIn)
	s.ClusterThroughputLow, s.ClusterThroughputHigh = interval(done)
	ratios := make([]stats.Point, 0, len(done)) // a ratio of means: batches are weighted by the jobs in them
	for i, p := range done {
		if x := ran[i].Value * ran[i].Weight; x > 0 {
			ratios = append(ratios, stats.Point{Value: p.Value * p.Weight / x, Weight: x})
		}
	}
	s.CPUEfficiencyLow, s.CPUEfficiencyHigh = interval(ratios)
}

// complete fills in the figures that depend on the plan and on other steps.
func (d *Run) complete(s *JobFigures) {
	if s.CPUEfficiency == nil && d.computed && s.RunningJobs > 0 {
		zero := 0.0 // in other steps jobs computed: here they only waited
		s.CPUEfficiency, s.ClusterThroughput = &zero, &zero
	}
	j := d.Plan.Work.Job
	if j == nil {
		return
	}
	if s.JobSeconds == nil && s.EventRate > 0 && s.RunningJobs > 0 {
		s.JobSecondsEstimate = basics.Part(float64(j.Reads())*s.RunningJobs, s.EventRate)
	}
	atMost(s.CPUEfficiencyHigh, 1, s.CPUEfficiency) // a job computes on one core at a time
	atMost(s.ClusterThroughputHigh, s.RunningJobs, s.ClusterThroughput)
}

// jobs fills in the figures of a step's jobs that need the plan.
func (d *Run) jobs(s *Working) {
	if s.Jobs == nil {
		return
	}
	t := d.Steps[s.Step]
	d.complete(&s.JobFigures)
	s.Sites = d.sites(s, t)
	if j := d.Plan.Work.Job; j != nil && j.Burn {
		s.Burned = stats.Ratio(t.Compute, s.Duration)
	}
	s.EachJob = d.Plan.Work.Kind == workload.JobWork
	s.Programs = d.Plan.Work.Kind == workload.CommandJobWork
	s.OneByOne = d.inRequests()
	s.ComputeSeconds = t.Compute
}

// atMost limits high, the upper end of x's interval, to the maximum of x.
func atMost(high *float64, most float64, x *float64) {
	if high != nil {
		*high = min(*high, max(most, *x))
	}
}

// bounded reports whether a step was planned to end after a number of jobs, instead of after a
// duration.
func (d *Run) bounded(step int) bool {
	for _, p := range d.Plan.Steps {
		if p.Number == step {
			return p.Jobs > 0
		}
	}
	return false
}
