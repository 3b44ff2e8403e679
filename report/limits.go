package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"weir/analysis"
	"weir/internal/say"
	"weir/report/figure"
)

// How much of what was used is shown.
const (
	mostResources = 40 // rows of a page
	mostEvidence  = 10 // sentences of a page
	textResources = 8  // rows of a text
	cellWidth     = 6  // columns of a share in a text
	leastShare    = 0.01
	nameWidth     = 34 // columns of a name in a text
)

const limitNote = "Use of each resource as a share of what there is of it; * is saturated, ? is too near to it or too noisy to tell. What has no size that is known is not in the table. " +
	"docs/methods.md tells when something counts as saturated, and what cannot be seen."

// A usedRow is one resource over all steps.
type usedRow struct {
	name  string
	most  float64
	full  bool
	steps []*analysis.ResourceUsage // as the curve's; nil: not seen
}

// used lists the resources, what is saturated first, then the most used.
func used(f *analysis.Findings) []*usedRow {
	rows := map[[3]string]*usedRow{}
	var all []*usedRow
	for i := range f.Curve {
		for k := range f.Curve[i].Resources {
			u := &f.Curve[i].Resources[k]
			id := [3]string{u.Resource, u.Host}
			if u.Share == nil {
				continue
			}
			if rows[id] == nil {
				rows[id] = &usedRow{name: u.Resource + ", " + u.Host, steps: make([]*analysis.ResourceUsage, len(f.Curve))}
				all = append(all, rows[id])
			}
			r := rows[id]
			r.steps[i], r.most, r.full = u, max(r.most, *u.Share), r.full || u.Saturated
		}
	}
	all = slices.DeleteFunc(all, func(r *usedRow) bool { return r.most < leastShare })
	slices.SortStableFunc(all, func(a, b *usedRow) int {
		if a.full != b.full {
			return map[bool]int{true: -1, false: 1}[a.full]
		}
		return cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.name, b.name))
	})
	return all
}

func usedCell(u *analysis.ResourceUsage) string {
	if u == nil {
		return "-"
	}
	text := strconv.FormatFloat(100**u.Share, 'f', 0, 64) + "%"
	switch {
	case u.Saturated:
		text += "*"
	case u.Undecided:
		text += "?"
	}
	return text
}

// loadCell writes a step's load without its unit.
func loadCell(f *analysis.Findings, s *analysis.Step) string {
	_, of := load(f)
	return strconv.FormatFloat(of(s), 'g', 6, 64)
}

// limitChapter says what limits the curve, with its evidence.
func limitChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	if len(f.Bottleneck) == 0 {
		return chapter{}
	}
	c := chapter{ID: "limits", Title: "What limits it", Mini: f.Validity.Status, Lead: say.Plain(f.LimitText()), Points: evidence(f)}
	if n := len(c.Points) - mostEvidence; n > 1 {
		c.Points = append(c.Points[:mostEvidence], fmt.Sprintf("And %d more like these; findings.json has them.", n))
	}
	c.Charts, c.Parts = drawings(plots), filled(limitSection(f))
	return c
}

// evidence is that of what limits the curve, and the first of what does so next.
func evidence(f *analysis.Findings) []string {
	var all []string
	for i, b := range f.Bottleneck {
		for k, text := range b.Evidence {
			if i == 0 || k == 0 {
				all = append(all, say.Plain(text))
			}
		}
	}
	return all
}

// limitSection is the table of what was used, step by step.
func limitSection(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{Title: "How much of each resource was used", Note: limitNote, table: table{Head: heads("<" + name)}}
	for i := range f.Curve {
		s.Head = append(s.Head, column{Text: loadCell(f, &f.Curve[i])})
	}
	for i, r := range used(f) {
		if i == mostResources {
			s.Note += fmt.Sprintf(" The %d most used are shown; findings.json has all.", mostResources)
			break
		}
		texts := []string{r.name}
		for _, u := range r.steps {
			texts = append(texts, usedCell(u))
		}
		s.row(false, texts...)
		for k, u := range r.steps {
			if u != nil && u.Saturated {
				s.paint(k+1, "warn")
			}
		}
	}
	return s
}

// limits writes the same for a terminal.
func (p printer) limits(f *analysis.Findings) {
	if len(f.Bottleneck) == 0 {
		return
	}
	p.title(f.Validity.Status, "What limits it")
	p.hanging("  ", say.Plain(f.LimitText()))
	for _, text := range evidence(f) {
		p.hanging("  - ", text)
	}
	if t := limitTable(f, p.opts.width()); len(t.Rows) > 0 {
		p.table(&t)
	}
	p.line("")
}

// limitTable is of as many steps as fit, with the first saturated one and the
// last among them.
func limitTable(f *analysis.Findings, width int) table {
	steps := chosenSteps(f, max(2, (width-nameWidth-2)/cellWidth))
	var names []string
	for _, i := range steps {
		names = append(names, loadCell(f, &f.Curve[i]))
	}
	t := table{Head: heads(append(names, "<"+f.Load())...)}
	for n, r := range used(f) {
		if n == textResources {
			break
		}
		var cells []string
		for _, i := range steps {
			cells = append(cells, usedCell(r.steps[i]))
		}
		t.row(false, append(cells, cut(say.Plain(r.name), nameWidth))...)
	}
	return t
}

// cut shortens a text in its middle, where names of hosts tell least.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most/2-1]) + ".." + string(runes[len(runes)-most+most/2+1:])
}

// chosenSteps returns at most so many places in the curve, evenly over it.
func chosenSteps(f *analysis.Findings, most int) []int {
	n := len(f.Curve)
	var all []int
	for i := range min(n, most) {
		at := i
		if n > most {
			at = i * (n - 1) / (most - 1)
		}
		all = append(all, at)
	}
	for i := range f.Curve {
		if f.Curve[i].Step != f.Bottleneck[0].Step || slices.Contains(all, i) {
			continue
		}
		for k := len(all) - 2; k >= 0; k-- { // instead of the one before it
			if all[k] < i {
				all[k] = i
				break
			}
		}
	}
	return all
}

// limitCard names the bottleneck among the figures that people ask for first.
func limitCard(f *analysis.Findings) (card, bool) {
	if len(f.Bottleneck) == 0 {
		return card{}, false
	}
	b := &f.Bottleneck[0]
	note := "see what limits it"
	for i := range f.Curve {
		if f.Curve[i].Step == b.Step && b.Resource != analysis.LimitNone && b.Resource != analysis.LimitLatency {
			note = "from " + at(f, &f.Curve[i]) + " on"
		}
	}
	if b.Host != "" {
		note = say.Plain(b.Host) + ", " + note
	}
	what := b.Resource
	switch what {
	case analysis.LimitNone:
		what = "nothing yet"
	case analysis.LimitUnknown:
		what = "cannot tell"
	}
	return card{"Limited by", what, note}, true
}
