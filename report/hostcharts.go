package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
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
		beside(s, "hostscpu", "CPU of the hosts", "Share of all cores of a host that were busy", percentAxis("% of its cores", 0), unit.Percent, func(p *analysis.HostPoint) float64 { return p.CPU }),
		beside(s, "hostsdisk", "Disks of the hosts", "Share of the time in which a host's busiest disk had a request in service", percentAxis("% of the time", 0), unit.Percent, func(p *analysis.HostPoint) float64 { return p.DiskBusy }),
		beside(s, "hostsnet", "Network of the hosts", "Bytes that a host received and sent on all interfaces (through its loopback interface, if that carried more)", bitsAxis, unit.Bits, func(p *analysis.HostPoint) float64 { return p.Received + p.Sent }),
	}
	return overTime(f, s, all)
}

// beside plots one figure of the hosts that have the most of it.
func beside(s *analysis.Series, id, title, what string, axis func([]figure.Line) figure.Axis, text func(float64) string, of func(*analysis.HostPoint) float64) figure.Figure {
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
	c.Y = axis(c.Lines)
	return c
}
