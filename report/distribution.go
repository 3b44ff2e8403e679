package report

import (
	"fmt"
	"math"
	"slices"

	"weir/analysis"
	"weir/internal/unit"
	"weir/report/figure"
)

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
	c.Marks = []figure.Mark{{X: q.Mean, Name: "mean " + unit.Seconds(q.Mean)}, {X: q.P99, Name: "p99 " + unit.Seconds(q.P99)}}
	c.Desc = fmt.Sprintf("How many of %s took how long: the mean is %s, the median %s. %s",
		count(q.Count, what), unit.Seconds(q.Mean), unit.Seconds(q.P50), tail(q))
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

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return unit.Count(float64(n)) + " " + what + "s"
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
