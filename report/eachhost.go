package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// eachHost plots every host by itself, the busiest first.
func eachHost(f *analysis.Findings, s *analysis.Series) []HostPlots {
	if len(s.Points) == 0 {
		return nil
	}
	hosts := busiest(s)
	hosts = hosts[:min(len(hosts), mostHostPlots)]
	most := max(leastHostPoint, hostPoints/max(1, len(hosts)))
	var all []HostPlots
	for i, h := range hosts {
		id := fmt.Sprintf("host%d", i+1)
		var plots []figure.Figure
		for _, p := range hostPlots(h) {
			plots = append(plots, p.figure(h, id, most))
		}
		plots = overTime(f, s, plots)
		for k := range plots {
			if len(hosts) > fewHosts { // so that the page stays small
				plots[k].Few, plots[k].Zones = leastHostPoint, nil
			}
		}
		if len(plots) > 0 {
			all = append(all, HostPlots{Host: say.Plain(h.Host), Role: say.Plain(string(h.Role)), Words: hostWords(h), Figures: plots})
		}
	}
	return all
}

// hostWords says how busy a host was.
func hostWords(h *analysis.HostSeries) string {
	var said []string
	add := func(what string, text func(float64) string, of func(*analysis.HostPoint) float64) {
		if mean := meanUse(h, of); mean > 0 {
			said = append(said, what+" "+usual(text, mean, peak(h, of)))
		}
	}
	add("CPU", unit.Percent, func(p *analysis.HostPoint) float64 { return p.CPU })
	add("busiest disk", unit.Percent, func(p *analysis.HostPoint) float64 { return p.DiskBusy })
	add("network", unit.Bits, func(p *analysis.HostPoint) float64 { return p.Received + p.Sent })
	add("memory in use", unit.Bytes, func(p *analysis.HostPoint) float64 { return p.MemoryUsed })
	if len(said) == 0 {
		return "Nothing is known of it."
	}
	return say.Capital(strings.Join(said, "; ")) + "."
}

// A hostPlot is one plot of a host.
type hostPlot struct {
	id, title, name string
	text            func(float64) string
	axis            func([]figure.Line) figure.Axis
	desc            string // with a place for how high each part was
	parts           []hostPart
}

// A hostPart is one line of a host's plot.
type hostPart struct {
	name string
	dash bool
	of   func(*analysis.HostPoint) float64
}

func hostPlots(h *analysis.HostSeries) []hostPlot {
	cores := max(1, h.Cores)
	share := func(x float64) float64 { return x / float64(cores) }
	memory := "Memory: %s."
	if h.Memory > 0 {
		memory += " It has " + unit.Bytes(float64(h.Memory)) + "."
	}
	return []hostPlot{
		{"cpu", "CPU", "CPU", unit.Percent, percentAxis("% of its cores", 1),
			"Share of the " + say.Plural(cores, "core") + ": %s. Dashed lines are what processes used, and the whole host.", []hostPart{
				{"user", false, func(p *analysis.HostPoint) float64 { return p.User }},
				{"system", false, func(p *analysis.HostPoint) float64 { return p.System }},
				{"I/O wait", false, func(p *analysis.HostPoint) float64 { return p.IOWait }},
				{"server processes", true, func(p *analysis.HostPoint) float64 { return share(p.ServerCores) }},
				{"client processes", true, func(p *analysis.HostPoint) float64 { return share(p.ClientCores) }},
				{"all that is busy", true, func(p *analysis.HostPoint) float64 { return p.CPU }},
			}},
		{"disk", "Disks", "disk traffic", func(x float64) string { return unit.Bytes(x) + "/s" },
			func(lines []figure.Line) figure.Axis { return scaled(lines, decimal("B/s")) },
			"All disks together: %s.", []hostPart{
				{"read", false, func(p *analysis.HostPoint) float64 { return p.DiskRead }},
				{"written", false, func(p *analysis.HostPoint) float64 { return p.DiskWrite }},
			}},
		{"busy", "Busiest disk", "disk busy", unit.Percent, percentAxis("% of the time", 1),
			"Share of the time in which the busiest disk had a request in service: %s.", []hostPart{
				{"busy", false, func(p *analysis.HostPoint) float64 { return p.DiskBusy }},
			}},
		{"net", "Network", "network traffic", unit.Bits, bitsAxis,
			"All interfaces (or loopback, if that carried more): %s.", []hostPart{
				{"received", false, func(p *analysis.HostPoint) float64 { return p.Received }},
				{"sent", false, func(p *analysis.HostPoint) float64 { return p.Sent }},
			}},
		{"mem", "Memory", "memory", unit.Bytes,
			func(lines []figure.Line) figure.Axis {
				return scaledTo(max(highest(lines), float64(h.Memory)), decimal("B"))
			},
			memory, []hostPart{
				{"in use", false, func(p *analysis.HostPoint) float64 { return p.MemoryUsed }},
				{"server processes", true, func(p *analysis.HostPoint) float64 { return p.ServerRSS }},
				{"client processes", true, func(p *analysis.HostPoint) float64 { return p.ClientRSS }},
			}},
	}
}

// figure draws the plot with at most so many points a line. Parts that are never
// above zero are left out.
func (p *hostPlot) figure(h *analysis.HostSeries, host string, most int) figure.Figure {
	c := figure.Figure{ID: host + p.id, Title: p.title + " of " + say.Plain(h.Host)}
	var said []string
	for i, part := range p.parts {
		l := hostLine(h, part.name, i, most, part.of)
		l.Dash = part.dash
		if highest([]figure.Line{l}) > 0 {
			c.Lines = append(c.Lines, l)
			said = append(said, part.name+" "+usual(p.text, meanUse(h, part.of), peak(h, part.of)))
		}
	}
	c.Desc = fmt.Sprintf(p.desc, strings.Join(said, ", "))
	c.Y = p.axis(c.Lines)
	c.Y.Name = p.name
	return c
}
