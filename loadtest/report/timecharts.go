package report

import (
	"cmp"
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
	inShade   = " Shaded stretches are those in which a load was held; the numbers above them are the load."
	inBand    = " Bands in the color of a warning are outages: clients tried, and no operation succeeded."
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

// overTime gives figures the axis of time and the steps, and says where points
// are left out; those without anything but zeros are left out themselves.
func overTime(f *analysis.Findings, s *analysis.Series, all []figure.Figure) []figure.Figure {
	shown := all[:0]
	for _, c := range all {
		if highest(c.Lines) <= 0 {
			continue
		}
		c.X, c.Zones = figure.TimeAxis(end(s)), zones(f, s)
		if len(f.Outages) > 0 {
			c.Desc += inBand
		}
		if slices.ContainsFunc(c.Lines, func(l figure.Line) bool { return len(l.Points) > figure.MostPoints }) {
			c.Desc += fmt.Sprintf(" Of each %s only the lowest and the highest value are drawn where no script runs.",
				unit.Seconds(end(s)*2/figure.MostPoints))
		}
		shown = append(shown, c)
	}
	return shown
}

func end(s *analysis.Series) float64 {
	last := &s.Points[len(s.Points)-1]
	return last.At + last.Seconds/2
}

// zones are the stretches in which a load was held, named by it, and those in which
// no operation succeeded.
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
	c := figure.Figure{ID: "time", Title: say.Capital(y.name) + " against time"}
	what, show := "Payload moved each second. ", unit.Bits
	of := func(p *analysis.Point) float64 { return p.Throughput }
	if f.Measure == analysis.Rate {
		what, show = say.Capital(y.name)+" that ended each second. ", perSecond
		of = func(p *analysis.Point) float64 { return p.Operations }
	}
	c.Lines = []figure.Line{timeLine(s, y.name, 0, of)}
	c.Y = y.axis(c.Lines)
	c.Y.Name = y.name
	c.Desc = what + course("It", c.Lines[0].Points, show) + inShade
	return c
}

// clientTime shows how many clients there were.
func clientTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "clienttime", Title: "Clients against time"}
	c.Lines = []figure.Line{timeLine(s, "clients", 0, func(p *analysis.Point) float64 { return p.Clients })}
	c.Y = figure.LinearAxis("virtual clients", figure.Decimal(0, ""), highest(c.Lines))
	c.Y.Unit, c.Y.Name = "clients", "clients"
	c.Desc = "Virtual clients that were running, mean of each second. " + course("Their number", c.Lines[0].Points, unit.Significant)
	return c
}

// errorTime shows what failed, by class.
func errorTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "errortime", Title: "Failed operations against time"}
	var said []string
	for i, class := range s.Classes {
		l := timeLine(s, class.String(), i%6, func(p *analysis.Point) float64 { return p.ErrorsBy[class] })
		l.Dash = i >= 6
		c.Lines = append(c.Lines, l)
		said = append(said, class.String()+": "+bursts(l.Points))
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Y.Name = "failed"
	c.Desc = "Operations that failed each second, by class. " + say.Capital(strings.Join(said, "; ")) + "."
	return c
}

// rateTime shows what ended each second: files, or each kind of operation.
func rateTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	what := strings.TrimSuffix(things(f), "/s")
	c := figure.Figure{ID: "ratetime", Title: say.Capital(what) + " against time", Desc: say.Capital(what)}
	if what == "ops" {
		c.Title, c.Desc = "Operations of each kind against time", "Operations"
	}
	var said []string
	for i, k := range s.Kinds {
		if i == mostKinds {
			c.Title += fmt.Sprintf(" (%d of %d)", mostKinds, len(s.Kinds))
			break
		}
		c.Lines = append(c.Lines, timeLine(s, k.String(), i, func(p *analysis.Point) float64 { return p.OperationsBy[k] }))
		said = append(said, fmt.Sprintf("%s at most %s", k, perSecond(highest(c.Lines[i:]))))
	}
	c.Y = scaled(c.Lines, decimal(" "+things(f)))
	c.Y.Name = "rate"
	c.Desc += " that ended each second: " + strings.Join(said, ", ") + "."
	return c
}

func latencyTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "latencytime", Title: "Latency against time"}
	c.Lines = []figure.Line{
		timeLine(s, "p50", 0, func(p *analysis.Point) float64 { return p.P50 }),
		timeLine(s, "p99", 2, func(p *analysis.Point) float64 { return p.P99 }),
	}
	for i := range c.Lines { // nothing ended
		c.Lines[i].Points = slices.DeleteFunc(c.Lines[i].Points, func(p figure.Point) bool { return !(p.Y > 0) })
	}
	c.Y = durationAxis(c.Lines)
	c.Y.Name = "latency"
	c.Desc = "Median (p50) and 99th percentile (p99) of the operations that ended in each second. " +
		course("The median", c.Lines[0].Points, unit.Seconds) + " " + course("The 99th percentile", c.Lines[1].Points, unit.Seconds)
	return c
}

// course says how a line goes, for those who do not see it: where what it shows
// begins, its highest and lowest place with their times, and where it ends.
func course(what string, points []figure.Point, text func(float64) string) string {
	n := len(points)
	if n == 0 {
		return what + " is not known."
	}
	byHeight := func(a, b figure.Point) int { return cmp.Compare(a.Y, b.Y) }
	high, low := slices.MaxFunc(points, byHeight), slices.MinFunc(points, byHeight)
	if text(high.Y) == text(low.Y) {
		return fmt.Sprintf("%s is %s all the time.", what, text(points[0].Y))
	}
	part := max(1, n/20)
	place := func(p figure.Point) string { return fmt.Sprintf("%s at %s", text(p.Y), unit.Seconds(p.X)) }
	return fmt.Sprintf("%s begins near %s, is highest with %s, lowest with %s, and ends near %s.",
		what, text(meanOf(points[:part])), place(high), place(low), text(meanOf(points[n-part:])))
}

func meanOf(points []figure.Point) float64 {
	sum := 0.0
	for i := range points {
		sum += points[i].Y
	}
	return sum / float64(len(points))
}

// bursts says when a line is above zero, and when it is highest.
func bursts(points []figure.Point) string {
	first, last, high, stretches := -1, -1, 0, 0
	for i := range points {
		if points[i].Y <= 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		if last < 0 || last < i-1 {
			stretches++
		}
		last = i
		if points[i].Y > points[high].Y {
			high = i
		}
	}
	switch {
	case first < 0:
		return "none"
	case first == last:
		return fmt.Sprintf("only at %s, %s", unit.Seconds(points[first].X), perSecond(points[high].Y))
	}
	text := fmt.Sprintf("from %s to %s after the start", unit.Seconds(points[first].X), unit.Seconds(points[last].X))
	if stretches > 1 {
		text += fmt.Sprintf(" in %d stretches", stretches)
	}
	return text + fmt.Sprintf(", at most %s at %s", perSecond(points[high].Y), unit.Seconds(points[high].X))
}

// usual says how high something was on average and at most.
func usual(text func(float64) string, mean, most float64) string {
	if text(mean) == text(most) {
		return text(mean) + " all the time"
	}
	return text(mean) + " on average and " + text(most) + " at most"
}

// usuals says the same of lines, each with its name.
func usuals(lines []figure.Line, text func(float64) string) string {
	said := make([]string, len(lines))
	for i, l := range lines {
		said[i] = l.Name + " " + usual(text, meanOf(l.Points), highest(lines[i:i+1]))
	}
	return strings.Join(said, "; ")
}
