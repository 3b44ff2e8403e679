package agent

import (
	"sync"
	"time"

	"weir/monitor"
	"weir/transfer"
	"weir/transfer/hostsample"
)

// mostSamples is the maximum number of samples kept while the coordinator is unavailable.
const mostSamples = 600

// samples holds the measurements of the host that the coordinator has not acknowledged yet.
type samples struct {
	activity *activity
	clock    *clock
	endpoint *localEndpoint // nil if there is no endpoint

	mu     sync.Mutex
	kept   []transfer.Sample
	now    ownCounts // at the latest look
	before ownCounts // at the latest sample
	looked bool
}

// ownCounts are the counts of the agent itself.
type ownCounts struct {
	moved   int64 // bytes
	in, out int64 // bytes through the endpoint
	running int   // copies
}

// look reads the agent's own counts at the time of a sample. If they were read when Sample is
// called, bytes that moved in between would count in the span before.
func (s *samples) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.moved, s.now.running = s.activity.movedBytes()
	if s.endpoint != nil {
		s.now.in, s.now.out = s.endpoint.server.Payload()
	}
	if !s.looked {
		s.before, s.looked = s.now, true
	}
}

// Sample implements monitor.Sink.
func (s *samples) Sample(m *monitor.Sample) error {
	out := hostsample.Of(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Time = s.clock.now().Add(-time.Since(m.Time))
	out.Running = s.now.running
	if m.Seconds > 0 { // not that of a look that failed
		out.MovedBytes = float64(s.now.moved-s.before.moved) / m.Seconds
		out.EndpointIn, out.EndpointOut = s.now.in-s.before.in, s.now.out-s.before.out
		s.before = s.now
	}
	s.kept = append(s.kept, out)
	if len(s.kept) > mostSamples {
		s.kept = s.kept[len(s.kept)-mostSamples:]
	}
	return nil
}

// waiting returns the samples to be reported, up to the maximum number.
func (s *samples) waiting(most int) []transfer.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]transfer.Sample(nil), s.kept[:min(most, len(s.kept))]...)
}

// acknowledge removes acknowledged samples.
func (s *samples) acknowledge(known []transfer.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(known) > 0 && len(s.kept) > 0 && !s.kept[0].Time.After(known[len(known)-1].Time) {
		s.kept = s.kept[1:]
	}
}
