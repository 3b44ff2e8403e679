package validity

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// heldBytes sums the bytes that interfaces sent in samples within the measurement times.
func heldBytes(d *steps.Run, b *ByteSums, samples []*monitor.Sample) (there, clients, seconds float64) {
	var spans [][2]time.Time
	for _, t := range d.Held() {
		spans = append(spans, t.Spans()...)
	}
	for _, s := range samples {
		if s.Seconds <= 0 || resultstest.Overlap(s, spans) < hosts.Inside*s.Seconds {
			continue
		}
		v := b.span(s.Time.Add(-basics.Duration(s.Seconds)), s)
		for _, n := range s.Nets {
			bytes, _ := d.Payload(&n)
			there += bytes
			clients += d.Overhead() * v.moved
			seconds += s.Seconds
		}
	}
	return there, clients, seconds
}

// TestStreamedBytes checks that samples added one by one have the same bytes as all samples in
// memory.
func TestStreamedBytes(t *testing.T) {
	tier.Slow(t, "analyzes long runs twice")
	for name, change := range resultstest.Irregular() {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			s.Clients = s.Clients[:5]
			change(&s)
			dir := filepath.Join(t.TempDir(), "run")
			require.NoError(t, s.Write(dir))
			run, err := results.Open(dir)
			require.NoError(t, err)
			d, err := steps.Load(run, nil, func([]byte) error { return nil })
			require.NoError(t, err)
			sums, holds := NewByteSums(d), d.HoldTimes()
			var samples []*monitor.Sample
			for s, err := range run.Samples() {
				require.NoError(t, err)
				samples = append(samples, s)
				from, held := s.Time.Add(-basics.Duration(s.Seconds)), 0.0
				holds.During(from, s.Time, func(_ int, seconds float64) { held += seconds })
				if s.Seconds > 0 {
					sums.AddBytes(s, from, held >= hosts.Inside*s.Seconds)
				}
			}
			slices.SortStableFunc(samples, func(a, b *monitor.Sample) int { return a.Time.Compare(b.Time) })
			there, clients, seconds := heldBytes(d, sums, samples)
			for _, c := range sums.counts {
				if c.source == "interface eth0 of store.example.org" {
					there, clients, seconds = there-c.there, clients-c.clients, seconds-c.seconds
				}
			}
			if math.Abs(there)+math.Abs(clients)+math.Abs(seconds) > 1e-3 {
				t.Errorf("bytes of the interface differ by %v, of the clients by %v, in %v s", there, clients, seconds)
			}
		})
	}
}
