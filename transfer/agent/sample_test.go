package agent

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/monitor"
	"weir/transfer"
)

// Bytes that move after a look at the host, and before its sample is stored, count in the next sample. A look that failed takes no
// bytes from it.
func TestSamplesCountBytesOfTheirSpan(t *testing.T) {
	h := newActivity()
	s := &samples{activity: h, clock: new(clock)}
	r := h.take(transfer.Lease{Item: 1, Epoch: 1}, func(error) {})
	move := func(sum int64) { h.progress(r, transfer.Progress{Moved: sum}) }
	sample := func(seconds float64) {
		require.NoError(t, s.Sample(&monitor.Sample{Time: time.Now(), Seconds: seconds}))
	}
	move(100)
	s.look() // the first look has no sample
	move(1100)
	s.look()
	move(3100) // while the sample is taken
	sample(1)
	sample(0) // the look took too long
	s.look()
	sample(2)
	for i, want := range []float64{1000, 0, 1000} {
		if got := s.waiting(10)[i].MovedBytes; got != want {
			t.Errorf("sample %d: %v bytes per second, want %v", i, got, want)
		}
	}
}
