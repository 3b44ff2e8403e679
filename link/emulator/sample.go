package emulator

import (
	"math/bits"
	"time"

	"weir/internal/unit"
	"weir/link"
)

// A Sample has the traffic of one link between two looks, usually of one second, cut at whole
// seconds of the wall clock.
type Sample struct {
	Time    time.Time    `json:"time"`             // end of the span
	Seconds float64      `json:"duration_seconds"` // its length
	Link    string       `json:"link"`
	Rate    unit.Bitrate `json:"rate,omitempty"` // to the clients, at the end of the span
	Up      unit.Bitrate `json:"up,omitempty"`   // from the clients
	Down    bool         `json:"down,omitempty"` // at the end of the span

	ToClients   link.Traffic `json:"to_clients"`
	FromClients link.Traffic `json:"from_clients"`

	Cost float64 `json:"cost_cpu_seconds"` // CPU time that the emulation took
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

// bucket returns the number of the bucket of x: x itself below 16, then its highest four bits and
// the distance by which they are shifted.
func bucket(x uint64) int {
	shift := max(bits.Len64(x)-4, 0)
	return shift*8 + int(x>>shift)
}

// top returns the largest value of a bucket.
func top(b int) int64 {
	if b < 16 {
		return int64(b)
	}
	shift := b/8 - 1
	return int64(b-shift*8+1)<<shift - 1
}

func (h *histogram) quantiles() link.Quantiles {
	return link.Quantiles{P50: h.quantile(0.5), P99: h.quantile(0.99), Max: float64(h.max) / 1e9}
}

// quantile returns the q-th quantile in seconds, 0 if the histogram is empty.
func (h *histogram) quantile(q float64) float64 {
	rank, seen := int64(q*float64(h.total)), int64(0)
	for b, n := range h.counts {
		if seen += n; seen > rank {
			return float64(min(top(b), h.max)) / 1e9
		}
	}
	return 0
}

// A tally has the counts of one way of a link since the last look.
type tally struct {
	link.Traffic
	wait, late histogram
}

func (t tally) traffic() link.Traffic {
	out := t.Traffic
	out.Wait, out.Late = t.wait.quantiles(), t.late.quantiles()
	return out
}

// A meter counts the traffic of one way of a link.
type meter struct {
	shaper *shaper
	busy   float64 // wire time of all that was taken, ns
	sent   float64 // wire time that had passed at the last look
	tally  tally
}

// send puts bytes on the wire at the time now and returns when they arrive.
func (m *meter) send(now int64, bytes int) (at int64) {
	at, busy := m.shaper.send(now, bytes)
	m.busy += busy
	return at
}

// look ends a span of ns nanoseconds and returns its counts.
func (m *meter) look(now, ns int64) tally {
	t := m.tally
	m.tally = tally{}
	sent := m.busy - float64(m.shaper.wait(now))
	t.Busy = min(1, max(0, (sent-m.sent)/float64(max(ns, 1))))
	m.sent = sent
	return t
}
