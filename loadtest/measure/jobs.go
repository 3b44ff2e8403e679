package measure

import (
	"time"

	"weir/storage"
)

// Jobs counts jobs: tasks of many operations. In a run without jobs it is zero,
// and its keys are not written.
type Jobs struct {
	Running    float64   `json:"jobs_running,omitempty"`    // jobs running, mean over the interval, over all kinds
	Started    int64     `json:"jobs_begun,omitempty"`      // jobs begun
	Ended      int64     `json:"jobs_done,omitempty"`       // jobs that came to their end
	JobsFailed int64     `json:"jobs_failed,omitempty"`     // jobs that an operation ended which failed, but for those that crashed
	Crashed    int64     `json:"jobs_crashed,omitempty"`    // jobs that ended because a request was not answered in time
	Events     int64     `json:"events,omitempty"`          // events that jobs were through with
	Used       int64     `json:"used_bytes,omitempty"`      // payload that jobs worked on
	Staged     int64     `json:"staged_bytes,omitempty"`    // payload that jobs had copied to a scratch disk
	Outputs    int64     `json:"output_files,omitempty"`    // files that jobs have written to the target
	Output     int64     `json:"output_bytes,omitempty"`    // payload of these
	OutputTime float64   `json:"output_seconds,omitempty"`  // wall clock time that jobs spent writing these, summed
	Compute    float64   `json:"compute_seconds,omitempty"` // time for which jobs computed, summed
	Wall       Histogram `json:"job_seconds,omitzero"`      // of jobs that came to their end, from begin to end
}

// jobFields is the number of fields of Jobs.
const jobFields = 13

// Fields returns all quantities of v, as those of a Sum.
func (v *Jobs) Fields() [jobFields]Field {
	return [jobFields]Field{
		{"jobs_running", &v.Running}, {"jobs_begun", &v.Started}, {"jobs_done", &v.Ended}, {"jobs_failed", &v.JobsFailed},
		{"jobs_crashed", &v.Crashed}, {"events", &v.Events}, {"used_bytes", &v.Used}, {"staged_bytes", &v.Staged},
		{"output_files", &v.Outputs}, {"output_bytes", &v.Output}, {"output_seconds", &v.OutputTime},
		{"compute_seconds", &v.Compute}, {"job_seconds", &v.Wall},
	}
}

// Any reports whether there were jobs at all.
func (v *Jobs) Any() bool {
	return v.Running != 0 || v.Started != 0 || v.Events != 0 || v.Ended+v.Lost() != 0
}

// Lost returns how many jobs did not complete: failed and crashed ones.
func (v *Jobs) Lost() int64 { return v.JobsFailed + v.Crashed }

// job returns the locked cell that counts jobs whose operations are of kind k.
func (m *Meter) job(k storage.Kind) *cell {
	c := m.of(k)
	c.mu.Lock()
	return c
}

// JobBegin counts a job that begins, whose operations are mainly of kind k, and
// returns the reading of the clock. Each is followed by one JobEnd.
func (m *Meter) JobBegin(k storage.Kind) time.Duration {
	c := m.job(k)
	c.sum.Started++
	c.mu.Unlock()
	now := m.r.Now()
	m.r.jobs.add(m.r.Now, 1)
	return now
}

// JobEnd counts a job that ended; class is the outcome of its last operation,
// and begin what JobBegin returned. A job whose request was not answered in
// time has crashed; one that the run broke off counts as neither.
func (m *Meter) JobEnd(k storage.Kind, class storage.Class, begin time.Duration) {
	now := m.r.Now()
	m.r.jobs.add(m.r.Now, -1)
	c := m.job(k)
	switch class {
	case storage.None:
		c.sum.Ended++
		c.sum.Wall.Record(now - begin)
	case storage.Timeout:
		c.sum.Crashed++
	case storage.Canceled:
	default:
		c.sum.JobsFailed++
	}
	c.mu.Unlock()
}

// Worked counts what a job did since the last call: events it is through with,
// bytes of payload that it worked on, and for how long it computed.
func (m *Meter) Worked(k storage.Kind, events, used int64, compute time.Duration) {
	c := m.job(k)
	c.sum.Events += events
	c.sum.Used += used
	c.sum.Compute += compute.Seconds()
	c.mu.Unlock()
}

// Staged counts bytes of payload that a job had copied to a scratch disk.
func (m *Meter) Staged(k storage.Kind, bytes int64) {
	c := m.job(k)
	c.sum.Staged += bytes
	c.mu.Unlock()
}

// Wrote counts a file of so many bytes that a job has written, which took so long.
func (m *Meter) Wrote(k storage.Kind, bytes int64, took time.Duration) {
	c := m.job(k)
	c.sum.Outputs++
	c.sum.Output += bytes
	c.sum.OutputTime += took.Seconds()
	c.mu.Unlock()
}

// A Site is what the clients at one end of several emulated links did in an
// interval, where they run jobs.
type Site struct {
	Moved int64   `json:"moved_bytes"`
	CPU   float64 `json:"client_cpu_seconds,omitempty"`

	Jobs
}

// At notes that all of v was seen at a site, if jobs took part in it. What was
// noted of sites before is forgotten.
func (v *Interval) At(site string) {
	v.Sites = nil
	if v.Any() {
		v.addSite(site, &Site{Moved: v.Moved, CPU: v.CPU, Jobs: v.Jobs})
	}
}

// Interval returns what of v was seen at the site, one of v's. It shares the
// histogram of s.
func (s *Site) Interval(v *Interval) Interval {
	return Interval{Start: v.Start, Seconds: v.Seconds, Step: v.Step, Phase: v.Phase, Kind: v.Kind, Server: v.Server, Population: v.Population,
		Sum: Sum{Moved: s.Moved, CPU: s.CPU, Jobs: s.Jobs}}
}

// addSite adds what other clients at a site did. v has a copy of o then.
func (v *Interval) addSite(name string, o *Site) {
	if v.Sites == nil {
		v.Sites = map[string]*Site{}
	}
	s := v.Sites[name]
	if s == nil {
		s = &Site{}
		v.Sites[name] = s
	}
	s.Moved += o.Moved
	s.CPU += o.CPU
	into, from := s.Fields(), o.Fields()
	for i := range into {
		add(into[i].Value, from[i].Value)
	}
	s.Wall.Merge(&o.Wall)
}
