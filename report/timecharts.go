package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/internal/unit"
	"weir/measure"
)

// mostHosts is how many hosts one plot shows.
const mostHosts = 4

// timeCharts plots the run against time.
func timeCharts(f *analysis.Findings, s *analysis.Series) []chart {
	if s == nil || len(s.Points) == 0 {
		return nil
	}
	all := []chart{yieldTime(f, s)}
	if f.Measure == analysis.Throughput || len(s.Kinds) > 1 {
		all = append(all, rateTime(f, s))
	}
	all = append(all, latencyTime(s))
	all = append(all, cpuTime(s), deviceTime(s, "disk", "Disks against time", "Bytes read from and written to all disks of a host",
		func(p *analysis.HostPoint) float64 { return p.DiskBytes }),
		deviceTime(s, "net", "Network against time", "Bytes received and sent by all interfaces of a host (through its loopback interface, if that carried more)",
			func(p *analysis.HostPoint) float64 { return p.NetBytes }))
	shown := all[:0]
	for _, c := range all {
		if highest(c.lines) > 0 {
			c.x = timeAxis(end(s))
			c.zones = holds(f, s)
			if n := longest(s); n > mostPoints {
				c.desc += fmt.Sprintf(" Of each %s only the lowest and the highest value are drawn.", unit.Seconds(end(s)*2/mostPoints))
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
func holds(f *analysis.Findings, s *analysis.Series) []zone {
	_, of := load(f)
	names := map[int]string{}
	for i := range f.Curve {
		names[f.Curve[i].Step] = fmt.Sprintf("%g", of(&f.Curve[i]))
	}
	var zones []zone
	step, phase := 0, ""
	for i := range s.Points {
		p := &s.Points[i]
		if p.Phase == measure.Hold {
			if step != p.Step || phase != p.Phase {
				zones = append(zones, zone{from: p.At - p.Seconds/2, name: names[p.Step]})
			}
			zones[len(zones)-1].to = p.At + p.Seconds/2
		}
		step, phase = p.Step, p.Phase
	}
	return zones
}

// timeLine makes a line of the run's intervals; values that are not positive
// are left out if positive is set.
func timeLine(s *analysis.Series, name string, color int, positive bool, of func(*analysis.Point) float64) line {
	l := line{name: name, color: color}
	for i := range s.Points {
		if y := of(&s.Points[i]); y > 0 || !positive {
			l.points = append(l.points, point{x: s.Points[i].At, y: y})
		}
	}
	l.points = thin(l.points)
	return l
}

const inShade = " Shaded stretches are those in which a load was held; the numbers above them are the load."

func yieldTime(f *analysis.Findings, s *analysis.Series) chart {
	c := chart{id: "time", title: "Throughput against time"}
	if f.Measure == analysis.Rate {
		c.title = "Operations against time"
		c.lines = []line{timeLine(s, "operations", 0, false, func(p *analysis.Point) float64 { return p.Operations })}
		by := decimal(highest(c.lines), " ops/s")
		c.y = linearAxis(strings.TrimSpace(by.unit), by, highest(c.lines))
		c.desc = fmt.Sprintf("Operations each second, at most %s/s.", unit.Count(highest(c.lines))) + inShade
		return c
	}
	c.lines = []line{timeLine(s, "throughput", 0, false, func(p *analysis.Point) float64 { return p.Throughput })}
	by := bits(highest(c.lines))
	c.y = linearAxis(by.unit, by, highest(c.lines))
	c.desc = fmt.Sprintf("Payload moved each second, at most %s.", unit.Bits(highest(c.lines))) + inShade
	return c
}

// mostKinds is how many kinds of operations one plot shows.
const mostKinds = 6

// rateTime shows what ended each second: files, or each kind of operation.
func rateTime(f *analysis.Findings, s *analysis.Series) chart {
	what := strings.TrimSuffix(things(f), "/s")
	c := chart{id: "ratetime", title: "Files against time", desc: "Files"}
	if what == "ops" {
		c.title, c.desc = "Operations of each kind against time", "Operations"
	}
	for i, k := range s.Kinds {
		if i == mostKinds {
			c.title += fmt.Sprintf(" (%d of %d)", mostKinds, len(s.Kinds))
			break
		}
		c.lines = append(c.lines, timeLine(s, k.String(), i, false, func(p *analysis.Point) float64 { return p.OperationsBy[k] }))
	}
	by := decimal(highest(c.lines), " "+things(f))
	c.y = linearAxis(strings.TrimSpace(by.unit), by, highest(c.lines))
	var said []string
	for _, l := range c.lines {
		said = append(said, fmt.Sprintf("%s at most %s/s", l.name, unit.Count(highest([]line{l}))))
	}
	c.desc += " that ended each second: " + strings.Join(said, ", ") + "."
	return c
}

func latencyTime(s *analysis.Series) chart {
	c := chart{id: "latencytime", title: "Latency against time"}
	c.lines = []line{
		timeLine(s, "p50", 0, true, func(p *analysis.Point) float64 { return p.P50 }),
		timeLine(s, "p99", 2, true, func(p *analysis.Point) float64 { return p.P99 }),
	}
	c.y = durationAxis(c.lines)
	c.desc = fmt.Sprintf("Median and 99th percentile of the operations that ended in each second; the latter is at most %s.", unit.Seconds(highest(c.lines[1:])))
	return c
}

// cpuTime shows both sides' processes and whole hosts.
func cpuTime(s *analysis.Series) chart {
	c := chart{id: "cputime", title: "CPU against time"}
	add := func(h *analysis.HostSeries, name string, color int, dash bool, of func(*analysis.HostPoint) float64) {
		l := line{name: name + " (" + h.Host + ")", color: color % 6, dash: dash}
		for i := range h.Points {
			if y := of(&h.Points[i]); y >= 0 && h.Points[i].At >= 0 {
				l.points = append(l.points, point{x: h.Points[i].At, y: y})
			}
		}
		if len(l.points) > 0 && len(c.lines) < 2*mostHosts {
			l.points = thin(l.points)
			c.lines = append(c.lines, l)
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
	c.y = linearAxis("% of the machine's cores", percent(), 1)
	c.desc = "Share of all cores of a machine that were busy each second: what the clients' and the server's processes used, and, dashed, the whole machine."
	return c
}

func deviceTime(s *analysis.Series, id, title, what string, of func(*analysis.HostPoint) float64) chart {
	c := chart{id: id, title: title, desc: what + ", each second."}
	for i := range s.Hosts {
		if i >= mostHosts {
			c.desc += fmt.Sprintf(" The first %d of %d hosts are shown.", mostHosts, len(s.Hosts))
			break
		}
		l := line{name: s.Hosts[i].Host, color: i}
		for k := range s.Hosts[i].Points {
			if p := &s.Hosts[i].Points[k]; p.At >= 0 {
				l.points = append(l.points, point{x: p.At, y: of(p)})
			}
		}
		if highest([]line{l}) > 0 {
			l.points = thin(l.points)
			c.lines = append(c.lines, l)
		}
	}
	by := decimal(highest(c.lines), "B/s")
	c.y = linearAxis(by.unit, by, highest(c.lines))
	return c
}
