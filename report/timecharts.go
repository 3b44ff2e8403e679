package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
	"weir/measure"
)

// mostHosts is how many hosts one plot shows.
const mostHosts = 4

// timeCharts plots the run against time.
func timeCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if s == nil || len(s.Points) == 0 {
		return nil
	}
	all := []figure.Figure{yieldTime(f, s)}
	if f.Measure == analysis.Throughput || len(s.Kinds) > 1 {
		all = append(all, rateTime(f, s))
	}
	all = append(all, latencyTime(s))
	all = append(all, cpuTime(s), deviceTime(s, "disk", "Disks against time", "Bytes read from and written to all disks of a host",
		func(p *analysis.HostPoint) float64 { return p.DiskRead + p.DiskWrite }),
		deviceTime(s, "net", "Network against time", "Bytes received and sent by all interfaces of a host (through its loopback interface, if that carried more)",
			func(p *analysis.HostPoint) float64 { return p.Received + p.Sent }))
	shown := all[:0]
	for _, c := range all {
		if highest(c.Lines) > 0 {
			c.X = figure.TimeAxis(end(s))
			c.Zones = holds(f, s)
			if n := longest(s); n > figure.MostPoints {
				c.Desc += fmt.Sprintf(" Of each %s only the lowest and the highest value are drawn.", unit.Seconds(end(s)*2/figure.MostPoints))
			}
			shown = append(shown, c)
		}
	}
	return shown
}

// longest returns how many points the longest series has.
func longest(s *analysis.Series) int {
	n := len(s.Points)
	for i := range s.Hosts {
		n = max(n, len(s.Hosts[i].Points))
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
		c.Title = "Operations against time"
		c.Lines = []figure.Line{timeLine(s, "operations", 0, false, func(p *analysis.Point) float64 { return p.Operations })}
		by := figure.Decimal(highest(c.Lines), " ops/s")
		c.Y = figure.LinearAxis(strings.TrimSpace(by.Unit), by, highest(c.Lines))
		c.Desc = fmt.Sprintf("Operations each second, at most %s/s.", unit.Count(highest(c.Lines))) + inShade
		return c
	}
	c.Lines = []figure.Line{timeLine(s, "throughput", 0, false, func(p *analysis.Point) float64 { return p.Throughput })}
	by := figure.Bits(highest(c.Lines))
	c.Y = figure.LinearAxis(by.Unit, by, highest(c.Lines))
	c.Desc = fmt.Sprintf("Payload moved each second, at most %s.", unit.Bits(highest(c.Lines))) + inShade
	return c
}

// mostKinds is how many kinds of operations one plot shows.
const mostKinds = 6

// rateTime shows what ended each second: files, or each kind of operation.
func rateTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	what := strings.TrimSuffix(things(f), "/s")
	c := figure.Figure{ID: "ratetime", Title: "Files against time", Desc: "Files"}
	if what == "ops" {
		c.Title, c.Desc = "Operations of each kind against time", "Operations"
	}
	for i, k := range s.Kinds {
		if i == mostKinds {
			c.Title += fmt.Sprintf(" (%d of %d)", mostKinds, len(s.Kinds))
			break
		}
		c.Lines = append(c.Lines, timeLine(s, k.String(), i, false, func(p *analysis.Point) float64 { return p.OperationsBy[k] }))
	}
	by := figure.Decimal(highest(c.Lines), " "+things(f))
	c.Y = figure.LinearAxis(strings.TrimSpace(by.Unit), by, highest(c.Lines))
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
	c.Desc = fmt.Sprintf("Median and 99th percentile of the operations that ended in each second; the latter is at most %s.", unit.Seconds(highest(c.Lines[1:])))
	return c
}

// cpuTime shows both sides' processes and whole hosts.
func cpuTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "cputime", Title: "CPU against time"}
	add := func(h *analysis.HostSeries, name string, color int, dash bool, of func(*analysis.HostPoint) float64) {
		l := figure.Line{Name: name + " (" + h.Host + ")", Color: color % 6, Dash: dash}
		for i := range h.Points {
			if y := of(&h.Points[i]); y >= 0 && h.Points[i].At >= 0 {
				l.Points = append(l.Points, figure.Point{X: h.Points[i].At, Y: y})
			}
		}
		if len(l.Points) > 0 && len(c.Lines) < 2*mostHosts {
			c.Lines = append(c.Lines, l)
		}
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		cores, color := max(1, float64(h.Cores)), i
		add(h, "client processes", 2*color, false, func(p *analysis.HostPoint) float64 { return p.ClientCores / cores })
		add(h, "server processes", 2*color+1, false, func(p *analysis.HostPoint) float64 { return p.ServerCores / cores })
		if h.Role == "server" {
			color++ // in the tone of its processes
		}
		add(h, "whole host", 2*color, true, func(p *analysis.HostPoint) float64 { return p.CPU })
	}
	c.Y = figure.LinearAxis("% of the machine's cores", figure.Percent(), 1)
	c.Desc = "Share of all cores of a machine that were busy each second: what the clients' and the server's processes used, and, dashed, the whole machine."
	return c
}

func deviceTime(s *analysis.Series, id, title, what string, of func(*analysis.HostPoint) float64) figure.Figure {
	c := figure.Figure{ID: id, Title: title, Desc: what + ", each second."}
	for i := range s.Hosts {
		if i >= mostHosts {
			c.Desc += fmt.Sprintf(" The first %d of %d hosts are shown.", mostHosts, len(s.Hosts))
			break
		}
		l := figure.Line{Name: s.Hosts[i].Host, Color: i}
		for k := range s.Hosts[i].Points {
			if p := &s.Hosts[i].Points[k]; p.At >= 0 {
				l.Points = append(l.Points, figure.Point{X: p.At, Y: of(p)})
			}
		}
		if highest([]figure.Line{l}) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	by := figure.Decimal(highest(c.Lines), "B/s")
	c.Y = figure.LinearAxis(by.Unit, by, highest(c.Lines))
	return c
}
