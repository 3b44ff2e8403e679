package report

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report/figure"
)

const (
	inShade   = "Shaded: measurement time of each load"
	inBand    = "Bands in the color of a warning: outages"
	mostKinds = 6 // of operations in one plot
)

// timeCharts plots the run against time.
func timeCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if s == nil || len(s.Points) == 0 {
		return nil
	}
	all := append(jobTimeCharts(f, s), yieldTime(f, s))
	if f.Measure == analysis.Throughput || len(s.Kinds) > 1 {
		all = append(all, rateTime(f, s))
	}
	return overTime(f, s, append(all, latencyTime(s), clientTime(s), errorTime(s)))
}

// overTime adds the axis of time and the steps to figures, and notes the points that are left out.
// It leaves out figures of zeros.
func overTime(f *analysis.Findings, s *analysis.Series, all []figure.Figure) []figure.Figure {
	shown := all[:0]
	for _, c := range all {
		if highest(c.Lines) <= 0 {
			continue
		}
		c.X, c.Zones = figure.TimeAxis(end(s)), zones(f, s)
		notes := []string{c.Desc}
		if len(f.Outages) > 0 {
			notes = append(notes, inBand)
		}
		if slices.ContainsFunc(c.Lines, func(l figure.Line) bool { return len(l.Points) > figure.MostPoints }) {
			notes = append(notes, fmt.Sprintf("Without scripts: lowest and highest value of each %s", unit.Seconds(end(s)*2/figure.MostPoints)))
		}
		c.Desc = joinNotes(notes)
		shown = append(shown, c)
	}
	return shown
}

func end(s *analysis.Series) float64 {
	last := &s.Points[len(s.Points)-1]
	return last.At + last.Seconds/2
}

// zones returns the stretches in which a load was held, with the load as their name, and the
// stretches without a successful operation.
func zones(f *analysis.Findings, s *analysis.Series) []figure.Zone {
	var all []figure.Zone
	step, phase := 0, ""
	for i := range s.Points {
		p := &s.Points[i]
		if p.Phase == measure.Measured {
			if step != p.Step || phase != p.Phase {
				z := figure.Zone{From: p.At - p.Seconds/2}
				if x := stepOf(f, p.Step); x != nil {
					z.Name = fmt.Sprintf("%g", loadOf(f, x))
				}
				all = append(all, z)
			}
			all[len(all)-1].To = p.At + p.Seconds/2
		}
		step, phase = p.Step, p.Phase
	}
	for i := range f.Outages {
		from := f.Outages[i].From.Sub(s.Start).Seconds()
		all = append(all, figure.Zone{From: from, To: from + f.Outages[i].Seconds, Outage: true})
	}
	return all
}

// timeLine makes a line of the run's intervals.
func timeLine(s *analysis.Series, name string, color int, of func(*analysis.Point) float64) figure.Line {
	l := figure.Line{Name: name, Color: color}
	for i := range s.Points {
		l.Points = append(l.Points, figure.Point{X: s.Points[i].At, Y: of(&s.Points[i])})
	}
	return l
}

func yieldTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	y := yieldOf(f)
	c := figure.Figure{ID: "time", Title: say.Capital(y.name) + " against time", Desc: inShade}
	of := func(p *analysis.Point) float64 { return p.Throughput }
	if f.Measure == analysis.Rate {
		of = func(p *analysis.Point) float64 { return p.Operations }
	}
	c.Lines = []figure.Line{timeLine(s, y.name, 0, of)}
	c.Y = y.axis(c.Lines)
	c.Y.Name = y.name
	return c
}

// clientTime shows the number of clients.
func clientTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "clienttime", Title: "Clients against time"}
	c.Lines = []figure.Line{timeLine(s, "clients", 0, func(p *analysis.Point) float64 { return p.Clients })}
	c.Y = figure.LinearAxis("virtual clients", figure.Decimal(0, ""), highest(c.Lines))
	c.Y.Unit, c.Y.Name = "clients", "clients"
	return c
}

// errorTime shows the failed operations by class.
func errorTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "errortime", Title: "Failed operations against time"}
	for i, class := range s.Classes {
		l := timeLine(s, class.String(), i%6, func(p *analysis.Point) float64 { return p.ErrorsBy[class] })
		l.Dash = i >= 6
		c.Lines = append(c.Lines, l)
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Y.Name = "failed"
	return c
}

// rateTime shows the number of completed things per second: files, or each kind of operation.
func rateTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	what := strings.TrimSuffix(things(f), "/s")
	c := figure.Figure{ID: "ratetime", Title: say.Capital(what) + " against time"}
	if what == "ops" {
		c.Title = "Operations of each kind against time"
	}
	for i, k := range s.Kinds {
		if i == mostKinds {
			c.Title += fmt.Sprintf(" (%d of %d)", mostKinds, len(s.Kinds))
			break
		}
		c.Lines = append(c.Lines, timeLine(s, k.String(), i, func(p *analysis.Point) float64 { return p.OperationsBy[k] }))
	}
	c.Y = scaled(c.Lines, decimal(" "+things(f)))
	c.Y.Name = "rate"
	return c
}

func latencyTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "latencytime", Title: "Latency against time"}
	c.Lines = []figure.Line{
		timeLine(s, "p50", 0, func(p *analysis.Point) float64 { return p.P50 }),
		timeLine(s, "p99", 2, func(p *analysis.Point) float64 { return p.P99 }),
	}
	for i := range c.Lines { // no operation ended
		c.Lines[i].Points = slices.DeleteFunc(c.Lines[i].Points, func(p figure.Point) bool { return !(p.Y > 0) })
	}
	c.Y = durationAxis(c.Lines)
	c.Y.Name = "latency"
	return c
}

func meanOf(points []figure.Point) float64 {
	sum := 0.0
	for i := range points {
		sum += points[i].Y
	}
	return sum / float64(len(points))
}
