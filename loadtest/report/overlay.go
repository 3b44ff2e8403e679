package report

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// A Side is one of several groups of runs that are shown on one plot. Every run has a curve.
type Side struct {
	Name string
	Runs []*analysis.Findings
}

// mostSides is the number of lines that can be distinguished on one plot.
const mostSides = 12

// Overlay makes figures with a line for each side: its throughput, the throughput of each client,
// the duration of operations, and the CPU efficiency; for jobs, their own figures come first.
// Points of several runs are means over them, with intervals if there are at least three runs.
// Sides whose kind of load differs from the kind of the first side are not drawn, and figures
// without known values are left out.
func Overlay(sides []Side) []figure.Figure {
	sides = slices.DeleteFunc(slices.Clone(sides), func(s Side) bool { return len(s.Runs) == 0 })
	if len(sides) == 0 {
		return nil
	}
	first := sides[0].Runs[0]
	var notes []string
	same := slices.DeleteFunc(slices.Clone(sides), func(s Side) bool { return s.Runs[0].Open() != first.Open() })
	if n := len(sides) - len(same); n > 0 {
		notes = append(notes, "Not drawn: "+say.Plural(n, "side")+" with another kind of load")
	}
	if n := len(same) - mostSides; n > 0 {
		same = same[:mostSides]
		notes = append(notes, fmt.Sprintf("The first %d of %d sides", mostSides, mostSides+n))
	}
	var all []figure.Figure
	for _, m := range quantities(first) {
		if c := m.chart(first, same); c != nil {
			c.Desc = joinNotes(append([]string{c.Desc}, notes...))
			c.Stamp = leastValid(same)
			all = append(all, *c)
		}
	}
	return all
}

// leastValid is the status of the least valid run.
func leastValid(sides []Side) string {
	order := []string{analysis.Valid, analysis.Unchecked, analysis.Suspect, analysis.Invalid}
	worst := 0
	for _, s := range sides {
		for _, f := range s.Runs {
			worst = max(worst, slices.Index(order, f.Validity.Status))
		}
	}
	return order[worst]
}

// A quantity is a figure of each step that is plotted against load.
type quantity struct {
	id, title, name, desc string // the title is without "against load"
	of                    func(f *analysis.Findings, s *analysis.Step) (float64, bool)
	own                   func(s *analysis.Step) (low, high *float64) // of a single run; nil: unknown
	axis                  func(lines []figure.Line) figure.Axis
	show                  func(float64) string
}

// quantities returns the quantities by which sides are compared.
func quantities(f *analysis.Findings) []quantity {
	type step = *analysis.Step
	latency := func(of func(*analysis.Quantiles) float64) func(*analysis.Findings, step) (float64, bool) {
		return func(_ *analysis.Findings, s step) (float64, bool) {
			if s.Latency == nil {
				return 0, false
			}
			return of(s.Latency), true
		}
	}
	return slices.Concat(jobQuantities(f), yieldQuantities(f), timeQuantities(f), []quantity{
		{id: "p50", title: "Median latency", name: "median latency",
			of: latency(func(q *analysis.Quantiles) float64 { return q.P50 }), axis: durationAxis, show: unit.Seconds},
		{id: "p99", title: "99th percentile of latency", name: "p99 latency",
			of: latency(func(q *analysis.Quantiles) float64 { return q.P99 }), axis: durationAxis, show: unit.Seconds},
		{id: "efficiency", title: "Efficiency", name: "efficiency",
			desc: "Throughput per client as a share of that at the lightest load of the same side",
			of:   efficiency, axis: percentAxis("%", 1), show: unit.Percent},
		{id: "cpu", title: "CPU of the servers", name: "CPU of the servers", desc: "Share of all cores",
			of: func(_ *analysis.Findings, s step) (float64, bool) { return known(s.ServerCPU) }, axis: percentAxis("%", 1), show: unit.Percent},
		{id: "clientcpu", title: "CPU of the clients", name: "CPU of the clients",
			desc: "Share of all cores",
			of:   func(_ *analysis.Findings, s step) (float64, bool) { return known(s.ClientCPU) }, axis: percentAxis("%", 1), show: unit.Percent},
		{id: "errors", title: "Failed operations", name: "failed", desc: "Share of all operations",
			of: func(_ *analysis.Findings, s step) (float64, bool) { return s.ErrorRatio, true }, axis: percentAxis("%", 0), show: unit.Percent},
	})
}

