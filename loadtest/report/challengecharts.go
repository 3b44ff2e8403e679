package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/links"
	"weir/loadtest/report/figure"
)

// Bounds of the plots of data challenges.
const (
	mostMatrix = 24 // sources or destinations of a matrix
	mostStrip  = 20 // links in the matrix of minutes
	mostSpans  = 60 // columns of it
	mostAlone  = 3  // links with a plot of their own
)

// missing returns the bytes per second by which a link was below its target.
func missing(l *links.Link) float64 { return max(0, l.Target-l.Achieved) }

// linkNote describes a link while the user points at it.
func linkNote(c *links.Challenge, l *links.Link) string {
	text := fmt.Sprintf("%s: %s of the target (over all levels %s of %s)", l.Name(), achieved(atLevel(c, l)), unit.Bits(l.Achieved),
		unit.Bits(l.Target))
	if l.Cause != nil {
		text += "; " + causeText(l.Cause)
	}
	return text
}

// matrixChart shows the achieved share of the target of each link; it returns nil for other runs.
func matrixChart(f *analysis.Findings) *figure.Figure {
	c := f.Challenge
	if c == nil || len(c.Links) == 0 {
		return nil
	}
	sources, dests := matrixSites(c)
	m := &figure.Matrix{What: "achieved share of the target", Sums: true}
	m.Rows, m.Columns = append(slices.Clone(sources), "all"), append(slices.Clone(dests), "all")
	m.Cells = make([][]figure.Cell, len(m.Rows))
	for i := range m.Cells {
		m.Cells[i] = make([]figure.Cell, len(m.Columns))
	}
	rows, columns := indexes(sources), indexes(dests)
	for i := range c.Links {
		l := &c.Links[i]
		row, ok := rows[l.Source]
		column, ok2 := columns[l.Dest]
		switch {
		case !ok || !ok2:
		case l.Minutes == 0:
			m.Cells[row][column] = figure.Cell{There: true, Share: math.NaN(), Text: "–", Note: l.Name() + ": no target was due"}
		default:
			m.Cells[row][column] = figure.PercentCell(atLevel(c, l), linkNote(c, l))
		}
	}
	matrixSums(c, m, rows, columns)
	out := &figure.Figure{ID: "matrix", Title: "Achieved share of the target rate, in percent", Matrix: m,
		X: figure.Axis{Label: "destination"}, Y: figure.Axis{Label: "source"}, Desc: matrixWords(c, m, sources, dests)}
	if levels(c) {
		out.Title = fmt.Sprintf("Achieved share of the target rate at the level of %s (%s), in percent", share(c.Level),
			unit.Seconds(c.LevelSeconds))
	}
	return out
}

// matrixSums fills in the last row and the last column: the shares of all links of a site, each link
// by its target.
func matrixSums(c *links.Challenge, m *figure.Matrix, rows, columns map[string]int) {
	type sum struct{ target, achieved float64 }
	var all sum
	from, to := map[string]sum{}, map[string]sum{}
	add := func(s sum, l *links.Link) sum { return sum{s.target + l.Target, s.achieved + l.Target*atLevel(c, l)} }
	for i := range c.Links {
		l := &c.Links[i]
		from[l.Source], to[l.Dest], all = add(from[l.Source], l), add(to[l.Dest], l), add(all, l)
	}
	cell := func(s sum, note string) figure.Cell {
		if s.target <= 0 {
			return figure.Cell{}
		}
		return figure.PercentCell(s.achieved/s.target, note)
	}
	for site, row := range rows {
		m.Cells[row][len(columns)] = cell(from[site], "all links from "+site)
	}
	for site, column := range columns {
		m.Cells[len(rows)][column] = cell(to[site], "all links to "+site)
	}
	m.Cells[len(rows)][len(columns)] = cell(all, "all links")
}

// matrixWords describes what a matrix shows, and what it leaves out.
func matrixWords(c *links.Challenge, m *figure.Matrix, sources, dests []string) string {
	const words = "An empty field: no link. A dark row: the source is slow; a dark column: the destination; " +
		"a single dark field: the line between them"
	shown := m.Count()
	if shown == len(c.Links) {
		return words
	}
	return fmt.Sprintf("%s. Shown are %d of %d links: %d sources and %d destinations of the links that miss the most bytes, "+
		"those at the top left; "+
		"\"all\" has all links of a site", words, shown, len(c.Links), len(sources), len(dests))
}

func indexes(names []string) map[string]int {
	all := map[string]int{}
	for i, name := range names {
		all[name] = i
	}
	return all
}

