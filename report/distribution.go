package report

import (
	"fmt"
	"math"
	"strings"

	"weir/analysis"
	"weir/internal/unit"
)

// A column is a bar of a histogram.
type column struct {
	from, to, y float64
	note        string
}

// mostColumns is how many columns a histogram has.
const mostColumns = 48

// distributionCharts plots how long operations took, in the best step and in
// the last one.
func distributionCharts(f *analysis.Findings, s *analysis.Series) []chart {
	if s == nil {
		return nil
	}
	best := bestStep(f)
	var all []chart
	for i := range s.Latencies {
		d := &s.Latencies[i]
		last := i == len(s.Latencies)-1
		for k := range f.Curve {
			if f.Curve[k].Step == d.Step && (last || best != nil && best.Step == d.Step) {
				all = append(all, distributionChart(f, &f.Curve[k], d))
			}
		}
	}
	return all
}

func distributionChart(f *analysis.Findings, s *analysis.Step, d *analysis.Distribution) chart {
	c := chart{id: fmt.Sprintf("distribution%d", d.Step), title: transfer(f) + " time with " + at(f, s)}
	q := &d.Quantiles
	c.x = distributionAxis(d)
	c.columns = columns(d, &c.x)
	most := 0.0
	for _, col := range c.columns {
		most = max(most, col.y)
	}
	most *= 1.25 // room for the marks' names
	by := decimal(most, " operations")
	c.y = linearAxis(strings.TrimSpace(by.unit), by, most)
	c.marks = []mark{{q.Mean, "mean " + unit.Seconds(q.Mean)}, {q.P99, "p99 " + unit.Seconds(q.P99)}}
	c.desc = fmt.Sprintf("How many of %s took how long: the mean is %s, the median %s. %s",
		count(q.Count, "operation"), unit.Seconds(q.Mean), unit.Seconds(q.P50), tail(q))
	if c.x.base > 1 {
		c.desc += " The axis of time is logarithmic, columns are equally wide on it."
	}
	return c
}

// transfer names what is timed.
func transfer(f *analysis.Findings) string {
	if things(f) == "files/s" {
		return "Transfer"
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
func distributionAxis(d *analysis.Distribution) axis {
	const far = 8
	q := &d.Quantiles
	by := seconds(q.P50)
	least, most := d.Bins[0].From, d.Bins[len(d.Bins)-1].To
	if least > 0 && q.P50 > 0 && most > far*q.P50 {
		a := logAxis("time", by, least, most)
		a.text = unit.Seconds // from microseconds to seconds there is no unit that suits all
		return a
	}
	return linearAxis("time ("+by.unit+")", by, most)
}

// columns spreads the bins over columns of equal width on the axis. A bin that
// lies in several columns is divided among them, or they would beat against
// the bins' own widths.
func columns(d *analysis.Distribution, x *axis) []column {
	edges := make([]float64, mostColumns+1)
	for i := range edges {
		share := float64(i) / mostColumns
		edges[i] = x.min + (x.max-x.min)*share
		if x.base > 1 {
			edges[i] = x.min * math.Pow(x.max/x.min, share)
		}
	}
	all := make([]column, mostColumns)
	for i := range all {
		all[i].from, all[i].to = edges[i], edges[i+1]
	}
	place := func(v float64) float64 { return x.at(v) * mostColumns }
	for _, b := range d.Bins {
		from, to := place(b.From), place(b.To)
		if to-from < 1e-9 {
			all[min(int(from), mostColumns-1)].y += float64(b.Count)
			continue
		}
		for i := int(from); i < mostColumns && float64(i) < to; i++ {
			inside := min(to, float64(i+1)) - max(from, float64(i))
			all[i].y += float64(b.Count) * inside / (to - from)
		}
	}
	for i := range all {
		all[i].note = fmt.Sprintf("%s to %s: %s", unit.Seconds(all[i].from), unit.Seconds(all[i].to), unit.Count(math.Round(all[i].y)))
	}
	return all
}
