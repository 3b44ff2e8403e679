package report

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// mostBackends is the largest number of backends that one plot distinguishes: there are as many
// colors.
const mostBackends = 6

// backendCharts plots the backends beside each other, and stacked to their sum.
func backendCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if !balanced(f) {
		return nil
	}
	type backend = *analysis.BackendFigure
	count := func(lines []figure.Line) figure.Axis { return scaled(lines, decimal("")) }
	all := those(backendStack(f), imbalanceChart(f))
	for _, q := range []struct {
		id, what, name, label string
		axis                  func([]figure.Line) figure.Axis
		text                  func(float64) string
		of                    func(backend) *float64
	}{
		{"backendsessions", "Sessions", "sessions", "sessions", count, unit.Significant,
			func(x backend) *float64 { return x.Sessions }},
		{"backendcpu", "CPU", "CPU", "% of its cores", percentAxis("", 0), unit.Percent,
			func(x backend) *float64 { return x.CPU }},
		{"backendcores", "Cores", "CPU time", "cores", count, unit.Significant,
			func(x backend) *float64 { return x.Cores }},
		{"backendnet", "Network", "network traffic", "% of its speed", percentAxis("", 0), unit.Percent,
			func(x backend) *float64 { return x.Network }},
	} {
		lines, known := backendLines(f, q.of, q.text)
		c := against(f, q.id, q.what+" of each backend against load", q.name, q.axis, lines...)
		if c == nil {
			continue
		}
		if known > len(lines) {
			c.Title += fmt.Sprintf(" (%d of %d)", len(lines), known)
		}
		c.Y.Label = q.label
		all = append(all, *c)
	}
	if s == nil || len(s.Backends) == 0 || len(s.Backends) != len(f.Balance.Backends) || len(s.Points) == 0 {
		return all
	}
	return append(all, overTime(f, s, backendTimes(f, s))...)
}

// A layer is one backend, or several, of a stack.
type layer struct {
	name   string
	places []int // in Balance.Backends
}

// layers lists the backends in the order of the stack; if there are many, the smaller backends form
// one layer.
func layers(f *analysis.Findings) []layer {
	var all []layer
	for i := range f.Balance.Backends {
		all = append(all, layer{say.Plain(f.Balance.Backends[i].Name), []int{i}})
	}
	if len(all) <= mostBackends {
		return all
	}
	slices.SortStableFunc(all, func(a, b layer) int {
		return cmp.Compare(f.Balance.Backends[b.places[0]].Share, f.Balance.Backends[a.places[0]].Share)
	})
	rest := layer{name: fmt.Sprintf("%d others", len(all)-mostBackends+1)}
	for _, l := range all[mostBackends-1:] {
		rest.places = append(rest.places, l.places...)
	}
	return append(all[:mostBackends-1], rest)
}

// stack draws layers on top of each other: a line at the upper end of each, and its area. at
// returns the position of column k on the x axis and the value of each backend there.
func stack(f *analysis.Findings, columns int, at func(k int) (x float64, of func(place int) float64)) []figure.Line {
	var lines []figure.Line
	below := make([]float64, columns)
	for i, l := range layers(f) {
		line := figure.Line{Name: l.name, Color: i}
		if i > 0 {
			line.Name = "+ " + l.name // its values are sums of this backend and the backends before it
		}
		for k := range columns {
			x, of := at(k)
			low := below[k]
			for _, place := range l.places {
				below[k] += max(0, of(place))
			}
			high := below[k]
			line.Points = append(line.Points, figure.Point{X: x, Y: high, Low: &low, High: &high})
		}
		lines = append(lines, line)
	}
	return lines
}

// backendAxis returns the axis of the quantity from which shares are computed.
func backendAxis(f *analysis.Findings, lines []figure.Line) figure.Axis {
	if f.Balance.Source == analysis.BySessions {
		a := scaled(lines, decimal(""))
		a.Name, a.Label = "sessions", "sessions"
		return a
	}
	a := bitsAxis(lines)
	a.Name = "throughput"
	return a
}

// byLoad lists the steps whose backends are known, the lightest first.
func byLoad(f *analysis.Findings) []*analysis.Step {
	all := slices.DeleteFunc(steps(f), func(s *analysis.Step) bool { return len(s.Backends) != len(f.Balance.Backends) })
	slices.SortStableFunc(all, func(a, b *analysis.Step) int { return cmp.Compare(loadOf(f, a), loadOf(f, b)) })
	return all
}

