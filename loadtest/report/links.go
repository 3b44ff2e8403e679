package report

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// linkChapter reports on emulated links: their properties, their use, and the limitations of the
// emulation; it is empty if there are no links.
func linkChapter(f *analysis.Findings, s *analysis.Series, plots []figure.Figure) chapter {
	if s == nil || s.Plan == nil || len(s.Plan.Links) == 0 {
		return chapter{}
	}
	c := chapter{ID: "links", Title: "Links", Charts: drawings(plots)}
	if about := s.About.Links; about != nil {
		c.Lead = "The links between clients and service were emulated, by network namespaces with a queue in a process of weir's."
		for _, text := range append([]string{about.Why}, about.Blind...) {
			if text != "" {
				c.Points = append(c.Points, say.Plain(text))
			}
		}
	}
	c.Points = append(c.Points, "An emulated link has no other traffic but the clients', no other routers, and no faults but those that "+
		"the scenario names.")
	c.PageOnly = true
	c.Parts = filled(linkPlanSection(s), linkSection(f))
	return c
}

// linkPlanSection lists the properties of the links.
func linkPlanSection(s *analysis.Series) section {
	t := section{ID: "linkplan", Title: "Properties of the links", table: table{Head: heads("<link", "~properties", "share of the clients")}}
	sum := 0.0
	for _, l := range s.Plan.Links.Sites() {
		sum += cmp.Or(l.Spec.Share, 1)
	}
	for _, l := range s.Plan.Links {
		share := unit.Percent(cmp.Or(l.Spec.Share, 1) / sum)
		if over := s.Plan.Links.Over(l.Name); len(over) > 0 {
			share = "trunk of " + strings.Join(over, ", ")
		}
		t.row(false, cmp.Or(l.Name, "the only one"), l.Spec.String(), share)
	}
	return t
}

// linkSection lists the traffic of each link, step by step.
func linkSection(f *analysis.Findings) section {
	s := section{ID: "linktable", Title: "Links, step by step",
		Note: "Headers of IP are included. Busy is the share of the time in which the wire was sending; packets are dropped where they find " +
			"the queue full. Waiting is for the wire, being late the emulation's own fault: both are means of the 99% quantiles of seconds.",
		table: table{Head: heads(f.Load(), "<link", "to clients", "busy", "dropped/s", "lost/s", "waited",
			"from clients", "busy", "dropped/s", "lost/s", "waited", "late", "down")}}
	for _, step := range steps(f) {
		for _, h := range step.Hosts {
			l := h.Link
			if l == nil {
				continue
			}
			cells := []string{loadCell(f, step), h.Host}
			for _, w := range []*analysis.WayFigure{&l.ToClients, &l.FromClients} {
				cells = append(cells, unit.Bits(w.Carried), orDash(w.Busy, unit.Percent), unit.Count(w.Dropped+w.Cut), unit.Count(w.Lost),
					unit.Seconds(w.Wait))
			}
			s.row(false, append(cells, unit.Seconds(max(l.ToClients.Late, l.FromClients.Late)), unit.Percent(l.Down))...)
		}
	}
	return s
}

// mostLinks is the largest number of links on one plot, which shows the two directions of each
// link.
const mostLinks = 6

// linkCharts plots the use of links against load, and against time.
func linkCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	all := those(linkLoadChart(f))
	if s != nil && len(s.Points) > 0 {
		all = append(all, overTime(f, s, linkTimeCharts(s))...)
	}
	return all
}

func linkLoadChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "links", Title: "Use of links against load", X: stepAxis(f)}
	var names []string
	for i := range f.Curve {
		for _, h := range f.Curve[i].Hosts {
			if h.Link != nil && !slices.Contains(names, h.Host) && len(names) < mostLinks {
				names = append(names, h.Host)
			}
		}
	}
	for i, name := range names {
		for way, words := range []string{" to clients", " from clients"} {
			l := series(f, say.Plain(name)+words, i, func(s *analysis.Step) (float64, bool) {
				for _, h := range s.Hosts {
					if h.Host == name && h.Link != nil {
						return known([]*float64{h.Link.ToClients.Busy, h.Link.FromClients.Busy}[way])
					}
				}
				return 0, false
			}, unit.Percent)
			l.Dash = way == 1
			if len(l.Points) > 0 {
				c.Lines = append(c.Lines, l)
			}
		}
	}
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = percentAxis("% of the time", 1)(c.Lines)
	c.Y.Name = "use of the wire"
	return &c
}

// linkTimeCharts plots the traffic of links and their dropped packets.
func linkTimeCharts(s *analysis.Series) []figure.Figure {
	carried := figure.Figure{ID: "linktime", Title: "Traffic of links against time"}
	n := 0
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if !h.Link || n == mostLinks {
			continue
		}
		for way, of := range []func(*analysis.HostPoint) float64{func(p *analysis.HostPoint) float64 { return p.Sent },
			func(p *analysis.HostPoint) float64 { return p.Received }} {
			l := hostLine(h, say.Plain(h.Host)+[2]string{" to clients", " from clients"}[way], n, besidePoints, of)
			l.Dash = way == 1
			carried.Lines = append(carried.Lines, l)
		}
		n++
	}
	if n == 0 {
		return nil
	}
	carried.Y = bitsAxis(carried.Lines)
	carried.Y.Name = "traffic"
	carried.Desc = "IP headers included"
	return []figure.Figure{carried}
}
