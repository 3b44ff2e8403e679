package resultstest

import (
	"math"
	"time"

	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// Jobs makes the clients of a Service run jobs: each operation reads a page of an event, and
// computing follows each event. Operations end according to the service's law, so ComputeShare(n)
// is the CPU efficiency with n jobs.
type Jobs struct {
	Job     workload.Job
	Crashed func(n int) float64 // share of n jobs that crash; may be nil
	Failed  float64             // share of the jobs that fail
	Each    int                 // jobs of each client in a step before it leaves; 0: for its measurement time
	// share of the jobs that run at the site "far", where they take twice as long; the others are
	// at "near". 0: no sites
	Far float64
}

// Farm returns a service with jobs of 100 events of 40 KB in pages of 8 KB, with 50 ms of computing
// per event. The service serves 2000 pages/s: from 20 jobs on they wait for each other more and
// more.
func Farm() Service {
	job := workload.Job{Access: workload.Direct, Events: 100, Event: 40 << 10, Page: 8 << 10, Skim: 1, Slim: 1,
		Compute: workload.Span{Fixed: unit.Duration(50 * time.Millisecond)}}
	return Service{Lambda: 80, Sigma: 0.02, Kappa: 0.0002, File: 8 << 10, Clients: []int{1, 5, 10, 20, 40, 80}, Duration: 12, Noise: 0.02,
		Jobs: &Jobs{Job: job}}
}

// pages returns the number of operations per event.
func (j *Jobs) pages() float64 { return math.Ceil(float64(j.Job.Event) / float64(j.Job.Page)) }

// each returns the computing time of a job per operation, in seconds.
func (j *Jobs) each() float64 { return j.Job.Compute.Mean().Seconds() / j.pages() }

// ComputeShare returns the CPU efficiency of n jobs.
func (s Service) ComputeShare(n int) float64 { return s.Rate(n) * s.Jobs.each() / float64(n) }

// JobSeconds returns the duration of one of n jobs.
func (s Service) JobSeconds(n int) float64 {
	return float64(s.Jobs.Job.Reads()) * s.Jobs.pages() * float64(n) / s.Rate(n)
}

// put adds the counts of its jobs to v. Jobs end at the rate at which their events are read, so in
// a second with few jobs at most one job ends.
func (j *Jobs) put(s *Service, v *measure.Interval, n int, ended *float64) {
	events := float64(v.Done) / j.pages()
	v.Running, v.Events, v.Used = v.Clients, int64(math.Round(events)), v.Moved
	v.Compute = events * j.Job.Compute.Mean().Seconds()
	v.Kind = storage.Read
	if j.Job.Access == workload.Staged {
		v.Staged = v.Moved
		v.Used = v.Moved / 4
	}
	far, near := j.sites(v)
	*ended += events / float64(j.Job.Reads())
	for ; *ended >= 1; *ended-- {
		turn := math.Mod(float64(v.Started+1)*0.618+float64(v.Start.Unix())*0.387, 1)
		at, took := &near.Jobs, s.JobSeconds(n)*(0.8+0.4*turn)
		if math.Mod(turn*17, 1) < j.Far {
			at, took = &far.Jobs, 2*took
		}
		for _, to := range []*measure.Jobs{&v.Jobs, at} {
			j.end(to, n, turn, took)
		}
	}
	v.Tasks += v.Started
	if v.Crashed > 0 {
		v.Failed = map[storage.Class]int64{storage.Timeout: v.Crashed}
	}
}

// end adds a job that ends to v; turn determines its result.
func (j *Jobs) end(v *measure.Jobs, n int, turn, seconds float64) {
	v.Started++
	switch {
	case j.Crashed != nil && turn < j.Crashed(n):
		v.Crashed++
	case turn > 1-j.Failed:
		v.JobsFailed++
	default:
		v.Ended++
		v.Wall.Record(time.Duration(seconds * 1e9))
	}
}

// sites divides the counts of running jobs in v between the sites; the jobs at far compute half as
// much as their share.
func (j *Jobs) sites(v *measure.Interval) (far, near *measure.Site) {
	part := func(n int64) int64 { return int64(math.Round(j.Far * float64(n))) }
	far = &measure.Site{Moved: part(v.Moved), Jobs: measure.Jobs{Running: j.Far * v.Running, Events: part(v.Events), Used: part(v.Used),
		Staged: part(v.Staged), Compute: j.Far / 2 * v.Compute}}
	near = &measure.Site{Moved: v.Moved - far.Moved, Jobs: measure.Jobs{
		Running: v.Running - far.Running, Events: v.Events - far.Events, Used: v.Used - far.Used, Staged: v.Staged - far.Staged,
		Compute: v.Compute - far.Compute,
	}}
	if j.Far > 0 {
		v.Sites = map[string]*measure.Site{"far": far, "near": near}
	}
	return far, near
}
