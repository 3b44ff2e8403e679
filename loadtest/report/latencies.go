package report

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// heatChart shows the end times and the durations of operations; it returns nil if no operation
// succeeded.
func heatChart(f *analysis.Findings, s *analysis.Series) *figure.Figure {
	h := s.Heat
	if h == nil || len(s.Points) == 0 {
		return nil
	}
	c := &figure.Figure{ID: "heat", Title: "Latency of all operations against time", X: figure.TimeAxis(end(s)), Zones: zones(f, s)}
	most := h.Latency[len(h.Latency)-1]
	c.Y = figure.LogAxis("latency", figure.Seconds(most), h.Latency[0], most)
	c.Y.Duration, c.Y.Name = true, "latency"
	c.Heat = &figure.Heat{X: h.At, Y: h.Latency, Rows: h.Counts, What: "operations"}
	return c
}

// leastTail is the smallest share that a plot of the tail shows: p99.99.
const leastTail = 1e-4

// tailChart shows the share of operations that took longer than a given duration, step by step; it
// returns nil if no operation succeeded.
func tailChart(f *analysis.Findings, s *analysis.Series) *figure.Figure {
	c := &figure.Figure{ID: "tail", Title: "Tail of the latency"}
	least, most := math.Inf(1), 0.0
	for _, d := range tailed(f, s) {
		l := figure.Line{Name: at(f, d.step), Color: len(c.Lines), Points: tailPoints(d.of)}
		if len(l.Points) == 0 {
			continue
		}
		least, most = min(least, l.Points[0].X), max(most, l.Points[len(l.Points)-1].X)
		c.Lines = append(c.Lines, l)
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.X = figure.LogAxis("time", figure.Seconds(most), least, most)
	c.X.Duration = true
	c.Y = figure.LogAxis("% that took longer", figure.Percent(), leastTail, 1)
	c.Y.Name = "share"
	return c
}

type tailOf struct {
	step *analysis.Step
	of   *analysis.Distribution
}

// mostTails is the largest number of steps in a plot of tails: the palette has as many colors.
const mostTails = 6

// tailed selects steps evenly over the curve, including the first and the last.
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

// tailPoints returns the ends of bins with the share of operations that took longer. It leaves out
// points that cannot be distinguished from the previous point.
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

// mostColumns is the number of columns of a histogram.
const mostColumns = 48

// distributionCharts plots the durations of operations: against time, the tail, and the histograms
// of the best step and of the last step.
func distributionCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if s == nil {
		return nil
	}
	return slices.Concat(jobHistograms(f, s, true), those(heatChart(f, s), tailChart(f, s)), histograms(f, s, true))
}

// histograms returns the histograms of the best step and of the last step if shown is true, else
// the histograms of all other steps.
func histograms(f *analysis.Findings, s *analysis.Series, shown bool) []figure.Figure {
	var all []figure.Figure
	for _, d := range chosenDistributions(f, s.Latencies, shown) {
		all = append(all, distributionChart(d.of, fmt.Sprintf("distribution%d", d.of.Step), transfer(f)+" time with "+at(f, d.step), "operation"))
	}
	return all
}

// chosenDistributions returns the distributions of the best step and of the last step if shown is
// true, else the distributions of all other steps.
func chosenDistributions(f *analysis.Findings, from []analysis.Distribution, shown bool) []tailOf {
	best := bestStep(f)
	var all []tailOf
	for i := range from {
		d := &from[i]
		step := stepOf(f, d.Step)
		if step != nil && shown == (i == len(from)-1 || best != nil && best.Step == d.Step) {
			all = append(all, tailOf{step, d})
		}
	}
	return all
}

// distributionChart shows a histogram of the durations of things, whose name in the singular is the
// last parameter.
func distributionChart(d *analysis.Distribution, id, title, what string) figure.Figure {
	c := figure.Figure{ID: id, Title: title}
	q := &d.Quantiles
	c.X = distributionAxis(d)
	c.Columns = columns(d, &c.X)
	most := 0.0
	for _, col := range c.Columns {
		most = max(most, col.Y)
	}
	most *= 1.25 // room for the marks' names
	c.Y = scaledTo(most, decimal(" "+what+"s"))
	c.Y.Name = "count"
	c.Marks = []figure.Mark{{X: q.Mean, Name: "mean " + unit.Seconds(q.Mean)}, {X: q.P99, Name: "p99 " + unit.Seconds(q.P99)}}
	return c
}

// transfer returns the name of the timed things.
func transfer(f *analysis.Findings) string {
	switch things(f) {
	case "files/s":
		return "Transfer"
	case "requests/s":
		return "Request"
	}
	return "Operation"
}

// distributionAxis returns a linear axis from zero, unless the longest duration is so far above the
// others that these would be invisible.
func distributionAxis(d *analysis.Distribution) figure.Axis {
	const far = 8
	q := &d.Quantiles
	by := figure.Seconds(q.P50)
	least, most := d.Bins[0].From, d.Bins[len(d.Bins)-1].To
	if least > 0 && q.P50 > 0 && most > far*q.P50 {
		a := figure.LogAxis("time", by, least, most)
		a.Duration = true // no single unit suits the range from microseconds to seconds
		return a
	}
	return figure.LinearAxis("time ("+by.Unit+")", by, most)
}

// columns distributes the bins over columns of equal width on the axis. A bin that overlaps several
// columns is divided among them; otherwise the widths of bins and columns would interfere.
func columns(d *analysis.Distribution, x *figure.Axis) []figure.Column {
	edges := make([]float64, mostColumns+1)
	for i := range edges {
		share := float64(i) / mostColumns
		edges[i] = x.Min + (x.Max-x.Min)*share
		if x.Base > 1 {
			edges[i] = x.Min * math.Pow(x.Max/x.Min, share)
		}
	}
	all := make([]figure.Column, mostColumns)
	for i := range all {
		all[i].From, all[i].To = edges[i], edges[i+1]
	}
	place := func(v float64) float64 { return x.At(v) * mostColumns }
	for _, b := range d.Bins {
		from, to := place(b.From), place(b.To)
		if to-from < 1e-9 {
			all[min(int(from), mostColumns-1)].Y += float64(b.Count)
			continue
		}
		for i := int(from); i < mostColumns && float64(i) < to; i++ {
			inside := min(to, float64(i+1)) - max(from, float64(i))
			all[i].Y += float64(b.Count) * inside / (to - from)
		}
	}
	for i := range all {
		all[i].Note = fmt.Sprintf("%s to %s: %s", unit.Seconds(all[i].From), unit.Seconds(all[i].To), unit.Count(math.Round(all[i].Y)))
	}
	return all
}
