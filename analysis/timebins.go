package analysis

import "time"

// timeBins cuts time into stretches of equal width, of which there are never
// more than most from the first to the last that anything was put into: when
// there would be, each two become one. Stretches begin at whole seconds of the
// wall clock, as intervals do. A stretch is named by its number; width doubles
// where numbers are halved.
type timeBins struct {
	most   int64
	width  int64 // ns; 0: nothing was put in yet
	lo, hi int64
}

// place returns the number of the stretch that holds t, and how often the numbers
// that were given out before must be halved now.
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

// halve gives the entries of m the numbers that they have when stretches are
// doubled so often; entries of one number are joined.
func halve[V any](m map[int64]V, times int, join func(into, from V) V) map[int64]V {
	if times == 0 {
		return m
	}
	out := make(map[int64]V, len(m)/2+1)
	for number, v := range m {
		number >>= times
		if before, ok := out[number]; ok {
			v = join(before, v)
		}
		out[number] = v
	}
	return out
}
