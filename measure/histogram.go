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
	hdr    *hdrhistogram.Histogram // nil while empty, and while sparse holds the counts
	sum    int64                   // ns
	sparse []bucket                // of a histogram that was read and not changed since: its counters, ascending
	total  int64                   // counts in sparse
}

// Record counts d. Durations outside the range count at its ends, those below
// 0 as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	if h.hdr == nil {
		h.thicken()
	}
	h.sum += int64(d)
	_ = h.hdr.RecordValue(min(max(int64(d), lowest), highest)) // inside the range, so it cannot fail
}

// Merge adds o's counts to h.
func (h *Histogram) Merge(o *Histogram) {
	if o.Count() == 0 {
		return
	}
	if h.hdr == nil {
		h.thicken()
	}
	if o.hdr != nil {
		h.hdr.Merge(o.hdr)
	} else {
		o.pour(h.hdr)
	}
	h.sum += o.sum
}

// thicken makes h ready to count.
func (h *Histogram) thicken() {
	h.hdr = h.dense()
	h.sparse, h.total = nil, 0
}

// Count returns how many durations were counted.
func (h *Histogram) Count() int64 {
	if h.hdr == nil {
		return h.total
	}
	return h.hdr.TotalCount()
}

// Sum returns the exact sum of the durations, in seconds.
func (h *Histogram) Sum() float64 { return float64(h.sum) / 1e9 }

// Mean returns the exact mean in seconds, 0 if h is empty.
func (h *Histogram) Mean() float64 {
	if n := h.Count(); n > 0 {
		return h.Sum() / float64(n)
	}
	return 0
}

// Quantile returns the duration in seconds that a share q (0 to 1) of the
// counted ones does not exceed, within 1%; 0 if h is empty.
func (h *Histogram) Quantile(q float64) float64 {
	if h.Count() == 0 {
		return 0
	}
	if h.hdr == nil {
		return float64(h.sparseQuantile(q)) / 1e9
	}
	return float64(h.hdr.ValueAtQuantile(q*100)) / 1e9
}

// Max returns the longest duration in seconds, within 1%.
func (h *Histogram) Max() float64 { return h.Quantile(1) }

// Buckets calls f for each non-empty bucket: its bounds in seconds and its count.
func (h *Histogram) Buckets(f func(from, to float64, count int64)) {
	if h.hdr == nil {
		for _, b := range h.sparse {
			f(float64(b.value)/1e9, float64(top(b.value))/1e9, b.count)
		}
		return
	}
	for _, b := range h.hdr.Distribution() {
		if b.Count > 0 {
			f(float64(b.From)/1e9, float64(b.To)/1e9, b.Count)
		}
	}
}

// Counters calls f for each counter that is not zero, by time: with the shortest
// of the durations that it takes, which are within 1% of each other.
func (h *Histogram) Counters(f func(shortest time.Duration, count int64)) {
	if h.hdr == nil {
		for i := range h.sparse {
			f(time.Duration(h.sparse[i].value), h.sparse[i].count)
		}
		return
	}
	for _, b := range h.hdr.Distribution() {
		if b.Count > 0 {
			f(time.Duration(b.From), b.Count)
		}
	}
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	if h.hdr != nil {
		h.hdr.Reset()
	}
	h.sum = 0
	h.sparse, h.total = h.sparse[:0], 0
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
	if h.Count() == 0 {
		return []byte(`{"count":0}`), nil
	}
	if h.hdr == nil { // h is a copy
		h.hdr = h.dense()
	}
	packed, err := pack(h.hdr)
	if err != nil {
		return nil, err
	}
	return json.Marshal(histogramJSON{h.Count(), h.Sum(), float64(h.hdr.Min()) / 1e9, h.Max(), packed})
}

// nanoseconds undoes what Sum did.
func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// UnmarshalJSON reads what MarshalJSON wrote, or another tool's histogram of
// nanoseconds. A damaged one is an error.
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
	h.hdr = hdr
	h.sum = nanoseconds(j.Sum)
	return nil
}
