package measure

import (
	"time"

	"weir/storage"
)

// Jobs is what an Interval tells of jobs: tasks of many operations. Where there
// are none it is zero, and its keys are left out.
type Jobs struct {
	Running float64   `json:"jobs_running,omitempty"`    // jobs running, mean over the interval, over all kinds
	Started int64     `json:"jobs_begun,omitempty"`      // jobs begun
	Ended   int64     `json:"jobs_done,omitempty"`       // jobs that came to their end
	Broken  int64     `json:"jobs_failed,omitempty"`     // jobs that an operation ended which failed, but for those that crashed
	Crashed int64     `json:"jobs_crashed,omitempty"`    // jobs that ended because a request was not answered in time
	Events  int64     `json:"events,omitempty"`          // events that jobs were through with
	Used    int64     `json:"used_bytes,omitempty"`      // payload that jobs worked on
	Staged  int64     `json:"staged_bytes,omitempty"`    // payload that jobs had copied to a scratch disk
	Compute float64   `json:"compute_seconds,omitempty"` // time for which jobs computed, summed
	Wall    Histogram `json:"job_seconds,omitzero"`      // of jobs that came to their end, from begin to end
}

// Any tells whether there were jobs at all.
func (v *Jobs) Any() bool {
	return v.Running != 0 || v.Started != 0 || v.Events != 0 || v.Ended+v.Broken+v.Crashed != 0
}

// Add adds what other jobs did, or the same ones at another time; Running is
// that of all only if they ran in the same interval.
func (v *Jobs) Add(o *Jobs) {
	v.Running += o.Running
	v.Started += o.Started
	v.Ended += o.Ended
	v.Broken += o.Broken
	v.Crashed += o.Crashed
	v.Events += o.Events
	v.Used += o.Used
	v.Staged += o.Staged
	v.Compute += o.Compute
	if o.Wall.Count() > 0 {
		v.Wall.Merge(&o.Wall)
	}
}

// drain adds v to into and empties it.
func (v *Jobs) drain(into *Jobs) {
	into.Add(v)
	v.Wall.Reset()
	*v = Jobs{Wall: v.Wall} // whose memory is used again
}

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
	c.jobs.Started++
	c.mu.Unlock()
	now := m.r.Now()
	m.r.jobs.add(now, 1)
	return now
}

// JobEnd counts a job that ended; class is what became of its last operation,
// and begin what JobBegin returned. A job whose request was not answered in
// time has crashed; one that the run broke off counts as neither.
func (m *Meter) JobEnd(k storage.Kind, class storage.Class, begin time.Duration) {
	now := m.r.Now()
	m.r.jobs.add(now, -1)
	c := m.job(k)
	switch class {
	case storage.None:
		c.jobs.Ended++
		c.jobs.Wall.Record(now - begin)
	case storage.Timeout:
		c.jobs.Crashed++
	case storage.Canceled:
	default:
		c.jobs.Broken++
	}
	c.mu.Unlock()
}

// Worked counts what a job did since the last call: events it is through with,
// bytes of payload that it worked on, and for how long it computed.
func (m *Meter) Worked(k storage.Kind, events, used int64, compute time.Duration) {
	c := m.job(k)
	c.jobs.Events += events
	c.jobs.Used += used
	c.jobs.Compute += compute.Seconds()
	c.mu.Unlock()
}

// Staged counts bytes of payload that a job had copied to a scratch disk.
func (m *Meter) Staged(k storage.Kind, bytes int64) {
	c := m.job(k)
	c.jobs.Staged += bytes
	c.mu.Unlock()
}
