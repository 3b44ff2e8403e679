package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// mostServerLines is how many data servers one plot shows.
const mostServerLines = 5

// serverCharts plots the data servers beside each other: against load by what
// each step's hold gave, and against time if s is not nil.
func serverCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	all := those(shareChart(f), serverRateChart(f), serverErrorChart(f))
	if s == nil || len(s.Servers) < 2 || len(s.Points) == 0 {
		return all
	}
	return append(all, overTime(f, s, []figure.Figure{serverTime(f, s), serverErrorTime(s)})...)
}

// shareOf is what servers are compared by.
func shareOf(f *analysis.Findings, x *analysis.Share) float64 {
	if f.Measure == analysis.Rate {
		return x.OperationsShare
	}
	return x.ThroughputShare
}

// working lists the data servers of a step that did anything, the target itself
// only if it did, too; the one with the largest share first.
func working(f *analysis.Findings, s *analysis.Step) []analysis.Share {
	all := slices.DeleteFunc(slices.Clone(s.Servers), func(x analysis.Share) bool { return x.Name == "" && shareOf(f, &x) == 0 })
	slices.SortStableFunc(all, func(a, b analysis.Share) int { return cmp.Compare(shareOf(f, &b), shareOf(f, &a)) })
	return all
}

// imbalance says in a sentence how evenly the data servers of a step shared it;
// nothing if there are fewer than two.
func imbalance(f *analysis.Findings, s *analysis.Step) string {
	all := working(f, s)
	n := len(all)
	if n < 2 {
		return ""
	}
	what := "throughput"
	if f.Measure == analysis.Rate {
		what = "operations"
	}
	even := 1 / float64(n)
	most, least := shareOf(f, &all[0]), shareOf(f, &all[n-1])
	text := fmt.Sprintf("With %s the %d data servers shared the %s", at(f, s), n, what)
	ends := fmt.Sprintf("%s had the most with %s and %s the least with %s; an even share is %s", say.Plain(serverName(all[0].Name)), unit.Percent(most),
		say.Plain(serverName(all[n-1].Name)), unit.Percent(least), unit.Percent(even))
	switch {
	case most <= 1.1*even && least >= 0.9*even:
		return text + " evenly, within 10%: " + ends + "."
	case most <= 1.5*even && least >= 0.5*even:
		return text + " unevenly: " + ends + "."
	}
	text += " very unevenly: " + ends
	idle := 0
	for i := range all {
		if shareOf(f, &all[i]) < 0.1*even {
			idle++
		}
	}
	if idle > 0 {
		text += fmt.Sprintf(", and %s did less than a tenth of it", say.Plural(idle, "server"))
	}
	return text + "."
}

// shareChart shows which share of each step the data servers had; nil if there
// is only one.
func shareChart(f *analysis.Findings) *figure.Figure {
	lines, many := serverLines(f, func(x *analysis.Share) float64 { return shareOf(f, x) }, unit.Percent)
	if len(lines) == 0 {
		return nil
	}
	c := &figure.Figure{ID: "servershare", Title: "Share of each data server against load", X: stepAxis(f)}
	even := series(f, "even share", 5, func(s *analysis.Step) (float64, bool) {
		n := len(working(f, s))
		return 1 / float64(max(1, n)), n > 0
	}, unit.Percent)
	even.Dash, even.Dots = true, false
	c.Lines = append(lines, even)
	c.Y = figure.LinearAxis("% of the "+yieldOf(f).name, figure.Percent(), highest(c.Lines))
	c.Desc = "Share of the step's " + yieldOf(f).name + many + ". "
	if s := reference(f); s != nil {
		c.Desc += imbalance(f, s)
	}
	return c
}

// serverRateChart shows how many operations the data servers ended where bytes
// are what they are compared by; nil if there is only one.
func serverRateChart(f *analysis.Findings) *figure.Figure {
	if f.Measure == analysis.Rate {
		return nil
	}
	text := perSecond
	lines, many := serverLines(f, func(x *analysis.Share) float64 { return x.Operations }, text)
	if highest(lines) <= 0 {
		return nil
	}
	c := &figure.Figure{ID: "serverrate", Title: "Operations of each data server against load", X: stepAxis(f), Lines: lines}
	c.Y = rateAxis(c.Lines)
	c.Y.Name = "operations"
	var said []string
	for i := range lines {
		said = append(said, summit(f, &lines[i], text))
	}
	c.Desc = "Operations that ended well each second" + many + ": " + strings.Join(said, "; ") + "."
	return c
}

// serverLines are one for each of a few data servers; of many the largest, the
// middle and the smallest of each step. many says which. None if there is one.
func serverLines(f *analysis.Findings, of func(*analysis.Share) float64, text func(float64) string) (lines []figure.Line, many string) {
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
		return lines, " that each data server had"
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
	return lines, fmt.Sprintf(" of data servers: the largest, the middle and the smallest of up to %d", most)
}

// reference is the best step, else the last.
func reference(f *analysis.Findings) *analysis.Step {
	if s := bestStep(f); s != nil {
		return s
	}
	if n := len(f.Curve); n > 0 {
		return &f.Curve[n-1]
	}
	return nil
}

// serverErrorChart shows what each data server failed with; nil if none did.
func serverErrorChart(f *analysis.Findings) *figure.Figure {
	sums := map[string]int64{}
	for i := range f.Curve {
		for _, x := range f.Curve[i].Servers {
			if x.Errors > 0 {
				sums[x.Name] += x.Errors
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return nil
	}
	c := &figure.Figure{ID: "servererrors", Title: "Failed operations of each data server against load", X: stepAxis(f)}
	var said []string
	for k, name := range names[:min(len(names), mostServerLines)] {
		c.Lines = append(c.Lines, series(f, say.Plain(serverName(name)), k, func(s *analysis.Step) (float64, bool) {
			for _, x := range s.Servers {
				if x.Name == name && s.Hold > 0 {
					return float64(x.Errors) / s.Hold, true
				}
			}
			return 0, true
		}, perSecond))
		said = append(said, fmt.Sprintf("%s %s", say.Plain(serverName(name)), unit.Count(float64(sums[name]))))
	}
	c.Y = scaled(c.Lines, decimal(" errors/s"))
	c.Desc = fmt.Sprintf("Operations that failed each second, by the server that failed; in all steps: %s.", strings.Join(said, ", "))
	if n := len(names) - len(said); n > 0 {
		c.Desc += fmt.Sprintf(" %d more failed less often.", n)
	}
	return c
}
