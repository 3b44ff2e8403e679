package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/analysis"
	"weir/figure"
	"weir/internal/say"
	"weir/internal/unit"
)

// Bounds of what is plotted of hosts, so that a page of many stays small.
const (
	mostHosts      = 5      // beside each other in one plot
	besidePoints   = 300    // of each of their lines
	mostHostPlots  = 64     // hosts that have plots of their own
	hostPoints     = 12_000 // of one line each of all hosts together
	leastHostPoint = 120    // of each line, however many hosts there are
	fewHosts       = 10     // of which the page can hold all that is known
)

// busiest lists the hosts by the CPU that they used, the most first; those that
// tell nothing of it last, by name.
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

// meanUse is the mean over time of what is known, negative if nothing is.
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

// peak is the highest that is known of a host.
func peak(h *analysis.HostSeries, of func(*analysis.HostPoint) float64) float64 {
	most := 0.0
	for i := range h.Points {
		most = max(most, of(&h.Points[i]))
	}
	return most
}

// hostLine makes a line of what is known of a host since the start of the run.
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

// joined makes at most so many points of a line, each the mean of its neighbors.
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

// hostCharts plots the busiest hosts beside each other; nil if there is only one.
func hostCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if len(s.Points) == 0 || len(s.Hosts) < 2 {
		return nil
	}
	all := []figure.Figure{
		beside(s, "hostscpu", "CPU of the hosts", "Share of all cores of a host that were busy", figure.Percent(), "% of its cores", unit.Percent, func(p *analysis.HostPoint) float64 { return p.CPU }),
		beside(s, "hostsdisk", "Disks of the hosts", "Share of the time in which a host's busiest disk had a request in service", figure.Percent(), "% of the time", unit.Percent, func(p *analysis.HostPoint) float64 { return p.DiskBusy }),
		beside(s, "hostsnet", "Network of the hosts", "Bytes that a host received and sent on all interfaces (through its loopback interface, if that carried more)", figure.Scale{}, "", unit.Bits, func(p *analysis.HostPoint) float64 { return p.Received + p.Sent }),
	}
	return overTime(f, s, all)
}

