package report

import (
	"fmt"
	"math"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

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
