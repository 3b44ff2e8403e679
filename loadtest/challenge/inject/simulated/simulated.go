// Package simulated is a model of sites, links and a transfer service, in its own time, for tests and
// estimates. Copies move evenly, at rates that share the capacities of the model by max-min fairness;
// the time goes from event to event.
package simulated

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
)

// A Simulated is a model and the injector of its copies. Its time passes only in Step. All methods are
// safe for concurrent use; Report must not call Step.
type Simulated struct {
	stepping sync.Mutex // one Step at a time, with its reports
	mu       sync.Mutex
	o        Options
	now      float64 // seconds since the beginning of the model
	random   *rand.Rand
	events   events
	copies   map[int64]*running
	sites    []site
	links    []link
	waiting  []*running // for a slot, in the order of their arrival
	free     float64    // time from which the service can begin the next copy
	progress float64    // time of the last reports of running copies
	sharing  sharing
	reports  []inject.Report
	spare    []*running
	requests int
}

// A site is the state of a Site.
type site struct {
	slots int // copies that have one
	away  int // outages at present
}

// A link is the state of a Link.
type link struct {
	now     []*running // copies that move bytes
	rate    float64    // of each of them, bytes/s
	level   float64    // bytes that a copy would have moved that has run all the time
	begun   float64    // sum of the levels at which the running copies began
	next    float64    // lowest level at which a running copy ends
	flight  int
	queued  int
	asked   int64 // bytes of the copies in flight
	settled int64 // bytes of copies that have moved all that they do
	flying  int64 // of these, bytes of copies that have not ended
	moved   int64 // last value of Counts.Moved
	done    int
	failed  int
}

// Counts are the numbers of a link since the beginning.
type Counts struct {
	Moved    int64 // bytes, also of copies that run or failed
	Left     int64 // bytes of the copies in flight that are still to be moved
	InFlight int   // copies that were requested and have not ended
	Queued   int   // of these not begun
	Done     int   // copies that ended with success
	Failed   int   // copies that failed or were cancelled
}

// progressEvery is the time between two reports of a running copy, in seconds of the model.
const progressEvery = 1

// New returns a model whose time is 0. It needs no Close.
func New(o Options) (*Simulated, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	s := &Simulated{
		o: o, random: rand.New(rand.NewPCG(o.Seed, 1)), copies: map[int64]*running{},
		sites: make([]site, len(o.Sites)), links: make([]link, len(o.Links)),
	}
	for i := range s.links {
		s.links[i].next = math.Inf(1)
	}
	s.sharing.build(&s.o)
	for i, c := range o.Changes {
		s.events.push(event{at: c.At.Seconds(), what: capacityChanges, index: i})
	}
	for i := range o.Sites {
		for _, out := range o.Sites[i].Outages {
			s.events.push(event{at: out.From.Seconds(), what: siteLeaves, index: i})
			s.events.push(event{at: out.To.Seconds(), what: siteReturns, index: i})
		}
	}
	return s, nil
}

// Step moves the time of the model by dt, and then delivers the reports.
func (s *Simulated) Step(dt time.Duration) {
	s.stepping.Lock()
	defer s.stepping.Unlock()
	s.mu.Lock()
	s.run(s.now + dt.Seconds())
	if s.o.Report != nil && s.now-s.progress >= progressEvery-1e-9 {
		s.progress = s.now
		s.reportProgress()
	}
	reports := s.reports
	s.reports = nil
	s.mu.Unlock()
	for i := range reports {
		s.o.Report(reports[i])
	}
}

// Run steps the model with the time of the clock until the end of ctx, and returns then.
func (s *Simulated) Run(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := time.Now()
			s.Step(time.Duration(float64(now.Sub(last)) * s.o.Scale))
			last = now
		}
	}
}

// Now returns the time of the model.
func (s *Simulated) Now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(math.Round(s.now * float64(time.Second)))
}

// Counts returns the numbers of a link.
func (s *Simulated) Counts(i int) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.links[i]
	c := Counts{InFlight: l.flight, Queued: l.queued, Done: l.done, Failed: l.failed}
	partial := int64(0)
	if !s.o.Silent {
		partial = int64(math.Round(float64(len(l.now))*l.level - l.begun))
		c.Left = max(0, l.asked-l.flying-partial)
		l.moved = max(l.moved, l.settled+partial)
	} else {
		c.Left = l.asked
		l.moved = l.settled - l.flying
	}
	c.Moved = l.moved
	return c
}

// Check returns nil: the model needs no service.
func (s *Simulated) Check(context.Context) error { return nil }

// Start requests copies. Their reports follow with the next Step.
func (s *Simulated) Start(ctx context.Context, copies []inject.Copy) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	for i := range copies {
		if c := &copies[i]; c.Link < 0 || c.Link >= len(s.links) || c.Source.Size < 0 {
			return errors.New("simulated: a copy has an unknown link or a negative size")
		}
		s.request(&copies[i])
	}
	return nil
}

// Cancel ends copies at once.
func (s *Simulated) Cancel(_ context.Context, ids []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	for _, id := range ids {
		if c := s.copies[id]; c != nil {
			s.end(c, inject.Cancelled, "cancelled")
		}
	}
	return nil
}

// Resume reports all copies as failed: a model does not outlive its process.
func (s *Simulated) Resume(_ context.Context, copies []inject.Copy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range copies {
		if s.copies[copies[i].ID] == nil {
			s.report(inject.Report{ID: copies[i].ID, State: inject.Failed, Reason: "unknown to the simulated service"})
		}
	}
	return nil
}

// Health returns the number of requests since the last call. The model has no failures of its own.
func (s *Simulated) Health() inject.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := inject.Health{Requests: s.requests}
	s.requests = 0
	return h
}

// Close returns nil.
func (s *Simulated) Close() error { return nil }

// report keeps a report for the end of Step.
func (s *Simulated) report(r inject.Report) {
	if s.o.Report != nil {
		r.At = s.clock(s.now)
		s.reports = append(s.reports, r)
	}
}

// reportProgress reports the bytes of all running copies.
func (s *Simulated) reportProgress() {
	for i := range s.links {
		l := &s.links[i]
		for _, c := range l.now {
			moved := int64(-1)
			if !s.o.Silent {
				moved = int64(l.level - c.from)
			}
			s.report(inject.Report{ID: c.ID, State: inject.Running, Moved: min(moved, c.Source.Size)})
		}
	}
}

// clock returns the time of the clock at a time of the model.
func (s *Simulated) clock(at float64) time.Time {
	return s.o.Begin.Add(time.Duration(math.Round(at / s.o.Scale * float64(time.Second))))
}
