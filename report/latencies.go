package report

import (
	"fmt"
	"math"
	"slices"

	"weir/analysis"
	"weir/internal/unit"
	"weir/report/figure"
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

// leastTail is the smallest share that a plot of the tail shows: p99.99.
const leastTail = 1e-4

// tailChart shows which share of operations took longer than so long, step by
// step; nil if none ended well.
func tailChart(f *analysis.Findings, s *analysis.Series) *figure.Figure {
	c := &figure.Figure{ID: "tail", Title: "Tail of the latency"}
	least, most := math.Inf(1), 0.0
	var said []string
	for _, d := range tailed(f, s) {
		l := figure.Line{Name: at(f, d.step), Color: len(c.Lines), Points: tailPoints(d.of)}
		if len(l.Points) == 0 {
			continue
		}
		least, most = min(least, l.Points[0].X), max(most, l.Points[len(l.Points)-1].X)
		c.Lines = append(c.Lines, l)
		q := &d.of.Quantiles
		said = append(said, fmt.Sprintf("With %s 1 in 100 took longer than %s and 1 in 1000 longer than %s.", l.Name, unit.Seconds(q.P99), unit.Seconds(q.P999)))
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.X = figure.LogAxis("time", figure.Seconds(most), least, most)
	c.X.Duration = true
	c.Y = figure.LogAxis("% that took longer", figure.Percent(), leastTail, 1)
	c.Desc = "Share of the operations that took longer than the time on the axis, down to 1 in 10,000 (p99.99): the further right a line reaches, the longer the tail. " + said[0]
	if n := len(said); n > 1 {
		c.Desc += " " + said[n-1]
	}
	return c
}

type tailOf struct {
	step *analysis.Step
	of   *analysis.Distribution
}

// mostTails is how many steps a plot of tails shows: the palette has as many colors.
const mostTails = 6

// tailed picks steps evenly over the curve, the first and the last among them.
func tailed(f *analysis.Findings, s *analysis.Series) []tailOf {
	var all []tailOf
	for i := range s.Latencies {
		if step := stepOf(f, s.Latencies[i].Step); step != nil {
			all = append(all, tailOf{step, &s.Latencies[i]})
		}
	}
	if n := len(all); n > mostTails {
		for i := range mostTails {
			all[i] = all[i*(n-1)/(mostTails-1)]
		}
		all = all[:mostTails]
	}
	return all
}

// stepOf returns the step with that number, nil if it is not in the curve.
func stepOf(f *analysis.Findings, number int) *analysis.Step {
	for i := range f.Curve {
		if f.Curve[i].Step == number {
			return &f.Curve[i]
		}
	}
	return nil
}

// tailPoints are the ends of bins with the share that took longer; those that
// could not be told from the one before are left out.
func tailPoints(d *analysis.Distribution) []figure.Point {
	total := int64(0)
	for _, b := range d.Bins {
		total += b.Count
	}
	var points []figure.Point
	left, last := total, math.Inf(1)
	for i, b := range d.Bins {
		if i == 0 && b.From > 0 {
			points = append(points, figure.Point{X: b.From, Y: 1})
		}
		left -= b.Count
		y := float64(left) / float64(total)
		if y < leastTail {
			break
		}
		if y < 0.98*last || i == 0 {
			points = append(points, figure.Point{X: b.To, Y: y})
			last = y
		}
	}
	return points
}

// quantileLines are the usual quantiles of a duration.
func quantileLines(f *analysis.Findings, of func(*analysis.Step) *analysis.Quantiles) []figure.Line {
	var lines []figure.Line
	for i, q := range []struct {
		name string
		get  func(*analysis.Quantiles) float64
	}{
		{"p50", func(q *analysis.Quantiles) float64 { return q.P50 }},
		{"p90", func(q *analysis.Quantiles) float64 { return q.P90 }},
		{"p99", func(q *analysis.Quantiles) float64 { return q.P99 }},
		{"max", func(q *analysis.Quantiles) float64 { return q.Max }},
	} {
		l := series(f, q.name, i, func(s *analysis.Step) (float64, bool) {
			if of(s) == nil {
				return 0, false
			}
			return q.get(of(s)), true
		}, unit.Seconds)
		l.Dash = q.name == "max"
		lines = append(lines, l)
	}
	return lines
}

// durationAxis is logarithmic if the lines span more than a factor of eight.
func durationAxis(lines []figure.Line) figure.Axis {
	least, most := lowest(lines), highest(lines)
	by := figure.Seconds(most)
	if least*by.Factor < 0.005 {
		by = figure.Seconds(math.Sqrt(least * most)) // the unit of what lies in the middle
	}
	if least > 0 && most/least > 8 {
		return figure.LogAxis(by.Unit, by, least, most)
	}
	return scaledTo(most, figure.Seconds)
}

func latencyChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "latency", "Latency against load", "Latency, from the start of an operation to its end",
		func(s *analysis.Step) *analysis.Quantiles { return s.Latency })
}

func firstByteChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "firstbyte", "Time to first byte against load", "Time from the start of an operation to its first payload byte",
		func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte })
}

func redirectChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "redirect", "Time to redirect against load", "Time from the start of an operation to where it was sent to a data server",
		func(s *analysis.Step) *analysis.Quantiles { return s.Redirect })
}

func durationChart(f *analysis.Findings, id, title, what string, of func(*analysis.Step) *analysis.Quantiles) *figure.Figure {
	c := figure.Figure{ID: id, Title: title, X: stepAxis(f), Lines: quantileLines(f, of)}
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = durationAxis(c.Lines)
	p50, p99 := c.Lines[0].Points, c.Lines[2].Points
	first, last := 0, len(p50)-1
	most := unit.Seconds(highest(c.Lines))
	if p50[first].X == p50[last].X {
		c.Desc = fmt.Sprintf("%s: with %s the median is %s, the 99th percentile %s; the longest one took %s.",
			what, clients(f, p50[last].X), unit.Seconds(p50[last].Y), unit.Seconds(p99[last].Y), most)
		return &c
	}
	c.Desc = fmt.Sprintf("%s: from %s to %s the median %s, the 99th percentile %s. The line max is the longest one seen, at most %s.",
		what, clients(f, p50[first].X), clients(f, p50[last].X), goes(unit.Seconds(p50[first].Y), unit.Seconds(p50[last].Y)),
		goes(unit.Seconds(p99[first].Y), unit.Seconds(p99[last].Y)), most)
	return &c
}
