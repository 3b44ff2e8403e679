package report

import (
	"fmt"
	"math"

	"weir/analysis"
	"weir/internal/unit"
)

// quantileLines are the usual quantiles of a duration.
func quantileLines(f *analysis.Findings, of func(*analysis.Step) *analysis.Quantiles) []line {
	var lines []line
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
		l.dash = q.name == "max"
		lines = append(lines, l)
	}
	return lines
}

// durationAxis is logarithmic if the lines span more than a factor of eight.
func durationAxis(lines []line) axis {
	least, most := lowest(lines), highest(lines)
	by := seconds(most)
	if least*by.factor < 0.005 {
		by = seconds(math.Sqrt(least * most)) // the unit of what lies in the middle
	}
	if least > 0 && most/least > 8 {
		return logAxis(by.unit, by, least, most)
	}
	by = seconds(most)
	return linearAxis(by.unit, by, most)
}

func latencyChart(f *analysis.Findings) *chart {
	return durationChart(f, "latency", "Latency against load", "Latency, from the start of an operation to its end",
		func(s *analysis.Step) *analysis.Quantiles { return s.Latency })
}

func firstByteChart(f *analysis.Findings) *chart {
	return durationChart(f, "firstbyte", "Time to first byte against load", "Time from the start of an operation to its first payload byte",
		func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte })
}

func redirectChart(f *analysis.Findings) *chart {
	return durationChart(f, "redirect", "Time to redirect against load", "Time from the start of an operation to where it was sent to a data server",
		func(s *analysis.Step) *analysis.Quantiles { return s.Redirect })
}

func durationChart(f *analysis.Findings, id, title, what string, of func(*analysis.Step) *analysis.Quantiles) *chart {
	c := chart{id: id, title: title, x: stepAxis(f), lines: quantileLines(f, of)}
	if highest(c.lines) <= 0 {
		return nil
	}
	c.y = durationAxis(c.lines)
	p50, p99 := c.lines[0].points, c.lines[2].points
	first, last := 0, len(p50)-1
	c.desc = fmt.Sprintf("%s: the median goes from %s to %s, the 99th percentile from %s to %s. The dashed line is the longest one seen.",
		what, unit.Seconds(p50[first].y), unit.Seconds(p50[last].y), unit.Seconds(p99[first].y), unit.Seconds(p99[last].y))
	return &c
}
