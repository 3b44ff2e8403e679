package steps

import (
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
)

// TimeBins divides time into bins of equal width. The range from the first to the last used bin has
// at most most bins: beyond that, pairs of bins are joined. Bins begin at whole seconds of the wall
// clock, as intervals do, and are numbered: joining halves the numbers and doubles the width.
type TimeBins struct {
	most   int64
	Width  int64 // ns; 0: empty
	Lo, hi int64
}

// place returns the number of the bin that contains t, and the number of times that previously
// returned numbers must be halved now.
func (b *TimeBins) place(t time.Time) (number int64, halved int) {
	if b.Width == 0 {
		b.Width = int64(time.Second)
		b.Lo = Floor(t.UnixNano(), b.Width)
		b.hi = b.Lo
	}
	number = Floor(t.UnixNano(), b.Width)
	b.Lo, b.hi = min(b.Lo, number), max(b.hi, number)
	for b.hi-b.Lo >= b.most {
		b.Width *= 2
		b.Lo, b.hi, number = b.Lo>>1, b.hi>>1, number>>1
		halved++
	}
	return number, halved
}

// from returns the start of bin number, in seconds from start.
func (b *TimeBins) from(number int64, start time.Time) float64 {
	return float64(number*b.Width-start.UnixNano()) / 1e9
}

// Floor divides and rounds down.
func Floor(x, by int64) int64 {
	if x < 0 {
		return -((-x + by - 1) / by)
	}
	return x / by
}

// Binned stores a V for each bin of time and each key, in memory that does not grow with the length
// of the run.
type Binned[K comparable, V any] struct {
	TimeBins
	Of   map[K]map[int64]*V
	join func(into, from *V)

	last   *V // of key in bin number
	key    K
	number int64
}

// NewBinned returns a Binned with at most the given number of bins. join adds the value of a bin to
// the value of its neighbor.
func NewBinned[K comparable, V any](most int64, join func(into, from *V)) Binned[K, V] {
	return Binned[K, V]{TimeBins: TimeBins{most: most}, Of: map[K]map[int64]*V{}, join: join}
}

// At returns the value of key in the bin that contains t.
func (b *Binned[K, V]) At(key K, t time.Time) *V {
	number, halved := b.place(t)
	if halved > 0 {
		for k, m := range b.Of {
			b.Of[k] = b.halve(m, halved)
		}
		b.last = nil
	}
	if b.last == nil || key != b.key || number != b.number {
		m := b.Of[key]
		b.last, b.key, b.number = basics.EntryOf(&m, number), key, number
		b.Of[key] = m
	}
	return b.last
}

// halve renumbers the values of m after pairs of bins were joined the given number of times.
func (b *Binned[K, V]) halve(m map[int64]*V, times int) map[int64]*V {
	out := make(map[int64]*V, len(m)/2+1)
	for number, v := range m {
		if before := out[number>>times]; before != nil {
			b.join(before, v)
			continue
		}
		out[number>>times] = v
	}
	return out
}

// Covered returns the number of measured seconds of each bin, and the middle of these seconds.
func (d *Run) Covered(b *TimeBins, start time.Time) (spans, middles []float64) {
	spans = d.PerStretch(b, func(*Second, time.Time) float64 { return 1 })
	middles = d.PerStretch(b, func(_ *Second, middle time.Time) float64 { return middle.Sub(start).Seconds() })
	for i := range middles {
		middles[i] = stats.Ratio(middles[i], spans[i])
	}
	return spans, middles
}

// PerStretch returns the integral of of over the measured time in each bin.
func (d *Run) PerStretch(b *TimeBins, of func(x *Second, middle time.Time) float64) []float64 {
	if b.Width == 0 {
		return nil
	}
	all := make([]float64, b.hi-b.Lo+1)
	for x := range basics.Each(d.Seconds) {
		middle := x.Start.Add(basics.Duration(x.Seconds / 2))
		if k := Floor(middle.UnixNano(), b.Width) - b.Lo; k >= 0 && k < int64(len(all)) {
			all[k] += of(x, middle) * x.Seconds
		}
	}
	return all
}
