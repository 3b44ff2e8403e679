package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// mostServerLines is the largest number of data servers on one plot.
const mostServerLines = 5

// serverCharts plots the data servers beside each other: against load, with the values of the
// measurement time of each step, and against time if s is not nil.
func serverCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	all := those(shareChart(f), serverRateChart(f), serverErrorChart(f))
	if s == nil || len(s.Servers) < 2 || len(s.Points) == 0 {
		return all
	}
	return append(all, overTime(f, s, []figure.Figure{serverTime(f, s), serverErrorTime(s)})...)
}

// shareChart shows the shares of the data servers in each step; it returns nil if there is only one
// server.
func shareChart(f *analysis.Findings) *figure.Figure {
	lines, picked := serverLines(f, func(x *analysis.Share) float64 { return shareOf(f, x) }, unit.Percent)
	if len(lines) == 0 {
		return nil
	}
	even := series(f, "even share", 5, func(s *analysis.Step) (float64, bool) {
		n := len(working(f, s))
		return 1 / float64(max(1, n)), n > 0
	}, unit.Percent)
	even.Dash, even.Dots = true, false
	name := yieldOf(f).name
	c := against(f, "servershare", "Share of each data server against load", "share", percentAxis("% of the "+name, 0), append(lines, even)...)
	if c != nil {
		c.Desc = picked
	}
	return c
}

// serverRateChart shows the number of operations that the data servers completed, if servers are
// compared by bytes; it returns nil if there is only one server.
func serverRateChart(f *analysis.Findings) *figure.Figure {
	if f.Measure == analysis.Rate {
		return nil
	}
	lines, picked := serverLines(f, func(x *analysis.Share) float64 { return x.Operations }, perSecond)
	axis := func(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" ops/s")) }
	c := against(f, "serverrate", "Operations of each data server against load", "operations", axis, lines...)
	if c != nil {
		c.Desc = picked
	}
	return c
}

// serverLines returns a line for each of a few data servers; of many servers, the largest, the
// middle and the smallest of each step, as picked describes. A single server has no line.
func serverLines(f *analysis.Findings, of func(*analysis.Share) float64, text func(float64) string) (lines []figure.Line, picked string) {
	var names []string
	most := 0
	for i := range f.Curve {
		all := working(f, &f.Curve[i])
		most = max(most, len(all))
		for _, x := range all {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
	}
	if most < 2 {
		return nil, ""
	}
	if len(names) <= mostServerLines {
		slices.Sort(names)
		for k, name := range names {
			lines = append(lines, series(f, say.Plain(serverName(name)), k, func(s *analysis.Step) (float64, bool) {
				for _, x := range s.Servers {
					if x.Name == name {
						return of(&x), true
					}
				}
				return 0, len(s.Servers) > 0
			}, text))
		}
		return lines, ""
	}
	pick := func(name string, color int, which func(n int) int) {
		lines = append(lines, series(f, name, color, func(s *analysis.Step) (float64, bool) {
			var all []float64
			for _, x := range working(f, s) {
				all = append(all, of(&x))
			}
			slices.Sort(all)
			if len(all) == 0 {
				return 0, false
			}
			return all[which(len(all))], true
		}, text))
	}
	pick("largest", 1, func(n int) int { return n - 1 })
	pick("middle", 0, func(n int) int { return n / 2 })
	pick("smallest", 2, func(int) int { return 0 })
	return lines, fmt.Sprintf("Largest, median and smallest of up to %d data servers", most)
}

// serverErrorChart shows the errors of each data server; it returns nil if there are no errors.
func serverErrorChart(f *analysis.Findings) *figure.Figure {
	sums := map[string]int64{}
	for _, s := range steps(f) {
		for _, x := range s.Servers {
			sums[x.Name] += x.Errors
		}
	}
	maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	var lines []figure.Line
	for k, name := range names[:min(len(names), mostServerLines)] {
		lines = append(lines, series(f, say.Plain(serverName(name)), k, func(s *analysis.Step) (float64, bool) {
			for _, x := range s.Servers {
				if x.Name == name && s.Duration > 0 {
					return float64(x.Errors) / s.Duration, true
				}
			}
			return 0, true
		}, perSecond))
	}
	axis := func(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" errors/s")) }
	c := against(f, "servererrors", "Failed operations of each data server against load", "failed", axis, lines...)
	if n := len(names); c != nil && n > mostServerLines {
		c.Title += fmt.Sprintf(" (%d of %d)", mostServerLines, n)
	}
	return c
}

// serverLine makes a line of one data server against time.
func serverLine(x *analysis.ServerSeries, color int, of func(*analysis.ServerPoint) float64) figure.Line {
	l := figure.Line{Name: say.Plain(serverName(x.Name)), Color: color}
	for i := range x.Points {
		l.Points = append(l.Points, figure.Point{X: x.Points[i].At, Y: of(&x.Points[i])})
	}
	return l
}

// ranked lists data servers by the sum of a figure, the largest first.
func ranked(s *analysis.Series, of func(*analysis.ServerPoint) float64) []*analysis.ServerSeries {
	sums := map[*analysis.ServerSeries]float64{}
	var all []*analysis.ServerSeries
	for i := range s.Servers {
		x := &s.Servers[i]
		for k := range x.Points {
			sums[x] += of(&x.Points[k])
		}
		if sums[x] > 0 {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *analysis.ServerSeries) int { return cmp.Compare(sums[b], sums[a]) })
	return all
}

// serverTime shows the throughput of each of a few data servers; of many servers, it shows the
// quartiles by total: the highest, the lowest and three between.
func serverTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "servertime", Title: "Data servers against time"}
	of := func(p *analysis.ServerPoint) float64 { return p.Throughput }
	if f.Measure == analysis.Rate {
		of = func(p *analysis.ServerPoint) float64 { return p.Operations }
	}
	all := ranked(s, of)
	shown := all
	if n := len(all); n > mostServerLines {
		shown = []*analysis.ServerSeries{all[0], all[n/4], all[n/2], all[3*n/4], all[n-1]}
		c.Title += fmt.Sprintf(" (%d of %d)", len(shown), n)
		c.Desc = "Quartiles by total, from the largest to the smallest"
	}
	for i, x := range shown {
		c.Lines = append(c.Lines, serverLine(x, i, of))
	}
	y := yieldOf(f)
	c.Y = y.axis(c.Lines)
	c.Y.Name = y.name
	return c
}

// serverErrorTime shows the times of the failures of each data server.
func serverErrorTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "servererrortime", Title: "Failed operations of each data server against time"}
	all := ranked(s, func(p *analysis.ServerPoint) float64 { return p.Errors })
	for i, x := range all[:min(len(all), mostServerLines)] {
		c.Lines = append(c.Lines, serverLine(x, i, func(p *analysis.ServerPoint) float64 { return p.Errors }))
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Y.Name = "failed"
	return c
}
