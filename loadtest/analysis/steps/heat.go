package steps

import (
	"math"
	"math/bits"
	"time"

	"weir/loadtest/measure"
)

// A Heat counts the successful operations by the time of their end and by their latency. The cells
// contain all successful operations, in every phase of the run. The width of columns is a power of
// two of seconds (the first and the last end with the run); rows have equal heights on a
// logarithmic axis.
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
	lookup      = 7  // number of bits after the leading bit that determine the row of a duration
)

// A heatSum counts the cells of a heat while intervals are read.
type heatSum struct {
	columns Binned[struct{}, heatColumn]
	row     [1 << lookup]uint8 // row in its octave, by the leading bits of a duration
}

// A heatColumn counts by row.
type heatColumn struct{ rows []int64 }

func newHeatSum() *heatSum {
	h := &heatSum{columns: NewBinned[struct{}](mostColumns, func(into, from *heatColumn) {
		for i, n := range from.rows {
			into.add(i, n)
		}
	})}
	for i := range h.row {
		h.row[i] = uint8(perOctave * math.Log2(1+float64(i)/float64(len(h.row))))
	}
	return h
}

// add counts the operations that ended in an interval around t.
func (h *heatSum) add(t time.Time, latency *measure.Histogram) {
	column := h.columns.At(struct{}{}, t)
	latency.Counters(func(shortest time.Duration, count int64) { column.add(h.rowOf(int64(shortest)), count) })
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

// Heat returns the heat of a run that began at start and lasted the given number of seconds, or nil
// if no operation succeeded.
func (h *heatSum) Heat(start time.Time, seconds float64) *Heat {
	bins, columns := &h.columns.TimeBins, h.columns.Of[struct{}{}]
	lo, hi := math.MaxInt, -1
	for _, c := range columns {
		for i, n := range c.rows {
			if n > 0 {
				lo, hi = min(lo, i), max(hi, i)
			}
		}
	}
	if hi < 0 {
		return nil
	}
	join := 1 // number of rows that are joined to one
	for hi/join-lo/join >= mostRows {
		join *= 2
	}
	first := lo / join
	out := &Heat{}
	for i := first; i <= hi/join+1; i++ {
		out.Latency = append(out.Latency, math.Exp2(float64(i*join)/perOctave)/1e9)
	}
	for number := bins.Lo; number <= bins.hi; number++ {
		counts := make([]int64, hi/join-first+1)
		if c := columns[number]; c != nil {
			for i, n := range c.rows {
				if n > 0 {
					counts[i/join-first] += n
				}
			}
		}
		out.At = append(out.At, bins.from(number, start))
		out.Counts = append(out.Counts, counts)
	}
	out.At = append(out.At, bins.from(bins.hi+1, start))
	n := len(out.At) - 1
	if out.At[1] > 0 {
		out.At[0] = max(out.At[0], 0)
	}
	if out.At[n-1] < seconds {
		out.At[n] = min(out.At[n], seconds)
	}
	return out
}
