package analysis

import (
	"math"
	"math/bits"
	"time"

	"weir/measure"
)

// A Heat is how many operations ended well when, and how long they took. All
// cells together are all that ended well, in every phase of the run. Columns are
// a power of two of seconds wide (the first and the last end with the run); rows
// are equally high on a logarithmic axis.
type Heat struct {
	At      []float64 // ascending edges of the columns, seconds from Series.Start
	Latency []float64 // ascending edges of the rows, seconds, within 1%
	Counts  [][]int64 // by column, then by row
}

// Bounds of a heat's size.
const (
	mostColumns = 240
	mostRows    = 48
	perOctave   = 16 // rows for each doubling of the latency, before they are joined
)

// A heatSum gathers a heat while intervals are read. Its memory does not grow
// with the run.
type heatSum struct {
	bins    timeBins
	columns map[int64]*heatColumn
	last    *heatColumn // of the stretch with number
	number  int64
	row     [1 << lookup]uint8 // row in its octave, by the leading bits of a duration
}

// lookup is how many bits below the first decide which row a duration is in.
const lookup = 7

// A heatColumn counts by row.
type heatColumn struct{ rows []int64 }

func newHeatSum() *heatSum {
	h := &heatSum{bins: timeBins{most: mostColumns}, columns: map[int64]*heatColumn{}}
	for i := range h.row {
		h.row[i] = uint8(perOctave * math.Log2(1+float64(i)/float64(len(h.row))))
	}
	return h
}

// add counts the operations that ended in an interval around t.
func (h *heatSum) add(t time.Time, latency *measure.Histogram) {
	number, halved := h.bins.place(t)
	if halved > 0 {
		h.columns = halve(h.columns, halved, joinColumns)
		h.last = nil
	}
	if h.last == nil || number != h.number {
		h.number, h.last = number, h.columns[number]
		if h.last == nil {
			h.last = &heatColumn{}
			h.columns[number] = h.last
		}
	}
	column := h.last
	latency.Counters(func(shortest time.Duration, count int64) { column.add(h.rowOf(int64(shortest)), count) })
}

func joinColumns(into, from *heatColumn) *heatColumn {
	for i, n := range from.rows {
		if n > 0 {
			into.add(i, n)
		}
	}
	return into
}

func (c *heatColumn) add(row int, count int64) {
	for row >= len(c.rows) {
		c.rows = append(c.rows, make([]int64, row+1-len(c.rows))...)
	}
	c.rows[row] += count
}

// rowOf returns the row of a duration in ns.
func (h *heatSum) rowOf(ns int64) int {
	ns = max(ns, 1)
	octave := bits.Len64(uint64(ns)) - 1
	lead := uint64(ns) << (63 - octave) >> (63 - lookup) & (1<<lookup - 1)
	return octave*perOctave + int(h.row[lead])
}

// heat turns the sums into a heat of a run that lasted from start for so many
// seconds; nil if no operation ended well.
func (h *heatSum) heat(start time.Time, seconds float64) *Heat {
	lo, hi := math.MaxInt, -1
	for _, c := range h.columns {
		for i, n := range c.rows {
			if n > 0 {
				lo, hi = min(lo, i), max(hi, i)
			}
		}
	}
	if hi < 0 {
		return nil
	}
	join := 1 // rows that become one
	for hi/join-lo/join >= mostRows {
		join *= 2
	}
	first := lo / join
	out := &Heat{}
	for i := first; i <= hi/join+1; i++ {
		out.Latency = append(out.Latency, math.Exp2(float64(i*join)/perOctave)/1e9)
	}
	for number := h.bins.lo; number <= h.bins.hi; number++ {
		counts := make([]int64, hi/join-first+1)
		if c := h.columns[number]; c != nil {
			for i, n := range c.rows {
				if n > 0 {
					counts[i/join-first] += n
				}
			}
		}
		out.At = append(out.At, h.bins.from(number, start))
		out.Counts = append(out.Counts, counts)
	}
	out.At = append(out.At, h.bins.from(h.bins.hi+1, start))
	n := len(out.At) - 1
	if out.At[1] > 0 {
		out.At[0] = max(out.At[0], 0)
	}
	if out.At[n-1] < seconds {
		out.At[n] = min(out.At[n], seconds)
	}
	return out
}

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
