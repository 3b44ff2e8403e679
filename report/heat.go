package report

import (
	"fmt"
	"slices"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

// heatChart shows when operations ended and how long they took; nil if none
// ended well.
func heatChart(f *analysis.Findings, s *analysis.Series) *figure.Figure {
	h := s.Heat
	if h == nil || len(s.Points) == 0 {
		return nil
	}
	c := &figure.Figure{ID: "heat", Title: "Latency of all operations against time", X: figure.TimeAxis(end(s)), Zones: append(holds(f, s), outages(f, s)...)}
	most := h.Latency[len(h.Latency)-1]
	c.Y = figure.LogAxis("latency", figure.Seconds(most), h.Latency[0], most)
	c.Y.Duration = true
	c.Heat = &figure.Heat{X: h.At, Y: h.Latency, Rows: h.Counts, What: "operations"}
	c.Desc = heatWords(h)
	return c
}

// heatWords says what a heat shows: where most operations lie at first and at
// the end, and the slowest.
func heatWords(h *analysis.Heat) string {
	n := len(h.Counts)
	column := h.At[min(2, n)] - h.At[min(2, n)-1]
	text := fmt.Sprintf("Each column is %s of the run, each row a factor of %.2g in latency; the stronger a cell's color, the more operations ended there.",
		unit.Seconds(column), h.Latency[1]/h.Latency[0])
	part := max(1, n/10)
	first, last := heatMedian(h, 0, part), heatMedian(h, n-part, n)
	switch {
	case first <= 0 || last <= 0:
	case last > 1.3*first:
		text += fmt.Sprintf(" The middle rises from about %s at the start to about %s at the end.", unit.Seconds(first), unit.Seconds(last))
	case first > 1.3*last:
		text += fmt.Sprintf(" The middle falls from about %s at the start to about %s at the end.", unit.Seconds(first), unit.Seconds(last))
	default:
		text += fmt.Sprintf(" The middle is about %s at the start and at the end.", unit.Seconds(first))
	}
	at, row := slowest(h)
	text += fmt.Sprintf(" The slowest took up to %s and ended %s.", unit.Seconds(h.Latency[row+1]), stretchOf(h.At[at], h.At[at+1]))
	if empty := idle(h); empty != "" {
		text += " " + empty
	}
	return text
}

// stretchOf writes a stretch of the run.
func stretchOf(from, to float64) string {
	return fmt.Sprintf("between %s and %s after the start", unit.Seconds(from), unit.Seconds(to))
}

// heatMedian returns the latency in the middle of the operations of some
// columns, 0 if there are none.
func heatMedian(h *analysis.Heat, from, to int) float64 {
	sums := make([]int64, len(h.Latency)-1)
	total := int64(0)
	for _, column := range h.Counts[from:to] {
		for k, n := range column {
			sums[k] += n
			total += n
		}
	}
	left := (total + 1) / 2
	for k, n := range sums {
		if left -= n; left <= 0 && total > 0 {
			return (h.Latency[k] + h.Latency[k+1]) / 2
		}
	}
	return 0
}

// slowest returns the place of the first of the operations that took longest.
func slowest(h *analysis.Heat) (column, row int) {
	row = -1
	for i, counts := range h.Counts {
		for k := len(counts) - 1; k > row; k-- {
			if counts[k] > 0 {
				column, row = i, k
			}
		}
	}
	return column, max(row, 0)
}

// idle names the longest stretch in which no operation ended, if it is longer
// than a column.
func idle(h *analysis.Heat) string {
	longest, from, now := 0, 0, 0
	for i, counts := range h.Counts {
		now++
		if slices.Max(counts) > 0 {
			now = 0
		}
		if now > longest {
			longest, from = now, i+1-now
		}
	}
	if longest < 2 {
		return ""
	}
	return fmt.Sprintf("No operation ended %s.", stretchOf(h.At[from], h.At[from+longest]))
}
