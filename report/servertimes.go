package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

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

// serverTime shows what each of a few data servers gave; of many the one that
// gave most, the one in the middle and the one that gave least.
func serverTime(f *analysis.Findings, s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "servertime", Title: "Data servers against time"}
	of, text := func(p *analysis.ServerPoint) float64 { return p.Throughput }, unit.Bits
	if f.Measure == analysis.Rate {
		of, text = func(p *analysis.ServerPoint) float64 { return p.Operations }, perSecond
	}
	all := ranked(s, of)
	shown := all
	if n := len(all); n > mostServerLines {
		shown = []*analysis.ServerSeries{all[0], all[n/4], all[n/2], all[3*n/4], all[n-1]}
		c.Title += fmt.Sprintf(" (%d of %d)", len(shown), n)
	}
	var said []string
	for i, x := range shown {
		l := serverLine(x, i, of)
		c.Lines = append(c.Lines, l)
		said = append(said, l.Name+" "+usual(text, meanOf(l.Points), highest([]figure.Line{l})))
	}
	c.Y = yieldOf(f).axis(c.Lines)
	if len(said) == 0 {
		return c
	}
	c.Desc = say.Capital(yieldOf(f).name) + " of each data server: " + strings.Join(said, "; ") + "."
	if len(shown) < len(all) {
		c.Desc += " Shown are the one that gave most, the one that gave least, and three between them."
	}
	if pause := silence(all, of); pause != "" {
		c.Desc += " " + pause
	}
	return c
}

// silence names the data servers that gave nothing for a while between two times
// at which they gave something: one that was lost and came back.
func silence(all []*analysis.ServerSeries, of func(*analysis.ServerPoint) float64) string {
	longest, from, to, name := 0, 0.0, 0.0, ""
	for _, x := range all {
		last := -1
		for i := range x.Points {
			if of(&x.Points[i]) <= 0 {
				continue
			}
			if gap := i - last - 1; last >= 0 && gap > longest {
				longest, from, to, name = gap, x.Points[last].At, x.Points[i].At, serverName(x.Name)
			}
			last = i
		}
	}
	if longest < 3 || math.IsNaN(to-from) {
		return ""
	}
	return fmt.Sprintf("%s gave nothing between %s and %s after the start.", say.Plain(name), unit.Seconds(from), unit.Seconds(to))
}

// serverErrorTime shows when which data server failed.
func serverErrorTime(s *analysis.Series) figure.Figure {
	c := figure.Figure{ID: "servererrortime", Title: "Failed operations of each data server against time"}
	var said []string
	all := ranked(s, func(p *analysis.ServerPoint) float64 { return p.Errors })
	for i, x := range all[:min(len(all), mostServerLines)] {
		l := serverLine(x, i, func(p *analysis.ServerPoint) float64 { return p.Errors })
		c.Lines = append(c.Lines, l)
		said = append(said, l.Name+" "+bursts(l.Points))
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Y.Name = "failed"
	c.Desc = "Operations that failed each second, by the server that failed: " + strings.Join(said, "; ") + "."
	return c
}
