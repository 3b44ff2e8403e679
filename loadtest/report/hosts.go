package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// Bounds of the plots of hosts, so that a page of many hosts stays small.
const (
	mostHosts      = 5      // beside each other in one plot
	besidePoints   = 300    // of each line in such a plot
	mostHostPlots  = 64     // hosts that have plots of their own
	hostPoints     = 12_000 // of one line each of all hosts together
	leastHostPoint = 120    // of each line, for any number of hosts
	fewHosts       = 10     // number of hosts of which the page can contain all data
)

// busiest lists the hosts by the CPU that they used, the most used host first; hosts without CPU
// measurements are last, by name.
func busiest(s *analysis.Series) []*analysis.HostSeries {
	var all []*analysis.HostSeries
	used := map[*analysis.HostSeries]float64{}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		all = append(all, h)
		used[h] = meanUse(h, func(p *analysis.HostPoint) float64 { return p.CPU })
	}
	slices.SortStableFunc(all, func(a, b *analysis.HostSeries) int { return cmp.Compare(used[b], used[a]) })
	return all
}

// meanUse returns the mean over time of the known values, negative if no value is known.
func meanUse(h *analysis.HostSeries, of func(*analysis.HostPoint) float64) float64 {
	sum, seconds := 0.0, 0.0
	for i := range h.Points {
		if y := of(&h.Points[i]); y >= 0 {
			sum, seconds = sum+y*h.Points[i].Seconds, seconds+h.Points[i].Seconds
		}
	}
	if seconds <= 0 {
		return -1
	}
	return sum / seconds
}

// peak returns the highest known value of a host.
func peak(h *analysis.HostSeries, of func(*analysis.HostPoint) float64) float64 {
	most := 0.0
	for i := range h.Points {
		most = max(most, of(&h.Points[i]))
	}
	return most
}

// hostLine makes a line of the known values of a host since the start of the run.
func hostLine(h *analysis.HostSeries, name string, color int, most int, of func(*analysis.HostPoint) float64) figure.Line {
	l := figure.Line{Name: name, Color: color % 6}
	for i := range h.Points {
		if y := of(&h.Points[i]); y >= 0 && h.Points[i].At >= 0 {
			l.Points = append(l.Points, figure.Point{X: h.Points[i].At, Y: y})
		}
	}
	l.Points = joined(l.Points, most)
	return l
}

// joined reduces a line to at most so many points, each the mean of its neighbors.
func joined(points []figure.Point, most int) []figure.Point {
	if len(points) <= most {
		return points
	}
	out := make([]figure.Point, most)
	for i := range out {
		part := points[i*len(points)/most : (i+1)*len(points)/most]
		for k := range part {
			out[i].X += part[k].X / float64(len(part))
		}
		out[i].Y = meanOf(part)
	}
	return out
}

// hostCharts plots the busiest hosts beside each other; it returns nil if there is only one host.
func hostCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if len(s.Points) == 0 || len(s.Hosts) < 2 {
		return nil
	}
	all := []figure.Figure{
		beside(s, "hostscpu", "CPU of the hosts", "CPU", percentAxis("% of its cores", 0),
			func(p *analysis.HostPoint) float64 { return p.CPU }),
		beside(s, "hostsdisk", "Disks of the hosts", "disk busy", percentAxis("% of the time", 0),
			func(p *analysis.HostPoint) float64 { return p.DiskBusy }),
		beside(s, "hostsnet", "Network of the hosts", "network traffic", bitsAxis,
			func(p *analysis.HostPoint) float64 { return p.Received + p.Sent }),
	}
	all[1].Desc = "Busiest disk of each host"
	all[2].Desc = networkNote
	return overTime(f, s, all)
}

// networkNote describes the traffic of hosts.
const networkNote = "All interfaces, or loopback if that carried more"

// beside plots one figure of the hosts with its highest values.
func beside(s *analysis.Series, id, title, name string, axis func([]figure.Line) figure.Axis,
	of func(*analysis.HostPoint) float64) figure.Figure {
	c := figure.Figure{ID: id, Title: title}
	type used struct {
		host *analysis.HostSeries
		mean float64
	}
	var all []used
	for i := range s.Hosts {
		if mean := meanUse(&s.Hosts[i], of); mean > 0 {
			all = append(all, used{&s.Hosts[i], mean})
		}
	}
	slices.SortStableFunc(all, func(a, b used) int { return cmp.Compare(b.mean, a.mean) })
	for i, u := range all[:min(len(all), mostHosts)] {
		c.Lines = append(c.Lines, hostLine(u.host, say.Plain(u.host.Host), i, besidePoints, of))
	}
	if len(all) == 0 {
		return c
	}
	if n := len(all); n > mostHosts {
		c.Title += fmt.Sprintf(" (%d of %d)", mostHosts, n)
	}
	c.Y = axis(c.Lines)
	c.Y.Name = name
	return c
}