// beside plots one figure of the hosts that have the most of it.
func beside(s *analysis.Series, id, title, what string, by figure.Scale, label string, text func(float64) string, of func(*analysis.HostPoint) float64) figure.Figure {
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
	var said []string
	for i, u := range all {
		if i == mostHosts {
			break
		}
		name := say.Plain(u.host.Host)
		l := hostLine(u.host, name, i, besidePoints, of)
		c.Lines = append(c.Lines, l)
		said = append(said, name+" "+usual(text, u.mean, peak(u.host, of)))
	}
	if len(all) == 0 {
		return c
	}
	c.Desc = what + ": " + strings.Join(said, ", ") + "."
	if n := len(all); n > mostHosts {
		c.Title += fmt.Sprintf(" (%d of %d)", mostHosts, n)
		c.Desc += fmt.Sprintf(" These are the %d highest of %d; the lowest is %s with %s on average.", mostHosts, n, say.Plain(all[n-1].host.Host), text(all[n-1].mean))
	}
	if by.Factor == 0 {
		by = figure.Bits(highest(c.Lines))
		label = by.Unit
	}
	c.Y = figure.LinearAxis(label, by, highest(c.Lines))
	return c
}

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
		plots := overTime(f, s, []figure.Figure{cpuOfHost(h, id+"cpu", most), diskOfHost(h, id+"disk", most), busyOfHost(h, id+"busy", most), netOfHost(h, id+"net", most), memoryOfHost(h, id+"mem", most)})
		for k := range plots {
			if len(hosts) > fewHosts { // so that the page stays small
				plots[k].Few, plots[k].Zones = leastHostPoint, nil
			}
		}
		if len(plots) > 0 {
			all = append(all, HostPlots{Host: say.Plain(h.Host), Role: say.Plain(h.Role), Words: hostWords(h), Figures: plots})
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

// A hostPart is one line of a host's plot.
type hostPart struct {
	name string
	dash bool
	of   func(*analysis.HostPoint) float64
}

// lines makes the lines of a host's plot and says of each how high it was; parts
// that are never above zero are left out.
func lines(h *analysis.HostSeries, most int, text func(float64) string, parts []hostPart) ([]figure.Line, string) {
	var all []figure.Line
	var said []string
	for i, part := range parts {
		l := hostLine(h, part.name, i, most, part.of)
		l.Dash = part.dash
		if highest([]figure.Line{l}) > 0 {
			all = append(all, l)
			said = append(said, part.name+" "+usual(text, meanUse(h, part.of), peak(h, part.of)))
		}
	}
	return all, strings.Join(said, ", ")
}

// cpuOfHost shows what the whole host and each side's processes used.
func cpuOfHost(h *analysis.HostSeries, id string, most int) figure.Figure {
	c := figure.Figure{ID: id, Title: "CPU of " + say.Plain(h.Host)}
	cores := max(1, float64(h.Cores))
	share := func(x float64) float64 { return x / cores }
	var said string
	c.Lines, said = lines(h, most, unit.Percent, []hostPart{
		{"user", false, func(p *analysis.HostPoint) float64 { return p.User }},
		{"system", false, func(p *analysis.HostPoint) float64 { return p.System }},
		{"I/O wait", false, func(p *analysis.HostPoint) float64 { return p.IOWait }},
		{"server processes", true, func(p *analysis.HostPoint) float64 { return share(p.ServerCores) }},
		{"client processes", true, func(p *analysis.HostPoint) float64 { return share(p.ClientCores) }},
		{"all that is busy", true, func(p *analysis.HostPoint) float64 { return p.CPU }},
	})
	c.Y = figure.LinearAxis("% of its cores", figure.Percent(), max(1, highest(c.Lines)))
	c.Y.Name = "CPU"
	c.Desc = fmt.Sprintf("Share of the %s: %s. Dashed lines are what processes used, and the whole host.", say.Plural(max(1, h.Cores), "core"), said)
	return c
}

func diskOfHost(h *analysis.HostSeries, id string, most int) figure.Figure {
	c := figure.Figure{ID: id, Title: "Disks of " + say.Plain(h.Host)}
	var said string
	c.Lines, said = lines(h, most, func(x float64) string { return unit.Bytes(x) + "/s" }, []hostPart{
		{"read", false, func(p *analysis.HostPoint) float64 { return p.DiskRead }},
		{"written", false, func(p *analysis.HostPoint) float64 { return p.DiskWrite }},
	})
	by := figure.Decimal(highest(c.Lines), "B/s")
	c.Y = figure.LinearAxis(by.Unit, by, highest(c.Lines))
	c.Y.Name = "disk traffic"
	c.Desc = "All disks together: " + said + "."
	return c
}

func busyOfHost(h *analysis.HostSeries, id string, most int) figure.Figure {
	c := figure.Figure{ID: id, Title: "Busiest disk of " + say.Plain(h.Host)}
	var said string
	c.Lines, said = lines(h, most, unit.Percent, []hostPart{{"busy", false, func(p *analysis.HostPoint) float64 { return p.DiskBusy }}})
	c.Y = figure.LinearAxis("% of the time", figure.Percent(), 1)
	c.Y.Name = "disk busy"
	c.Desc = "Share of the time in which the busiest disk had a request in service: " + said + "."
	return c
}

func netOfHost(h *analysis.HostSeries, id string, most int) figure.Figure {
	c := figure.Figure{ID: id, Title: "Network of " + say.Plain(h.Host)}
	var said string
	c.Lines, said = lines(h, most, unit.Bits, []hostPart{
		{"received", false, func(p *analysis.HostPoint) float64 { return p.Received }},
		{"sent", false, func(p *analysis.HostPoint) float64 { return p.Sent }},
	})
	by := figure.Bits(highest(c.Lines))
	c.Y = figure.LinearAxis(by.Unit, by, highest(c.Lines))
	c.Y.Name = "network traffic"
	c.Desc = "All interfaces (or loopback, if that carried more): " + said + "."
	return c
}

func memoryOfHost(h *analysis.HostSeries, id string, most int) figure.Figure {
	c := figure.Figure{ID: id, Title: "Memory of " + say.Plain(h.Host)}
	var said string
	c.Lines, said = lines(h, most, unit.Bytes, []hostPart{
		{"in use", false, func(p *analysis.HostPoint) float64 { return p.MemoryUsed }},
		{"server processes", true, func(p *analysis.HostPoint) float64 { return p.ServerRSS }},
		{"client processes", true, func(p *analysis.HostPoint) float64 { return p.ClientRSS }},
	})
	top := max(highest(c.Lines), float64(h.Memory))
	by := figure.Decimal(top, "B")
	c.Y = figure.LinearAxis(by.Unit, by, top)
	c.Y.Name = "memory"
	c.Desc = "Memory: " + said + "."
	if h.Memory > 0 {
		c.Desc += " It has " + unit.Bytes(float64(h.Memory)) + "."
	}
	return c
}
