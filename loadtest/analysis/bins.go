package analysis

import "time"

// timeBins cuts time into stretches of equal width. From the first to the last that is used there are never more than
// most: each time there would be, pairs of stretches are joined. Stretches begin at whole seconds of the wall clock,
// as intervals do, and are numbered: joining halves the numbers and doubles width.
type timeBins struct {
	most   int64
	width  int64 // ns; 0: nothing was put in yet
	lo, hi int64
}

// place returns the number of the stretch that holds t, and how often the numbers that were returned before must be
// halved now.
func (b *timeBins) place(t time.Time) (number int64, halved int) {
	if b.width == 0 {
		b.width = int64(time.Second)
		b.lo = floor(t.UnixNano(), b.width)
		b.hi = b.lo
	}
	number = floor(t.UnixNano(), b.width)
	b.lo, b.hi = min(b.lo, number), max(b.hi, number)
	for b.hi-b.lo >= b.most {
		b.width *= 2
		b.lo, b.hi, number = b.lo>>1, b.hi>>1, number>>1
		halved++
	}
	return number, halved
}

// from returns when stretch number begins, in seconds from start.
func (b *timeBins) from(number int64, start time.Time) float64 {
	return float64(number*b.width-start.UnixNano()) / 1e9
}

// floor divides and rounds down.
func floor(x, by int64) int64 {
	if x < 0 {
		return -((-x + by - 1) / by)
	}
	return x / by
}

// binned keeps a V for each stretch of time and each key, in memory that does not grow with the length of the run.
type binned[K comparable, V any] struct {
	timeBins
	of   map[K]map[int64]*V
	join func(into, from *V)

	last   *V // of lastKey in stretch number
	key    K
	number int64
}

func newBinned[K comparable, V any](most int64, join func(into, from *V)) binned[K, V] {
	return binned[K, V]{timeBins: timeBins{most: most}, of: map[K]map[int64]*V{}, join: join}
}

// at returns the value of key in the stretch that holds t.
func (b *binned[K, V]) at(key K, t time.Time) *V {
	number, halved := b.place(t)
	if halved > 0 {
		for k, m := range b.of {
			b.of[k] = b.halve(m, halved)
		}
		b.last = nil
	}
	if b.last == nil || key != b.key || number != b.number {
		m := b.of[key]
		b.last, b.key, b.number = entryOf(&m, number), key, number
		b.of[key] = m
	}
	return b.last
}

// halve renumbers the values of m after pairs of stretches were joined so often.
func (b *binned[K, V]) halve(m map[int64]*V, times int) map[int64]*V {
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

// covered returns how many seconds of each stretch were measured, and where their middle lies.
func (d *data) covered(b *timeBins, start time.Time) (spans, middles []float64) {
	spans = d.perStretch(b, func(*second, time.Time) float64 { return 1 })
	middles = d.perStretch(b, func(_ *second, middle time.Time) float64 { return middle.Sub(start).Seconds() })
	for i := range middles {
		middles[i] = ratio(middles[i], spans[i])
	}
	return spans, middles
}

// perStretch integrates of over the time that each stretch has.
func (d *data) perStretch(b *timeBins, of func(x *second, middle time.Time) float64) []float64 {
	if b.width == 0 {
		return nil
	}
	all := make([]float64, b.hi-b.lo+1)
	for x := range each(d.seconds) {
		middle := x.start.Add(duration(x.seconds / 2))
		if k := floor(middle.UnixNano(), b.width) - b.lo; k >= 0 && k < int64(len(all)) {
			all[k] += of(x, middle) * x.seconds
		}
	}
	return all
}