// backendStack shows the throughput of each backend, stacked to the sum, against load.
func backendStack(f *analysis.Findings) *figure.Figure {
	steps := byLoad(f)
	if len(steps) < 2 {
		return nil
	}
	c := &figure.Figure{ID: "backendload", Title: "What each backend gave, stacked to the sum, against load", X: stepAxis(f)}
	c.Lines = stack(f, len(steps), func(k int) (float64, func(int) float64) {
		return loadOf(f, steps[k]), func(i int) float64 { return backendAmount(&steps[k].Backends[i]) }
	})
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = backendAxis(f, c.Lines)
	return c
}

// imbalanceChart shows the imbalance beside the imbalance of random choices.
func imbalanceChart(f *analysis.Findings) *figure.Figure {
	line := func(name string, color int, of func(*analysis.StepBalance) float64) figure.Line {
		l := series(f, name, color, func(s *analysis.Step) (float64, bool) {
			if s.Balance == nil {
				return 0, false
			}
			return of(s.Balance), true
		}, times)
		l.Dash, l.Dots = color > 0, color == 0
		return l
	}
	c := against(f, "imbalance", "Imbalance of the backends against load", "imbalance",
		func(lines []figure.Line) figure.Axis { return scaled(lines, decimal("")) },
		line("measured", 0, func(b *analysis.StepBalance) float64 { return b.Imbalance }),
		line("random choices, on average", 4, func(b *analysis.StepBalance) float64 { return b.ByChance }),
		line("random choices, one case of twenty", 5, func(b *analysis.StepBalance) float64 { return b.Mostly }))
	if c == nil {
		return nil
	}
	c.Y.Label = "largest share / mean"
	return c
}

// backendLines returns the lines of the backends with the largest values of a figure, and the
// number of backends whose values are known.
func backendLines(f *analysis.Findings, of func(*analysis.BackendFigure) *float64, text func(float64) string) (lines []figure.Line, n int) {
	for i := range f.Balance.Backends {
		l := series(f, say.Plain(f.Balance.Backends[i].Name), 0, func(s *analysis.Step) (float64, bool) {
			if i >= len(s.Backends) {
				return 0, false
			}
			return known(of(&s.Backends[i]))
		}, text)
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	if n = len(lines); n > mostBackends {
		slices.SortStableFunc(lines, func(a, b figure.Line) int { return cmp.Compare(highest([]figure.Line{b}), highest([]figure.Line{a})) })
		lines = lines[:mostBackends]
	}
	for i := range lines {
		lines[i].Color = i
	}
	return lines, n
}

// backendTimes plots the throughput of the backends, stacked, and their sessions, against time.
func backendTimes(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	points := s.Backends[0].Points
	gave := figure.Figure{ID: "backendtime", Title: "What each backend gave, stacked to the sum, against time"}
	amount := func(p *analysis.BackendPoint) float64 {
		if f.Balance.Source == analysis.BySessions {
			return p.Sessions
		}
		return p.Throughput
	}
	gave.Lines = stack(f, len(points), func(k int) (float64, func(int) float64) {
		return points[k].At, func(i int) float64 { return amount(&s.Backends[i].Points[k]) }
	})
	gave.Y = backendAxis(f, gave.Lines)
	if f.Balance.Source == analysis.BySessions {
		return []figure.Figure{gave}
	}
	return []figure.Figure{gave, sessionTimes(f, s)}
}

// sessionTimes plots the sessions of the backends with the largest shares.
func sessionTimes(f *analysis.Findings, s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "sessiontime", Title: "Sessions of each backend against time"}
	for i, l := range layers(f) {
		if len(l.places) > 1 {
			c.Title += fmt.Sprintf(" (%d of %d)", i, len(f.Balance.Backends))
			break
		}
		line := figure.Line{Name: l.name, Color: i}
		for _, p := range s.Backends[l.places[0]].Points {
			if p.Sessions >= 0 {
				line.Points = append(line.Points, figure.Point{X: p.At, Y: p.Sessions})
			}
		}
		if len(line.Points) > 0 {
			c.Lines = append(c.Lines, line)
		}
	}
	c.Y = scaled(c.Lines, decimal(""))
	c.Y.Name, c.Y.Label = "sessions", "sessions"
	return c
}
