package measure

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// An address says what a cell counts.
type address struct {
	kind   storage.Kind
	server string
}

// A shard holds the cells of some of the clients.
type shard struct {
	mu    sync.Mutex
	cells map[address]*cell
	named int      // cells of data servers
	_     [64]byte // the next shard begins on another cache line
}

func (s *shard) cell(a address) *cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cells[a]
	if c == nil && a.server != "" && s.named >= mostNamed {
		a.server = Others
		c = s.cells[a]
	}
	if c == nil {
		c = &cell{address: a}
		s.cells[a] = c
		if a.server != "" {
			s.named++
		}
	}
	return c
}

// mostNamed is how many data servers, times kinds of operations, are counted
// apart: a service that keeps inventing servers must not fill our memory.
const mostNamed = 1024

// Others stands for the data servers beyond those that are counted apart.
const Others = "(others)"

// list returns the cells in no particular order.
func (s *shard) list() []*cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.cells))
}

// A cell counts one kind of operation on one data server for the clients of
// one shard. moved and begun change while operations run; the rest when they end.
type cell struct {
	address
	moved atomic.Int64
	begun atomic.Int64
	_     [64]byte

	mu                                   sync.Mutex
	dropped, wire, done                  int64
	failed                               [storage.Classes]int64
	retried, verified, unproven          int64
	readBack, summed                     int64
	tasks, sessions, missed              int64
	waits, reopened                      int64
	think, cpu, waited, failedTime       int64         // ns
	firstDone, lastDone                  time.Duration // readings of the recorder's clock; 0: none done
	latency, first, connect, login, late Histogram
	redirect                             Histogram
	memory                               int64
	jobs                                 Jobs // but for Running
	_                                    [64]byte
}

// drain adds the cell's counts to v and empties the cell. date turns a reading
// of the recorder's clock into a time.
func (c *cell) drain(v *Interval, date func(time.Duration) time.Time) {
	v.Moved += c.moved.Swap(0)
	v.Begun += c.begun.Swap(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	v.Dropped += take(&c.dropped)
	v.Wire += take(&c.wire)
	v.Done += take(&c.done)
	v.Retried += take(&c.retried)
	v.Verified += take(&c.verified)
	v.Unproven += take(&c.unproven)
	v.ReadBack += take(&c.readBack)
	v.Summed += take(&c.summed)
	v.Tasks += take(&c.tasks)
	v.Sessions += take(&c.sessions)
	v.Missed += take(&c.missed)
	v.Waits += take(&c.waits)
	v.Reopened += take(&c.reopened)
	v.Waited += float64(take(&c.waited)) / 1e9
	v.Think += float64(take(&c.think)) / 1e9
	v.FailedTime += float64(take(&c.failedTime)) / 1e9
	if c.lastDone > 0 {
		v.addDone(date(c.firstDone), date(c.lastDone))
		c.firstDone, c.lastDone = 0, 0
	}
	v.CPU += float64(take(&c.cpu)) / 1e9
	v.Memory = max(v.Memory, take(&c.memory))
	c.jobs.drain(&v.Jobs)
	for class := range c.failed {
		if n := take(&c.failed[class]); n > 0 {
			if v.Failed == nil {
				v.Failed = map[storage.Class]int64{}
			}
			v.Failed[storage.Class(class)] += n
		}
	}
	pour(&v.Latency, &c.latency)
	pour(&v.FirstByte, &c.first)
	pour(&v.Connect, &c.connect)
	pour(&v.Login, &c.login)
	pour(&v.Redirect, &c.redirect)
	pour(&v.Late, &c.late)
}

func take(n *int64) int64 {
	v := *n
	*n = 0
	return v
}

func pour(into, from *Histogram) {
	if from.Count() > 0 {
		into.Merge(from)
		from.Reset()
	}
}

// addDone extends the span of the operations done to those between first and last.
func (v *Interval) addDone(first, last time.Time) {
	if v.FirstDone.IsZero() || first.Before(v.FirstDone) {
		v.FirstDone = first
	}
	if last.After(v.LastDone) {
		v.LastDone = last
	}
}

// Add adds o, an interval of the same second, step, phase, kind and server
// seen by other clients, to v. The longer of the two spans is kept.
func (v *Interval) Add(o *Interval) {
	v.Seconds = max(v.Seconds, o.Seconds)
	v.Clients += o.Clients
	v.Moved += o.Moved
	v.Dropped += o.Dropped
	v.Wire += o.Wire
	v.Begun += o.Begun
	v.Done += o.Done
	v.Retried += o.Retried
	v.Verified += o.Verified
	v.Unproven += o.Unproven
	v.ReadBack += o.ReadBack
	v.Summed += o.Summed
	v.Tasks += o.Tasks
	v.Sessions += o.Sessions
	v.Missed += o.Missed
	v.Waits += o.Waits
	v.Waited += o.Waited
	v.Reopened += o.Reopened
	v.Think += o.Think
	v.Paused += o.Paused
	v.FailedTime += o.FailedTime
	if !o.LastDone.IsZero() {
		v.addDone(o.FirstDone, o.LastDone)
	}
	v.CPU += o.CPU
	v.Memory = max(v.Memory, o.Memory)
	v.Jobs.Add(&o.Jobs)
	for name, s := range o.Sites {
		v.addSite(name, s)
	}
	for class, n := range o.Failed {
		if v.Failed == nil {
			v.Failed = map[storage.Class]int64{}
		}
		v.Failed[class] += n
	}
	v.Latency.Merge(&o.Latency)
	v.FirstByte.Merge(&o.FirstByte)
	v.Connect.Merge(&o.Connect)
	v.Login.Merge(&o.Login)
	v.Redirect.Merge(&o.Redirect)
	v.Late.Merge(&o.Late)
}
