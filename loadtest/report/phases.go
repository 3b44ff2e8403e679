package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// partCharts plots the four parts of all steps against their active clients, if workers are jobs of
// a batch system: clients come as slots get free, are all there, and leave.
func partCharts(f *analysis.Findings) []figure.Figure {
	if f.Parts == nil {
		return nil
	}
	y := yieldOf(f)
	total := func(p *analysis.Subinterval) float64 {
		if f.Measure == analysis.Rate {
			return p.Operations
		}
		return p.Throughput
	}
	each := func(p *analysis.Subinterval) float64 {
		if p.Clients <= 0 {
			return 0
		}
		return total(p) / p.Clients
	}
	all := []figure.Figure{
		partChart(f, "parttotal", "Parts of the steps: "+y.name+" against active clients", total, f.Parts.Total),
		partChart(f, "parteach", "Parts of the steps: share of each active client", each, f.Parts.Each),
	}
	all[0].Y.Name, all[1].Y.Name = y.name, y.name+" of each"
	return all
}

// partChart has one line for each of the four parts, over all steps, and the
// fourth-order function through all of them.
func partChart(f *analysis.Findings, id, title string, of func(*analysis.Subinterval) float64, fit *analysis.Fit) figure.Figure {
	c, y := figure.Figure{ID: id, Title: title}, yieldOf(f)
	var places []float64
	var points [4][]figure.Point
	for i := range f.Subintervals {
		p := &f.Subintervals[i]
		if n := p.Number - 1; n >= 0 && n < len(points) && p.Clients > 0 {
			places = append(places, math.Round(p.Clients))
			note := fmt.Sprintf("step %d, part %d: %s with %s", p.Step, p.Number, y.text(of(p)), clients(f, p.Clients))
			points[n] = append(points[n], figure.Point{X: p.Clients, Y: of(p), Note: note})
		}
	}
	for n, name := range []string{"1: ramp up", "2: steady", "3: steady", "4: cool down"} {
		slices.SortStableFunc(points[n], func(a, b figure.Point) int { return cmp.Compare(a.X, b.X) })
		c.Lines = append(c.Lines, figure.Line{Name: name, Color: n, Dots: true, Loose: true, Points: points[n]})
	}
	c.Desc = "Four equal parts of each step, at their mean number of active clients"
	if fit != nil {
		l := figure.Line{Name: "fitted poly4", Color: 4, Dash: true}
		for _, p := range fit.Drawn {
			l.Points = append(l.Points, figure.Point{X: p[0], Y: max(0, p[1])})
		}
		c.Lines = append(c.Lines, l)
	}
	c.X, c.Y = figure.LoadAxis("active "+f.Load(), f.Load(), places), y.axis(c.Lines)
	return c
}

const subintervalNote = "Four equal parts, from the first second of a step to its last; then what it gave while all its " +
	"clients were active, in the steady part of its measurement time, and in all, with the seconds in which clients came and left."

// subintervalSection shows each step in four equal parts, and also its results while all clients
// were active, in its steady part, and in the whole step.
func subintervalSection(f *analysis.Findings) section {
	s := section{Title: "Parts of the steps", Note: subintervalNote, PageOnly: f.Source != analysis.FromTable,
		table: table{Head: heads("step", "<part", "seconds", "clients", "throughput", "each client", "operations/s")}}
	row := func(step int, part string, w *analysis.Window) {
		if w == nil {
			return
		}
		each := 0.0
		if w.Clients > 0 {
			each = w.Throughput / w.Clients
		}
		s.row(false, fmt.Sprint(step), part, unit.Significant(w.Seconds), unit.Significant(w.Clients),
			unit.Bits(w.Throughput), unit.Bits(each), unit.Count(w.Operations))
	}
	for _, p := range f.Subintervals {
		row(p.Step, fmt.Sprintf("%d: %s", p.Number, p.Name),
			&analysis.Window{Seconds: p.Seconds, Clients: p.Clients, Throughput: p.Throughput, Operations: p.Operations})
		x := stepOf(f, p.Step)
		if p.Number != 4 || x == nil {
			continue
		}
		row(p.Step, "all clients active", x.AllActive)
		if x.SteadyPart != nil {
			row(p.Step, "steady part, after "+unit.Seconds(x.SteadyPart.From), &x.SteadyPart.Window)
		}
		row(p.Step, "in all", x.WithTail)
	}
	return s
}

func phaseChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	return chapter{ID: "phases", Title: "Phases of the steps", Charts: drawings(plots),
		Parts: filled(subintervalSection(f), partFitSection(f), phaseSection(f))}
}

// partFitSection lists the functions of the fourth order that are fitted to the parts.
func partFitSection(f *analysis.Findings) section {
	s := section{ID: "partfits", Title: "Functions fitted to the parts", PageOnly: true,
		table: table{Head: heads("<of", "<formula", "R2", "<maximum in the tested range")}}
	if f.Parts == nil {
		return s
	}
	for _, p := range []struct {
		name string
		fit  *analysis.Fit
	}{{"all clients", f.Parts.Total}, {"each client", f.Parts.Each}} {
		if p.fit != nil {
			s.row(false, p.name, p.fit.Formula, r2(p.fit.R2), maximum(f, p.fit))
		}
	}
	return s
}

func phaseSection(f *analysis.Findings) section {
	s := section{Title: "Phases", PageOnly: true,
		table: table{Head: heads("step", "<phase", "seconds", "clients", "throughput", "each client", "errors")}}
	for _, p := range f.Phases {
		s.row(false, fmt.Sprint(p.Step), p.Phase, unit.Significant(p.Seconds), unit.Significant(p.Clients),
			unit.Bits(p.Throughput), unit.Bits(p.PerClient), whole(p.Errors))
	}
	return s
}
