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

	mu    sync.Mutex
	kept  []transfer.Sample
	moved int64 // at the last sample
	in    int64 // through the endpoint, at the last sample
	out   int64
}

// Sample implements monitor.Sink.
func (s *samples) Sample(m *monitor.Sample) error {
	moved, running := s.activity.movedBytes()
	out := hostsample.Of(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Time = s.clock.now().Add(-time.Since(m.Time))
	out.Running = running
	if m.Seconds > 0 {
		out.MovedBytes = float64(moved-s.moved) / m.Seconds
	}
	s.moved = moved
	if s.endpoint != nil {
		in, sent := s.endpoint.server.Payload()
		out.EndpointIn, out.EndpointOut = in-s.in, sent-s.out
		s.in, s.out = in, sent
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
