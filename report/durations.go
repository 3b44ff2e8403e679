package report

import (
	"fmt"
	"math"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

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