// matrixSites returns the sources and the destinations of a matrix: all of them in the order of the
// plan, or those of the links that miss most, the sites that miss most first.
func matrixSites(c *links.Challenge) (sources, dests []string) {
	for i := range c.Sites {
		if c.Sites[i].Out.Links > 0 {
			sources = append(sources, c.Sites[i].Site)
		}
		if c.Sites[i].In.Links > 0 {
			dests = append(dests, c.Sites[i].Site)
		}
	}
	if len(sources) <= mostMatrix && len(dests) <= mostMatrix {
		return sources, dests
	}
	worst := worstLinks(c)
	from, to := map[string]float64{}, map[string]float64{}
	for _, l := range worst {
		from[l.Source], to[l.Dest] = from[l.Source]+missing(l), to[l.Dest]+missing(l)
	}
	return chosen(worst, from, func(l *links.Link) string { return l.Source }), chosen(worst, to, func(l *links.Link) string { return l.Dest })
}

// chosen returns the sites of the worst links, sorted by what they miss.
func chosen(worst []*links.Link, misses map[string]float64, of func(*links.Link) string) []string {
	var all []string
	for _, l := range worst {
		if name := of(l); len(all) < mostMatrix && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(misses[b], misses[a]) })
	return all
}

// worstLinks returns the links by the bytes that they miss, the most first.
func worstLinks(c *links.Challenge) []*links.Link {
	all := make([]*links.Link, len(c.Links))
	for i := range c.Links {
		all[i] = &c.Links[i]
	}
	slices.SortStableFunc(all, func(a, b *links.Link) int { return cmp.Compare(missing(b), missing(a)) })
	return all
}

// challengeCharts plots the rates of a challenge against time: the minutes of the worst links, all
// links together, and the worst links by themselves.
func challengeCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	c := f.Challenge
	if c == nil || s == nil || len(s.Links) == 0 {
		return nil
	}
	worst := worstLinks(c)
	worst = slices.DeleteFunc(worst, func(l *links.Link) bool { return l.Below == 0 || !troubled(seriesOf(s, l)) })
	all := those(minuteChart(c, s, worst), totalRate(c, s))
	worst = slices.DeleteFunc(worst, func(l *links.Link) bool { return c.LevelSeconds > 0 && l.Held() })
	for i, l := range worst[:min(mostAlone, len(worst))] {
		if x := seriesOf(s, l); x != nil {
			all = append(all, linkRate(x, i))
		}
	}
	return all
}

// follows reports whether the link was below its target since that had just changed: no cause of
// anything.
func follows(p *links.Point) bool { return p.Kind == links.Injection && p.Detail == links.Start }

// troubled reports whether a minute of a link was below its target for another reason than a change
// of the target.
func troubled(x *links.Series) bool {
	return x != nil && slices.ContainsFunc(x.Points, func(p links.Point) bool { return p.Below && !follows(&p) })
}

// seriesOf returns the minutes of a link, nil if there are none.
func seriesOf(s *analysis.Series, l *links.Link) *links.Series {
	for i := range s.Links {
		if x := &s.Links[i]; x.Source == l.Source && x.Dest == l.Dest {
			return x
		}
	}
	return nil
}

// rateAxes sets the axes of a plot of rates against time.
func rateAxes(c *figure.Figure, last float64) {
	c.X, c.Y = figure.TimeAxis(last), bitsAxis(c.Lines)
	c.Y.Name = "rate"
}

// totalRate plots the sums of all links.
func totalRate(c *links.Challenge, s *analysis.Series) *figure.Figure {
	type sum struct{ target, achieved float64 }
	length := max(c.Minute, 1)
	sums, last := map[int]sum{}, 0.0
	for i := range s.Links {
		for k := range s.Links[i].Points {
			p := &s.Links[i].Points[k]
			x := sums[int(p.At/length)]
			sums[int(p.At/length)] = sum{x.target + p.Target, x.achieved + p.Achieved}
			last = max(last, p.At+length/2)
		}
	}
	out := &figure.Figure{ID: "challengetime", Title: "Rate of all links against time",
		Lines: []figure.Line{{Name: "target", Color: 1, Dash: true}, {Name: "achieved"}}, Desc: "Mean of each " + unit.Seconds(length)}
	for i := range int(last/length) + 1 {
		if x, ok := sums[i]; ok {
			at := (float64(i) + 0.5) * length
			out.Lines[0].Points = append(out.Lines[0].Points, figure.Point{X: at, Y: x.target})
			out.Lines[1].Points = append(out.Lines[1].Points, figure.Point{X: at, Y: x.achieved})
		}
	}
	rateAxes(out, last)
	return out
}

// kindWords returns the name of a kind of cause, and the letter for it in the matrix of minutes.
func kindWords(k links.Kind) (name, letter string) {
	switch k {
	case links.Source:
		return "source storage", "S"
	case links.Dest:
		return "destination storage", "D"
	case links.Line:
		return "line", "L"
	case links.Service:
		return "transfer service", "T"
	case links.Credentials:
		return "credentials", "C"
	case links.Injection:
		return "weir", "W"
	}
	return "cannot tell", "?"
}

