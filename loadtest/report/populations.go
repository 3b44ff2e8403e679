package report

import (
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// populationOf returns the findings of a run as if population p had been alone.
func populationOf(f *analysis.Findings, p *analysis.PopulationCurve) *analysis.Findings {
	g := *f
	g.Curve, g.Measure, g.Populations = p.Curve, p.Measure, nil
	return &g
}

// populationSection is the table of the results of each population, in the steps for which which
// returns true.
func populationSection(f *analysis.Findings, which func(*analysis.Step) bool) section {
	s := section{ID: "populations", Title: "Populations", Note: "Populations of clients worked at the same time; " +
		"intervals are of the mean, 95%.",
		table: table{Head: heads("!"+f.Load(), "!<population", "!its clients", "!throughput", "95% interval", "!operations/s", "!p50",
			"!p99", "!errors")}}
	for _, x := range steps(f) {
		if !which(x) {
			continue
		}
		for i := range f.Populations {
			p := &f.Populations[i]
			k := slices.IndexFunc(p.Curve, func(s analysis.Step) bool { return s.Step == x.Step })
			if k < 0 {
				continue
			}
			mine, of := &p.Curve[k], populationOf(f, p)
			low, high := yieldOf(of).ends(mine)
			p50, p99 := "-", "-"
			if q := mine.Latency; q != nil {
				p50, p99 = unit.Seconds(q.P50), unit.Seconds(q.P99)
			}
			s.row(false, loadCell(f, x), p.Name, whole(mine.Clients), unit.Bits(mine.Throughput), span(low, high, yieldOf(of).text),
				unit.Count(mine.Operations), p50, p99, failures(mine))
		}
	}
	return s
}

// populationPoints describes the work of the clients of each population.
func populationPoints(f *analysis.Findings) []string {
	var all []string
	for i := range f.Populations {
		all = append(all, say.Plain(f.Populations[i].Name+": "+f.Populations[i].Work))
	}
	return all
}

// populationChart has a line for each population against the total load; it returns nil if there
// are no populations.
func populationChart(f *analysis.Findings) *figure.Figure {
	if len(f.Populations) == 0 {
		return nil
	}
	rate := slices.ContainsFunc(f.Populations, func(p analysis.PopulationCurve) bool { return p.Measure == analysis.Rate })
	g := *f
	if rate {
		g.Measure = analysis.Rate
	}
	y := yieldOf(&g)
	var lines []figure.Line
	for i := range f.Populations {
		p := &f.Populations[i]
		mine := map[int]*analysis.Step{}
		for k := range p.Curve {
			mine[p.Curve[k].Step] = &p.Curve[k]
		}
		l := series(f, say.Plain(p.Name), i, func(s *analysis.Step) (float64, bool) {
			x := mine[s.Step]
			return orZero(x, y.of), x != nil
		}, y.text)
		if len(l.Points) == len(p.Curve) && p.Measure == g.Measure {
			points := l.Points // one for each step of the two curves
			for _, s := range steps(f) {
				if x := mine[s.Step]; x != nil {
					points[0].Low, points[0].High = y.ends(x)
					points = points[1:]
				}
			}
		}
		lines = append(lines, l)
	}
	c := against(f, "populationcurve", say.Capital(y.name)+" of each population against the load of all", y.name, y.axis, lines...)
	if c != nil {
		c.Desc = bars
	}
	return c
}

// orZero returns the value of of for s, 0 if s is nil.
func orZero(s *analysis.Step, of func(*analysis.Step) float64) float64 {
	if s == nil {
		return 0
	}
	return of(s)
}
