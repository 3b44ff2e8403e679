package monitor

import (
	"context"
	"fmt"
)

// A Reading is what an XRootD server has counted up to one moment. Two of them
// tell exactly what it did in between, where the seconds of a Watch are too
// coarse.
type Reading struct {
	at    moment
	stats *statistics
}

// Read asks a server about itself now.
func Read(ctx context.Context, r Reporter, server string) (Reading, error) {
	clock := newClock()
	b, err := r.Report(ctx, server)
	if err != nil {
		return Reading{}, err
	}
	s, err := parseStatistics(b)
	if err != nil {
		return Reading{}, fmt.Errorf("statistics of %s: %w", server, err)
	}
	return Reading{at: clock(), stats: s}, nil
}

// Since returns what the server did between the reading before and r; false
// if it was started again meanwhile, or is another one.
func (r Reading) Since(before Reading) (*Service, bool) {
	if r.stats == nil || before.stats == nil || r.stats.identity() != before.stats.identity() {
		return nil, false
	}
	return r.stats.since(before.stats), true
}

// Sample is Since as a sample of the span between the two readings.
func (r Reading) Sample(before Reading) (*Sample, bool) {
	s, ok := r.Since(before)
	if !ok {
		return nil, false
	}
	return &Sample{Time: r.at.wall, Seconds: r.at.wall.Sub(before.at.wall).Seconds(), Service: s}, true
}