// linkRate plots one link: its target, its rate, and a dot in the color of the cause for each minute
// below the target.
func linkRate(x *links.Series, number int) figure.Figure {
	out := figure.Figure{ID: fmt.Sprint("linkrate", number+1), Title: say.Plain(x.Source+" to "+x.Dest) + " against time",
		Lines: []figure.Line{{Name: "target", Color: 1, Dash: true}, {Name: "achieved"}}}
	last := 0.0
	dots := map[links.Kind]int{}
	for i := range x.Points {
		p := &x.Points[i]
		last = max(last, p.At+p.Seconds/2)
		out.Lines[0].Points = append(out.Lines[0].Points, figure.Point{X: p.At, Y: p.Target})
		out.Lines[1].Points = append(out.Lines[1].Points, figure.Point{X: p.At, Y: p.Achieved})
		if !p.Below || follows(p) {
			continue
		}
		if dots[p.Kind] == 0 {
			name, _ := kindWords(p.Kind)
			dots[p.Kind] = len(out.Lines)
			out.Lines = append(out.Lines, figure.Line{Name: name, Color: len(out.Lines) % 6, Dots: true, Loose: true})
		}
		l := &out.Lines[dots[p.Kind]]
		l.Points = append(l.Points, figure.Point{X: p.At, Y: p.Achieved, Note: l.Name})
	}
	out.Desc = "A dot: less than 95% of the target, with its cause"
	rateAxes(&out, last)
	return out
}

// minuteChart shows the worst links minute by minute: the achieved share as a color, the cause as a
// letter. It returns nil if all links reached their targets in all minutes.
func minuteChart(c *links.Challenge, s *analysis.Series, worst []*links.Link) *figure.Figure {
	last := 0.0
	for i := range s.Links {
		for k := range s.Links[i].Points {
			last = max(last, s.Links[i].Points[k].At)
		}
	}
	span := max(c.Minute, 1) * math.Max(1, math.Ceil((last+1)/max(c.Minute, 1)/mostSpans))
	m := &figure.Matrix{What: "achieved share of the target"}
	for i := range int(last/span) + 1 {
		name := ""
		if i%5 == 0 {
			name = fmt.Sprintf("%.0f", float64(i)*span/60)
		}
		m.Columns = append(m.Columns, name)
	}
	left := 0
	for _, l := range worst {
		x := seriesOf(s, l)
		if x == nil {
			continue
		}
		if len(m.Rows) == mostStrip {
			left++
			continue
		}
		m.Rows, m.Cells = append(m.Rows, l.Name()), append(m.Cells, minuteCells(x, span, len(m.Columns)))
	}
	if len(m.Rows) == 0 {
		return nil
	}
	out := &figure.Figure{ID: "linkminutes", Title: "Links below their target, minute by minute", Matrix: m,
		X: figure.Axis{Label: "minutes since the start"}, Y: figure.Axis{Label: "link"},
		Desc: "Cause below 95%: S source storage, D destination storage, L line, T transfer service, C credentials, W weir, ? cannot tell"}
	if left > 0 {
		out.Desc += fmt.Sprintf(". The %d links that miss the most bytes of %d below their target", mostStrip, mostStrip+left)
	}
	return out
}

// minuteCells returns the fields of a link, each of so many seconds: its share of the target, and
// the cause that took most of the minutes below it.
func minuteCells(x *links.Series, span float64, n int) []figure.Cell {
	type sum struct {
		target, achieved float64
		kinds            map[links.Kind]float64 // missing bytes
	}
	sums := make([]sum, n)
	for i := range x.Points {
		p := &x.Points[i]
		b := &sums[min(n-1, max(0, int(p.At/span)))]
		b.target, b.achieved = b.target+p.Target*p.Seconds, b.achieved+p.Achieved*p.Seconds
		if p.Below && !follows(p) {
			if b.kinds == nil {
				b.kinds = map[links.Kind]float64{}
			}
			b.kinds[p.Kind] += (p.Target - p.Achieved) * p.Seconds
		}
	}
	cells := make([]figure.Cell, n)
	for i := range sums {
		b := &sums[i]
		if b.target <= 0 {
			continue
		}
		ratio := b.achieved / b.target
		cells[i] = figure.Cell{There: true, Share: ratio,
			Note: fmt.Sprintf("%s to %s, minute %.0f: %s", x.Source, x.Dest, float64(i)*span/60, achieved(ratio))}
		if kind, most := leadingKind(b.kinds); most > 0 {
			name, letter := kindWords(kind)
			cells[i].Text = letter
			cells[i].Note += ", " + name
		}
	}
	return cells
}

// leadingKind returns the kind with the most missing bytes; of equal ones the first by name.
func leadingKind(kinds map[links.Kind]float64) (kind links.Kind, most float64) {
	for k, bytes := range kinds {
		if bytes > most || bytes == most && k < kind {
			kind, most = k, bytes
		}
	}
	return kind, most
}
