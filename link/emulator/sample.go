package emulator

import (
	"math/bits"
	"time"

	"weir/internal/unit"
)

// A Sample is what one link carried between two looks, usually one second, cut
// at whole seconds of the wall clock.
type Sample struct {
	Time    time.Time    `json:"time"`             // end of the span
	Seconds float64      `json:"duration_seconds"` // its length
	Link    string       `json:"link"`
	Rate    unit.Bitrate `json:"rate,omitempty"` // to the clients, at the end of the span
	Up      unit.Bitrate `json:"up,omitempty"`   // from the clients
	Down    bool         `json:"down,omitempty"` // at the end of the span

	ToClients   Traffic `json:"to_clients"`
	FromClients Traffic `json:"from_clients"`

	Cost float64 `json:"cost_cpu_seconds"` // CPU time that the emulation took; 0 where the kernel does it
}

// Traffic is what one way of a link carried. Counts are of the span.
type Traffic struct {
	Packets int64 `json:"packets"` // that have arrived
	Bytes   int64 `json:"bytes"`   // of these, IP headers included
	Dropped int64 `json:"dropped"` // because the queue was full
	Lost    int64 `json:"lost"`    // as the link's loss wants it
	Cut     int64 `json:"cut"`     // because the link was down

	// Busy is the share of the time in which the wire was sending; 0 where it
	// has no rate.
	Busy float64   `json:"busy"`
	Wait Quantiles `json:"wait_seconds"` // of packets for the wire
	// Late is how much later than they should packets have arrived: the
	// emulation's own fault.
	Late Quantiles `json:"late_seconds"`
}

// Quantiles are of a second's packets, each at most 13% too high.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// A histogram counts durations in buckets, eight to a power of two.
type histogram struct {
	counts [496]int64
	total  int64
	max    int64
}

func (h *histogram) add(ns, times int64) {
	ns = max(ns, 0)
	h.counts[bucket(uint64(ns))] += times
	h.total += times
	h.max = max(h.max, ns)
}

// bucket returns the number of the bucket of x: x itself below 16, then its
// highest four bits and how far they are shifted.
func bucket(x uint64) int {
	shift := max(bits.Len64(x)-4, 0)
	return shift*8 + int(x>>shift) //nolint:gosec // below 16
}

// top returns the largest value of a bucket.
func top(b int) int64 {
	if b < 16 {
		return int64(b)
	}
	shift := b/8 - 1
	return int64(b-shift*8+1)<<shift - 1
}

func (h *histogram) quantiles() Quantiles {
	return Quantiles{P50: h.quantile(0.5), P99: h.quantile(0.99), Max: float64(h.max) / 1e9}
}

// quantile returns the q-th quantile in seconds, 0 if there is none.
func (h *histogram) quantile(q float64) float64 {
	rank, seen := int64(q*float64(h.total)), int64(0)
	for b, n := range h.counts {
		if seen += n; seen > rank {
			return float64(min(top(b), h.max)) / 1e9
		}
	}
	return 0
}

// A tally is what one way of a link has counted since the last look.
type tally struct {
	Traffic
	wait, late histogram
}
