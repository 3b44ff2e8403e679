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
	JobsFailed int64     `json:"jobs_failed,omitempty"`     // jobs that failed, but did not crash
	Crashed    int64     `json:"jobs_crashed,omitempty"`    // jobs with a request without a response in time
	Events     int64     `json:"events,omitempty"`          // events that jobs have finished
	Used       int64     `json:"used_bytes,omitempty"`      // payload that jobs worked on
	Staged     int64     `json:"staged_bytes,omitempty"`    // payload that jobs had copied to a scratch disk
	Outputs    int64     `json:"output_files,omitempty"`    // files that jobs have written to the target
	Output     int64     `json:"output_bytes,omitempty"`    // payload of these files
	OutputTime float64   `json:"output_seconds,omitempty"`  // wall clock time of these, summed
	Compute    float64   `json:"compute_seconds,omitempty"` // time for which jobs computed, summed
	Wall       Histogram `json:"job_seconds,omitzero"`      // of jobs that came to their end, from begin to end
}

// jobFields is the number of fields of Jobs.
const jobFields = 13

// Fields returns all quantities of v, in the form of Sum.Fields.
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

// Lost returns the number of jobs that did not complete: failed and crashed jobs.
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

// JobEnd counts a job that ended; class is the outcome of its last operation, and begin the result
// of JobBegin. A job whose request had no response in time has crashed; a job that the run
// cancelled counts as neither ended nor failed.
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

// Worked counts the work of a job since the last call: events that it has finished, bytes of
// payload that it worked on, and the time for which it computed.
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

// A Site has the measurements of the clients at one end of several emulated links in an interval,
// if they run jobs.
type Site struct {
	Moved int64   `json:"moved_bytes"`
	CPU   float64 `json:"client_cpu_seconds,omitempty"`

	Jobs
}

// At attributes all of v to a site, if jobs took part in it. Earlier sites of v are removed.
func (v *Interval) At(site string) {
	v.Sites = nil
	if v.Any() {
		v.addSite(site, &Site{Moved: v.Moved, CPU: v.CPU, Jobs: v.Jobs})
	}
}

// Interval returns the part of v that belongs to the site, which is a site of v. It shares the
// histogram of s.
func (s *Site) Interval(v *Interval) Interval {
	return Interval{Start: v.Start, Seconds: v.Seconds, Step: v.Step, Phase: v.Phase, Kind: v.Kind, Server: v.Server, Population: v.Population,
		Sum: Sum{Moved: s.Moved, CPU: s.CPU, Jobs: s.Jobs}}
}

// addSite adds the measurements of other clients at a site. v has a copy of o then.
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