// timeQuantities returns the duration of tasks, and the share of it that is computing, in runs
// without jobs; the durations of jobs are among jobQuantities.
func timeQuantities(f *analysis.Findings) []quantity {
	if f.OfJobs() {
		return nil
	}
	return []quantity{
		{id: "walltime", title: "Mean wall clock time", name: "mean wall clock time",
			desc: "Of tasks, or of operations",
			of:   func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return wallClock(s) }, axis: wallAxis, show: unit.Seconds},
		{id: "cpuefficiency", title: "CPU efficiency of clients", name: "CPU efficiency",
			desc: clientEfficiency,
			of:   func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return cpuEfficiency(s) }, axis: percentAxis("%", 0),
			show: unit.Percent},
	}
}

// yieldQuantities returns throughput, or operations if no data is moved, of all clients together
// and of each client.
func yieldQuantities(f *analysis.Findings) []quantity {
	y := yieldOf(f)
	show := unit.Bits
	if f.Measure == analysis.Rate {
		show = perSecond
	}
	return []quantity{
		{id: "curve", title: say.Capital(y.name), name: y.name, show: show, axis: y.axis, own: y.ends,
			of: func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return y.of(s), true }},
		{id: "client", title: "Share of each client", name: y.name + " per client", show: show, axis: y.axis,
			of: func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return y.each(s), true }},
	}
}

// against draws the quantity of one run, with the intervals of means; it returns nil if the run has
// no values of it.
func (q *quantity) against(f *analysis.Findings) *figure.Figure {
	l := series(f, "measured", 0, func(s *analysis.Step) (float64, bool) { return q.of(f, s) }, q.show)
	i := 0
	for _, s := range steps(f) {
		if _, ok := q.of(f, s); ok {
			l.Points[i].Low, l.Points[i].High = q.own(s)
			i++
		}
	}
	c := against(f, q.id, q.title+" against load", q.name, q.axis, l)
	if c != nil {
		c.Desc = joinNotes([]string{q.desc, bars})
	}
	return c
}

// chart draws the quantity of all sides; it returns nil if no side has values of it.
func (q *quantity) chart(first *analysis.Findings, sides []Side) *figure.Figure {
	c := figure.Figure{ID: q.id, Title: q.title, Desc: q.desc}
	var loads []float64
	for i, side := range sides {
		l := q.line(side, i)
		if len(l.Points) == 0 {
			continue
		}
		c.Lines = append(c.Lines, l)
		for _, p := range l.Points {
			loads = append(loads, p.X)
		}
	}
	if highest(c.Lines) <= 0 {
		return nil
	}
	axis := stepAxis(first)
	c.X = figure.LoadAxis(axis.Label, axis.Unit, loads)
	c.Y = q.axis(c.Lines)
	c.Y.Name = q.name
	return &c
}

// line returns a line with a point for each load: the mean over the side's runs.
func (q *quantity) line(side Side, color int) figure.Line {
	l := figure.Line{Name: side.Name, Color: color % 6, Dots: true}
	values := map[float64][]float64{} // of runs, by load
	only := map[float64]*analysis.Step{}
	for _, f := range side.Runs {
		of := map[float64][]float64{} // of steps: a load may occur twice
		for i := range f.Curve {
			s := &f.Curve[i]
			if y, ok := q.of(f, s); ok {
				of[loadOf(f, s)] = append(of[loadOf(f, s)], y)
				only[loadOf(f, s)] = s
			}
		}
		for x, ys := range of {
			values[x] = append(values[x], stats.Mean(ys))
			if len(ys) > 1 {
				only[x] = nil
			}
		}
	}
	for x, ys := range values {
		p := figure.Point{X: x, Y: stats.Mean(ys)}
		switch {
		case len(ys) >= 3:
			if v, ok := stats.MeanInterval(ys); ok {
				p.Low, p.High = new(max(0, v.Low)), &v.High
			}
		case len(side.Runs) == 1 && q.own != nil && only[x] != nil:
			p.Low, p.High = q.own(only[x])
		}
		p.Note = fmt.Sprintf("%g: %s %s", x, side.Name, q.show(p.Y))
		l.Points = append(l.Points, p)
	}
	slices.SortFunc(l.Points, func(a, b figure.Point) int { return cmp.Compare(a.X, b.X) })
	return l
}
