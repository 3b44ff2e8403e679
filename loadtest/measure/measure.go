// Package measure counts the operations and bytes of the clients: a Meter beside each virtual
// client, a Recorder that sums all meters, and one-second Intervals that go to a Sink.
//
// Bytes are counted when they move, operations when they end. The meters
// allocate nothing, and clients of different processors share no cache line.
package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// A Recorder sums the counts of the meters of one process, and cuts the sums into intervals. Its
// methods are safe for concurrent use.
type Recorder struct {
	base       time.Time // of all clock readings, by this machine's clock
	begin      time.Time // the same moment by the run's clock
	population string    // of the clients that it counts; "" if all have the same workload
	shards     []*shard
	gauge      gauge // clients
	jobs       gauge
	paused     gauge // clients in pauses after failed tasks
	asked      gauge // clients in pauses that the service requested
	log        examples
	phase      atomic.Uint32 // number of the phase

	mu    sync.Mutex // guards next, last, spent and cuts
	next  int        // shard of the next meter
	last  time.Duration
	spent time.Duration // by operations until last
}

// NewRecorder returns a recorder whose clock starts now. clock is the run's clock, by which
// intervals and events are dated; nil: this machine's. population is the population of the clients,
// "" if all have the same workload.
func NewRecorder(clock func() time.Time, population string) *Recorder {
	r := &Recorder{population: population, base: time.Now(), shards: make([]*shard, 4*runtime.GOMAXPROCS(0))}
	r.begin = r.base
	if clock != nil {
		r.begin = clock()
	}
	for i := range r.shards {
		r.shards[i] = &shard{cells: map[address]*cell{}}
	}
	return r
}

// Now returns the recorder's clock: monotonic time since the recorder was made. Meters use this
// clock, which costs a third less than time.Now.
func (r *Recorder) Now() time.Duration { return time.Since(r.base) }

// Time returns this machine's clock at a reading of Now.
func (r *Recorder) Time(t time.Duration) time.Time { return r.base.Add(t) }

// date returns the run's clock at a reading of Now.
func (r *Recorder) date(t time.Duration) time.Time {
	return r.begin.Add(t).UTC().Truncate(time.Microsecond)
}

// Meter returns a meter for one more client.
func (r *Recorder) Meter() *Meter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return &Meter{r: r, shard: r.shards[r.next%len(r.shards)]}
}

// BeginPhase begins a phase, after the last cut of the one before: Sum.DoneSquares counts from here on anew.
func (r *Recorder) BeginPhase() { r.phase.Add(1) }

// Active adds n to the number of virtual clients that are running.
func (r *Recorder) Active(n int) { r.gauge.add(r.Now, n) }

// Paused adds n to the number of clients that pause after failed tasks.
func (r *Recorder) Paused(n int) { r.paused.add(r.Now, n) }

// Asked adds n to the number of clients that pause because the service requested it (Retry-After).
func (r *Recorder) Asked(n int) { r.asked.add(r.Now, n) }

// Missed counts planned arrivals of operations of kind k that will never start.
func (r *Recorder) Missed(k storage.Kind, n int64) {
	c := r.shards[0].cell(address{kind: k})
	c.mu.Lock()
	c.sum.Missed += n
	c.mu.Unlock()
}

// Checked counts operations whose payload was checked after they had ended: verified payloads were
// correct, unverifiable payloads could not be judged, and one payload was wrong if err, which is of
// class Checksummed, is not nil.
func (r *Recorder) Checked(k storage.Kind, verified, unverifiable int64, err error) {
	c := r.shards[0].cell(address{kind: k})
	c.mu.Lock()
	c.sum.Verified += verified
	c.sum.Unverifiable += unverifiable
	if err != nil {
		c.sum.Wrong++
	}
	c.mu.Unlock()
	r.log.add(r, c.address, storage.Checksummed, err)
}

// ReadBack counts bytes of payload that a check of an operation of kind k reads
// back from the service. They are no load, but the service and the network carry them.
func (r *Recorder) ReadBack(k storage.Kind, bytes int64) {
	c := r.shards[0].cell(address{kind: k})
	c.mu.Lock()
	c.sum.ReadBack += bytes
	c.mu.Unlock()
}

// Summed counts the size of a file whose checksum was requested from the service by a check of an
// operation of kind k: the service may have to read the file again.
func (r *Recorder) Summed(k storage.Kind, bytes int64) {
	c := r.shards[0].cell(address{kind: k})
	c.mu.Lock()
	c.sum.Summed += bytes
	c.mu.Unlock()
}

// Cut returns the counts since the last cut (or since the recorder was made) as intervals of the
// given step and phase, one for each kind and data server since the recorder was made, and the
// errors to be kept whole. If there was no operation so far there is one interval of kind idle, to
// report on the clients.
func (r *Recorder) Cut(step int, phase string, idle storage.Kind) ([]*Interval, []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	clients := r.gauge.mean(r.Now)
	blank := Interval{
		Start: r.date(r.last), Seconds: (now - r.last).Seconds(), Step: step, Phase: phase, Clients: clients, Population: r.population,
		Sum: Sum{
			Jobs: Jobs{Running: r.jobs.mean(r.Now)},
		},
	}
	r.last = now
	byAddress := map[address]*Interval{}
	var all []*Interval
	spent := time.Duration(0)
	for _, s := range r.shards {
		for _, c := range s.list() {
			v := byAddress[c.address]
			if v == nil {
				v = new(Interval)
				*v = blank
				v.Kind, v.Server = c.kind, c.server
				byAddress[c.address] = v
				all = append(all, v)
			}
			spent += c.drain(v, now, r.date)
		}
	}
	if len(all) == 0 {
		blank.Kind = idle
		all = append(all, &blank)
	}
	all[0].OperationTime = max(0, spent-r.spent).Seconds() // below 0: some began while the cells were read
	r.spent = spent
	all[0].Paused += r.paused.mean(r.Now) * blank.Seconds
	all[0].RetryAfter += r.asked.mean(r.Now) * blank.Seconds
	return all, r.log.take(step)
}

// A gauge is a number with a mean over time. It reads the clock itself, so that readings are in the
// order of the changes.
type gauge struct {
	mu    sync.Mutex
	value int
	area  float64       // value x ns since from
	from  time.Duration // start of the span
	last  time.Duration // last change
}

func (g *gauge) add(clock func() time.Duration, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance(clock())
	g.value += n
}

// mean returns the mean since the last call.
func (g *gauge) mean(clock func() time.Duration) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance(clock())
	area, span := g.area, g.last-g.from
	g.area, g.from = 0, g.last
	if span <= 0 {
		return float64(g.value)
	}
	return area / float64(span)
}

// advance counts the value until now. The gauge is locked.
func (g *gauge) advance(now time.Duration) {
	g.area += float64(g.value) * float64(now-g.last)
	g.last = now
}
