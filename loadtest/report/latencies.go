package report

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// heatChart shows when operations ended and how long they took; nil if none
// ended well.
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
	c.Desc = heatWords(h)
	return c
}

// heatWords says what a heat shows: where most operations lie at first and at
// the end, and the slowest.
func heatWords(h *analysis.Heat) string {
	n := len(h.Counts)
	column := h.At[min(2, n)] - h.At[min(2, n)-1]
	text := fmt.Sprintf("Each column is %s of the run, each row a factor of %.2g in latency; the stronger a cell's color, "+
		"the more operations ended there.", unit.Seconds(column), h.Latency[1]/h.Latency[0])
	part := max(1, n/10)
	first, last := heatMedian(h, 0, part), heatMedian(h, n-part, n)
	switch {
	case first <= 0 || last <= 0:
	case max(first, last) > 1.3*min(first, last):
		way := map[bool]string{true: "rises", false: "falls"}[last > first]
		text += fmt.Sprintf(" The middle %s from about %s at the start to about %s at the end.", way, unit.Seconds(first), unit.Seconds(last))
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
		said = append(said, fmt.Sprintf("With %s 1 in 100 took longer than %s and 1 in 1000 longer than %s.",
			l.Name, unit.Seconds(q.P99), unit.Seconds(q.P999)))
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.X = figure.LogAxis("time", figure.Seconds(most), least, most)
	c.X.Duration = true
	c.Y = figure.LogAxis("% that took longer", figure.Percent(), leastTail, 1)
	c.Y.Name = "share"
	c.Desc = "Share of the operations that took longer than the time on the axis, down to 1 in 10,000 (p99.99): " +
		"the further right a line reaches, the longer the tail. " + said[0]
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

// tailPoints are the ends of bins with the share that took longer; those that
// could not be distinguished from the one before are left out.
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

// mostColumns is how many columns a histogram has.
const mostColumns = 48

// distributionCharts plots how long operations took: against time, the tail,
// and the histograms of the best step and of the last one.
func distributionCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if s == nil {
		return nil
	}
	return slices.Concat(jobHistograms(f, s, true), those(heatChart(f, s), tailChart(f, s)), histograms(f, s, true))
}

// histograms are those of the best step and of the last one, or those of all
// others.
func histograms(f *analysis.Findings, s *analysis.Series, shown bool) []figure.Figure {
	var all []figure.Figure
	for _, d := range chosenDistributions(f, s.Latencies, shown) {
		all = append(all, distributionChart(d.of, fmt.Sprintf("distribution%d", d.of.Step), transfer(f)+" time with "+at(f, d.step), "operation"))
	}
	return all
}

// chosenDistributions are those of the best step and of the last one, or those
// of all others.
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

// distributionChart shows how many of what took how long.
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
	c.Desc = fmt.Sprintf("How many of %s took how long: the mean is %s, the median %s. %s",
		counted(q.Count, what), unit.Seconds(q.Mean), unit.Seconds(q.P50), tail(q))
	if c.X.Base > 1 {
		c.Desc += " The axis of time is logarithmic, columns are equally wide on it."
	}
	return c
}

// transfer names what is timed.
func transfer(f *analysis.Findings) string {
	switch things(f) {
	case "files/s":
		return "Transfer"
	case "requests/s":
		return "Request"
	}
	return "Operation"
}

// tail says in words how far the slowest are from the usual.
func tail(q *analysis.Quantiles) string {
	shape := "The tail is short"
	switch r := q.P99 / q.P50; {
	case q.P50 <= 0:
		shape = "The tail"
	case r > 10:
		shape = "The tail is very long"
	case r > 3:
		shape = "The tail is long"
	case r > 1.5:
		shape = "The tail is moderate"
	}
	return fmt.Sprintf("%s: 1 in 100 took longer than %s, 1 in 1000 longer than %s, the longest %s.",
		shape, unit.Seconds(q.P99), unit.Seconds(q.P999), unit.Seconds(q.Max))
}

// distributionAxis is linear from zero, unless the longest took so much longer
// than most that these would not be seen.
func distributionAxis(d *analysis.Distribution) figure.Axis {
	const far = 8
	q := &d.Quantiles
	by := figure.Seconds(q.P50)
	least, most := d.Bins[0].From, d.Bins[len(d.Bins)-1].To
	if least > 0 && q.P50 > 0 && most > far*q.P50 {
		a := figure.LogAxis("time", by, least, most)
		a.Duration = true // from microseconds to seconds there is no unit that suits all
		return a
	}
	return figure.LinearAxis("time ("+by.Unit+")", by, most)
}

// columns spreads the bins over columns of equal width on the axis. A bin that
// lies in several columns is divided among them, or they would beat against
// the bins' own widths.
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
