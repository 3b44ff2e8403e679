package links

import (
	"math"
	"time"
)

// The buckets of durations: each octave from a millisecond to two years has 32, so that the middle
// of a bucket is within 1.1% of all its values.
const (
	perOctave = 32
	octaves   = 36
	shortest  = 1e-3 // seconds
)

// durations counts durations of a phase. The zero value is empty. It needs 4.6 kB once it counts.
type durations struct {
	counts   []int32
	count    int64
	sum, max float64
}

func (d *durations) add(t time.Duration) {
	if d.counts == nil {
		d.counts = make([]int32, perOctave*octaves)
	}
	s := t.Seconds()
	i := int(math.Log2(max(s, shortest)/shortest) * perOctave)
	d.counts[min(i, len(d.counts)-1)]++
	d.count++
	d.sum += s
	d.max = max(d.max, s)
}

func (d *durations) quantile(q float64) float64 {
	rank, seen := int64(math.Ceil(q*float64(d.count))), int64(0)
	for i, n := range d.counts {
		if seen += int64(n); seen >= max(rank, 1) {
			return min(d.max, shortest*math.Exp2((float64(i)+0.5)/perOctave))
		}
	}
	return d.max
}

// figure returns the figures of the phase, or nil without a duration.
func (d *durations) figure() *Phase {
	if d.count == 0 {
		return nil
	}
	return &Phase{Count: d.count, Mean: d.sum / float64(d.count), P50: d.quantile(0.5), P99: d.quantile(0.99), Max: d.max}
}