// hostChapter shows the busiest hosts beside each other, and each host separately, folded unless
// there are two hosts.
func hostChapter(f *analysis.Findings, s *analysis.Series, plots Plots) chapter {
	c := chapter{ID: "hosts", Title: "Hosts", Charts: drawings(plots.Hosts), PageOnly: true}
	for _, h := range plots.EachHost {
		c.Parts = append(c.Parts, section{Title: fmt.Sprintf("%s (%s)", h.Host, h.Role), Charts: drawings(h.Figures), Brief: h.Words,
			Open: len(plots.EachHost) < 3, Screen: len(plots.EachHost) > fewHosts})
	}
	if s != nil && len(s.Hosts) > len(plots.EachHost) {
		c.Note = fmt.Sprintf("The %d busiest of %d hosts have plots of their own; hosts.csv has all.", len(plots.EachHost), len(s.Hosts))
	}
	c.Parts = append(c.Parts, filled(hostSection(f))...)
	return c
}

func hostSection(f *analysis.Findings) section {
	s := section{Title: "Hosts, step by step", table: table{Head: heads(f.Load(), "<host", "<role", "cores", "CPU busy", "I/O wait", "steal",
		"busiest core", "server cores", "client cores", "server memory", "client memory", "disk busy", "disk read/s", "disk write/s",
		"net received", "net sent", "retransmits/s")}}
	for _, step := range steps(f) {
		for _, h := range step.Hosts {
			if h.Service != nil && h.Cores == 0 {
				continue // see serverSection
			}
			s.row(false, at(f, step), h.Host, string(h.Role), whole(h.Cores), orDash(h.CPU, unit.Percent), orDash(h.IOWait, unit.Percent),
				orDash(h.Steal, unit.Percent), orDash(h.BusiestCore, unit.Percent), orDash(h.ServerCores, unit.Significant),
				orDash(h.ClientCores, unit.Significant), amount(h.ServerRSS), amount(h.ClientRSS), orDash(h.DiskBusy, unit.Percent),
				unit.Bytes(h.DiskRead), unit.Bytes(h.DiskWrite), unit.Bits(h.NetReceived), unit.Bits(h.NetSent), unit.Count(h.Retransmits))
		}
	}
	return s
}

// eachHost plots every host separately, the busiest first.
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

// hostWords labels a host with its usage: mean and maximum.
func hostWords(h *analysis.HostSeries) string {
	var all []string
	add := func(name string, text func(float64) string, of func(*analysis.HostPoint) float64) {
		if mean := meanUse(h, of); mean > 0 {
			all = append(all, fmt.Sprintf("%s %s (max %s)", name, text(mean), text(peak(h, of))))
		}
	}
	add("CPU", unit.Percent, func(p *analysis.HostPoint) float64 { return p.CPU })
	add("busiest disk", unit.Percent, func(p *analysis.HostPoint) float64 { return p.DiskBusy })
	add("network", unit.Bits, func(p *analysis.HostPoint) float64 { return p.Received + p.Sent })
	add("memory", unit.Bytes, func(p *analysis.HostPoint) float64 { return p.MemoryUsed })
	return cmp.Or(strings.Join(all, ", "), "no samples")
}

// A hostPlot is one plot of a host.
type hostPlot struct {
	id, title, name string
	axis            func([]figure.Line) figure.Axis
	desc            string
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
	memory := ""
	if h.Memory > 0 {
		memory = "Of " + unit.Bytes(float64(h.Memory))
	}
	return []hostPlot{
		{"cpu", "CPU", "CPU", percentAxis("% of its cores", 1), "Of " + say.Plural(cores, "core"), []hostPart{
			{"user", false, func(p *analysis.HostPoint) float64 { return p.User }},
			{"system", false, func(p *analysis.HostPoint) float64 { return p.System }},
			{"I/O wait", false, func(p *analysis.HostPoint) float64 { return p.IOWait }},
			{"server processes", true, func(p *analysis.HostPoint) float64 { return share(p.ServerCores) }},
			{"client processes", true, func(p *analysis.HostPoint) float64 { return share(p.ClientCores) }},
			{"all that is busy", true, func(p *analysis.HostPoint) float64 { return p.CPU }},
		}},
		{"disk", "Disks", "disk traffic",
			func(lines []figure.Line) figure.Axis { return scaled(lines, decimal("B/s")) },
			"All disks together", []hostPart{
				{"read", false, func(p *analysis.HostPoint) float64 { return p.DiskRead }},
				{"written", false, func(p *analysis.HostPoint) float64 { return p.DiskWrite }},
			}},
		{"busy", "Busiest disk", "disk busy", percentAxis("% of the time", 1), "", []hostPart{
			{"busy", false, func(p *analysis.HostPoint) float64 { return p.DiskBusy }},
		}},
		{"net", "Network", "network traffic", bitsAxis, networkNote, []hostPart{
			{"received", false, func(p *analysis.HostPoint) float64 { return p.Received }},
			{"sent", false, func(p *analysis.HostPoint) float64 { return p.Sent }},
		}},
		{"mem", "Memory", "memory",
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

// figure draws the plot with at most so many points per line. Parts that are never above zero are
// left out.
func (p *hostPlot) figure(h *analysis.HostSeries, host string, most int) figure.Figure {
	c := figure.Figure{ID: host + p.id, Title: p.title + " of " + say.Plain(h.Host), Desc: p.desc}
	for i, part := range p.parts {
		l := hostLine(h, part.name, i, most, part.of)
		l.Dash = part.dash
		if highest([]figure.Line{l}) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	c.Y = p.axis(c.Lines)
	c.Y.Name = p.name
	return c
}
