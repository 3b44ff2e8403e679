package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Values are kept in nanoseconds, from 100 ns to an hour, each within 1%.
const (
	lowest  = 100
	highest = int64(time.Hour)
	digits  = 2
)

// A Histogram counts durations. The zero value is empty and ready. Its JSON
// holds count, sum, min and max in seconds and, under "hdr", the whole
// distribution in nanoseconds as HdrHistogram's V2 compressed format, base64.
// The compression is stored blocks of zlib, which are faster to read.
// It is not safe for concurrent use.
type Histogram struct {
	counts *[counters]int64 // by index; nil while empty, and while sparse holds the counts
	sparse []bucket         // as read, while not changed: counts above zero, ascending
	total  int64            // of all counts
	sum    int64            // ns
}

// Record counts d. Durations outside the range count at its ends, those below
// 0 as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	if h.counts == nil {
		h.thicken()
	}
	h.sum += int64(d)
	h.add(int64(d), 1)
}

// add counts n values at once, in nanoseconds.
func (h *Histogram) add(value, n int64) {
	h.counts[indexOf(min(max(value, lowest), highest))] += n
	h.total += n
}

// Merge adds o's counts to h.
func (h *Histogram) Merge(o *Histogram) {
	if o.total == 0 {
		return
	}
	if h.counts == nil {
		h.thicken()
	}
	h.sum += o.sum
	h.total += o.total
	for _, b := range o.sparse {
		h.counts[b.index] += b.count
	}
	if o.counts != nil {
		for i, n := range o.counts {
			h.counts[i] += n
		}
	}
}

// thicken makes h ready to count.
func (h *Histogram) thicken() {
	h.counts = new([counters]int64)
	for _, b := range h.sparse {
		h.counts[b.index] = b.count
	}
	h.sparse = nil
}

// Count returns the number of durations that were counted.
func (h *Histogram) Count() int64 { return h.total }

// Sum returns the exact sum of the durations, in seconds.
func (h *Histogram) Sum() float64 { return float64(h.sum) / 1e9 }

// Mean returns the exact mean in seconds, 0 if h is empty.
func (h *Histogram) Mean() float64 {
	if h.total > 0 {
		return h.Sum() / float64(h.total)
	}
	return 0
}

// Quantile returns the duration in seconds that a share q (0 to 1) of the counted durations does
// not exceed, within 1%; 0 if h is empty.
func (h *Histogram) Quantile(q float64) float64 {
	if h.total == 0 {
		return 0
	}
	i := h.holding(rank(q, h.total))
	if q <= 0 {
		return float64(valueOf(i)) / 1e9
	}
	return float64(top(i)) / 1e9
}

// rank returns the rank, from 1, of quantile q among so many ascending values, as HdrHistogram
// chooses it.
func rank(q float64, total int64) int64 {
	switch r := q*float64(total) + 0.5; {
	case !(r >= 1):
		return 1
	case r < float64(total):
		return int64(r)
	}
	return total
}

// holding returns the counter that has the value of a rank.
func (h *Histogram) holding(rank int64) int {
	for _, b := range h.sparse {
		if rank -= b.count; rank <= 0 {
			return b.index
		}
	}
	if h.counts != nil {
		for i, n := range h.counts {
			if rank -= n; rank <= 0 {
				return i
			}
		}
	}
	return 0
}

// Max returns the longest duration in seconds, within 1%.
func (h *Histogram) Max() float64 { return h.Quantile(1) }

// list returns the counters that are not zero, ascending.
func (h *Histogram) list() []bucket {
	if h.counts == nil {
		return h.sparse
	}
	var all []bucket
	for i, n := range h.counts {
		if n != 0 {
			all = append(all, bucket{i, n})
		}
	}
	return all
}

// Buckets calls f for each non-empty bucket: its bounds in seconds and its count.
func (h *Histogram) Buckets(f func(from, to float64, count int64)) {
	for _, b := range h.list() {
		f(float64(valueOf(b.index))/1e9, float64(top(b.index))/1e9, b.count)
	}
}

// Counters calls f for each counter that is not zero, by time: with the shortest of the durations
// that it counts, which are within 1% of each other.
func (h *Histogram) Counters(f func(shortest time.Duration, count int64)) {
	for _, b := range h.list() {
		f(time.Duration(valueOf(b.index)), b.count)
	}
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	if h.counts != nil {
		clear(h.counts[:])
	}
	h.sparse, h.total, h.sum = h.sparse[:0], 0, 0
}

type histogramJSON struct {
	Count int64   `json:"count"`
	Sum   float64 `json:"sum,omitempty"`
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	HDR   string  `json:"hdr,omitempty"`
}

// MarshalJSON writes the histogram as described at its type.
func (h Histogram) MarshalJSON() ([]byte, error) {
	list := h.list()
	if len(list) == 0 {
		return []byte(`{"count":0}`), nil
	}
	return json.Marshal(histogramJSON{h.total, h.Sum(), float64(valueOf(list[0].index)) / 1e9, h.Max(), pack(list)})
}

// nanoseconds converts a result of Sum back to nanoseconds.
func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// UnmarshalJSON reads the output of MarshalJSON, or another tool's histogram of nanoseconds. A
// damaged histogram is an error.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	*h = Histogram{}
	if new(HistogramReader).Read(h, b) {
		return nil
	}
	var j histogramJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*h = Histogram{}
	if j.HDR == "" {
		return nil
	}
	hdr, err := hdrhistogram.Decode([]byte(j.HDR))
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	h.thicken()
	for _, b := range hdr.Distribution() { // perhaps of another resolution
		if b.Count > 0 {
			h.add(b.From+(b.To-b.From)/2, b.Count)
		}
	}
	h.sum = nanoseconds(j.Sum)
	return nil
}
