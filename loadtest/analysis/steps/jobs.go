package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
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
	Scratch      *hosts.DiskFigure  `json:"scratch,omitempty"`
	ScratchDisks []hosts.DiskFigure `json:"scratch_disks,omitempty"` // of each machine with copies, the busiest first
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

// LostJobs is the share of a step's jobs that did not complete.
func (s *JobFigures) LostJobs() float64 {
	return basics.Value(s.JobFailureRatio) + basics.Value(s.CrashRatio)
}

// worked returns the time for which jobs and programs of an interval computed.
func worked(iv *measure.Interval) float64 { return iv.Compute + iv.CPU }

// What is counted in a second of jobs.
func eventsIn(x *Second) float64 { return float64(x.Events) }

func workIn(x *Second) float64 { return x.Work }

func runningIn(x *Second) float64 { return x.Running * x.Seconds }

// jobs fills in what the sums report on jobs.
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

// computed fills in what follows from the time for which jobs computed, of area job seconds: the efficiency, and by
// it the cluster throughput, which is how many jobs computed at once on average.
func (s *JobFigures) computed(t *Total, work, area float64) {
	s.CPUEfficiency, s.ClusterThroughput = basics.Part(work, area), basics.Part(work, t.Span)
	done, ran := batches(t.Seconds, workIn), batches(t.Seconds, runningIn)
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
func (d *Run) complete(s *JobFigures) {
	if s.CPUEfficiency == nil && d.computed && s.RunningJobs > 0 {
		zero := 0.0 // elsewhere jobs computed: here they only waited
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

// jobs fills in what only the plan reports on a step's jobs.
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

// atMost lowers high, the upper end of x's interval, to what x can be.
func atMost(high *float64, most float64, x *float64) {
	if high != nil {
		*high = min(*high, max(most, *x))
	}
}

// bounded reports whether a step was to end with the last of so many jobs, rather than when its time was over.
func (d *Run) bounded(step int) bool {
	for _, p := range d.Plan.Steps {
		if p.Number == step {
			return p.Jobs > 0
		}
	}
	return false
}
