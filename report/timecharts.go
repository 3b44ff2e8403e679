package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/measure"
	"weir/report/figure"
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
	all = append(all, latencyTime(s), clientTime(s), errorTime(s))
	return overTime(f, s, all)
}

// overTime gives figures the axis of time and the steps, and says where points
// are left out; those without anything but zeros are left out themselves.
func overTime(f *analysis.Findings, s *analysis.Series, all []figure.Figure) []figure.Figure {
	shown := all[:0]
	for _, c := range all {
		if highest(c.Lines) > 0 {
			c.X = figure.TimeAxis(end(s))
			c.Zones = append(holds(f, s), outages(f, s)...)
			if len(f.Outages) > 0 {
				c.Desc += inBand
			}
			if n := longest(&c); n > figure.MostPoints {
				c.Desc += fmt.Sprintf(" Of each %s only the lowest and the highest value are drawn where no script runs.", unit.Seconds(end(s)*2/figure.MostPoints))
			}
			shown = append(shown, c)
		}
	}
	return shown
}

// longest returns how many points the longest line has.
func longest(c *figure.Figure) int {
	n := 0
	for _, l := range c.Lines {
		n = max(n, len(l.Points))
	}
	return n
}

func end(s *analysis.Series) float64 {
	last := &s.Points[len(s.Points)-1]
	return last.At + last.Seconds/2
}

// holds are the stretches in which a load was held, named by it.
func holds(f *analysis.Findings, s *analysis.Series) []figure.Zone {
	_, of := load(f)
	names := map[int]string{}
	for i := range f.Curve {
		names[f.Curve[i].Step] = fmt.Sprintf("%g", of(&f.Curve[i]))
	}
	var zones []figure.Zone
	step, phase := 0, ""
	for i := range s.Points {
		p := &s.Points[i]
		if p.Phase == measure.Hold {
			if step != p.Step || phase != p.Phase {
				zones = append(zones, figure.Zone{From: p.At - p.Seconds/2, Name: names[p.Step]})
			}
			zones[len(zones)-1].To = p.At + p.Seconds/2
		}
		step, phase = p.Step, p.Phase
	}
	return zones
}

const inBand = " Bands in the color of a warning are outages: clients tried, and no operation succeeded."

// outages are the stretches in which no operation succeeded.
func outages(f *analysis.Findings, s *analysis.Series) []figure.Zone {
	var zones []figure.Zone
	for i := range f.Outages {
		o := &f.Outages[i]
		from := o.From.Sub(s.Start).Seconds()
		zones = append(zones, figure.Zone{From: from, To: from + o.Seconds, Outage: true})
	}
	return zones
}

// timeLine makes a line of the run's intervals; values that are not positive
// are left out if positive is set.
func timeLine(s *analysis.Series, name string, color int, positive bool, of func(*analysis.Point) float64) figure.Line {
	l := figure.Line{Name: name, Color: color}
	for i := range s.Points {
		if y := of(&s.Points[i]); y > 0 || !positive {
			l.Points = append(l.Points, figure.Point{X: s.Points[i].At, Y: y})
		}
	}
	return l
}

const inShade = " Shaded stretches are those in which a load was held; the numbers above them are the load."

func yieldTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "time", Title: "Throughput against time"}
	if f.Measure == analysis.Rate {
		name := rateName(f)
		c.Title = say.Capital(name) + " against time"
		c.Lines = []figure.Line{timeLine(s, name, 0, false, func(p *analysis.Point) float64 { return p.Operations })}
		c.Y = scaled(c.Lines, decimal(" "+things(f)))
		c.Desc = say.Capital(name) + " that ended each second. " + course("It", c.Lines[0].Points, perSecond) + inShade
		return c
	}
	c.Lines = []figure.Line{timeLine(s, "throughput", 0, false, func(p *analysis.Point) float64 { return p.Throughput })}
	c.Y = bitsAxis(c.Lines)
	c.Desc = "Payload moved each second. " + course("It", c.Lines[0].Points, unit.Bits) + inShade
	return c
}

// clientTime shows how many clients there were.
func clientTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "clienttime", Title: "Clients against time"}
	c.Lines = []figure.Line{timeLine(s, "clients", 0, false, func(p *analysis.Point) float64 { return p.Clients })}
	c.Y = figure.LinearAxis("virtual clients", figure.Decimal(0, ""), highest(c.Lines))
	c.Y.Unit = "clients"
	c.Desc = "Virtual clients that were running, mean of each second. " + course("Their number", c.Lines[0].Points, func(x float64) string { return unit.Significant(x) })
	return c
}

// errorTime shows what failed, by class.
func errorTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "errortime", Title: "Failed operations against time"}
	var said []string
	for i, class := range s.Classes {
		l := timeLine(s, class.String(), i%6, false, func(p *analysis.Point) float64 { return p.ErrorsBy[class] })
		l.Dash = i >= 6
		c.Lines = append(c.Lines, l)
		said = append(said, class.String()+": "+bursts(l.Points))
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Desc = "Operations that failed each second, by class. " + say.Capital(strings.Join(said, "; ")) + "."
	return c
}

// mostKinds is how many kinds of operations one plot shows.
const mostKinds = 6

// rateTime shows what ended each second: files, or each kind of operation.
func rateTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	what := strings.TrimSuffix(things(f), "/s")
	c := figure.Figure{ID: "ratetime", Title: "Files against time", Desc: "Files"}
	switch what {
	case "requests", "jobs":
		c.Title, c.Desc = say.Capital(what)+" against time", say.Capital(what)
	case "ops":
		c.Title, c.Desc = "Operations of each kind against time", "Operations"
	}
	for i, k := range s.Kinds {
		if i == mostKinds {
			c.Title += fmt.Sprintf(" (%d of %d)", mostKinds, len(s.Kinds))
			break
		}
		c.Lines = append(c.Lines, timeLine(s, k.String(), i, false, func(p *analysis.Point) float64 { return p.OperationsBy[k] }))
	}
	c.Y = scaled(c.Lines, decimal(" "+things(f)))
	var said []string
	for _, l := range c.Lines {
		said = append(said, fmt.Sprintf("%s at most %s/s", l.Name, unit.Count(highest([]figure.Line{l}))))
	}
	c.Desc += " that ended each second: " + strings.Join(said, ", ") + "."
	return c
}

func latencyTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "latencytime", Title: "Latency against time"}
	c.Lines = []figure.Line{
		timeLine(s, "p50", 0, true, func(p *analysis.Point) float64 { return p.P50 }),
		timeLine(s, "p99", 2, true, func(p *analysis.Point) float64 { return p.P99 }),
	}
	c.Y = durationAxis(c.Lines)
	c.Desc = "Median (p50) and 99th percentile (p99) of the operations that ended in each second. " + course("The median", c.Lines[0].Points, unit.Seconds) + " " + course("The 99th percentile", c.Lines[1].Points, unit.Seconds)
	return c
}
