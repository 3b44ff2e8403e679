package report

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// Bounds of the amount of resources that is shown.
const (
	mostResources = 40 // rows
	mostEvidence  = 10 // sentences
	mostTextSteps = 10 // columns of a text
	mostUsed      = 6  // lines of a plot
	leastShare    = 0.01
)

const limitNote = "Use of each resource as a share of what there is of it; * is saturated, ? is too near to it or too noisy to tell. " +
	"What has no size that is known is not in the table. docs/methods.md tells when something counts as saturated, and what cannot be seen."

// A usedRow is one resource over all steps.
type usedRow struct {
	name  string
	most  float64
	full  bool
	steps []*analysis.ResourceUsage // in the order of the curve; nil: not observed
}

// used lists the resources: saturated resources first, then the most used.
func used(f *analysis.Findings) []*usedRow {
	rows := map[[2]string]*usedRow{}
	var all []*usedRow
	for i := range f.Curve {
		for k := range f.Curve[i].Resources {
			u := &f.Curve[i].Resources[k]
			if u.Share == nil {
				continue
			}
			id := [2]string{u.Resource, u.Host}
			r := rows[id]
			if r == nil {
				r = &usedRow{name: resourceName(u.Resource) + ", " + u.Host, steps: make([]*analysis.ResourceUsage, len(f.Curve))}
				rows[id], all = r, append(all, r)
			}
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

// resourceName returns the name of a resource for readers.
func resourceName(resource string) string {
	name := map[string]string{analysis.ResourceCPU: "CPU", analysis.ResourceIOWait: "I/O wait", analysis.LimitNone: "nothing yet",
		analysis.LimitUnknown: "unknown"}[resource]
	return cmp.Or(name, resource)
}

func usedCell(u *analysis.ResourceUsage) string {
	if u == nil {
		return "-"
	}
	text := share(*u.Share)
	switch {
	case u.Saturated:
		text += "*"
	case u.Undecided:
		text += "?"
	}
	return text
}

// limitChapter describes the bottleneck of the curve; its evidence is folded.
func limitChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	if len(f.Bottleneck) == 0 {
		return chapter{}
	}
	c := chapter{ID: "limits", Title: "What limits it", Lead: say.Plain(f.LimitText()), Open: true, Charts: drawings(plots)}
	if points := evidence(f); len(points) > 0 {
		if n := len(points) - mostEvidence; n > 1 {
			points = append(points[:mostEvidence], fmt.Sprintf("And %d more like these; findings.json has them.", n))
		}
		c.Parts = append(c.Parts, section{ID: "evidence", Title: "Evidence", Points: points})
	}
	c.Parts = append(c.Parts, filled(limitSection(f))...)
	return c
}

// evidence returns the evidence for the first bottleneck, and the first piece of evidence for each
// further bottleneck.
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

// limitSection is the table of the resources used, step by step.
func limitSection(f *analysis.Findings) section {
	s := section{ID: "used", Title: "How much of each resource was used", Note: limitNote, table: table{Head: heads("<" + f.Load())}}
	inTexts := chosenSteps(f, mostTextSteps)
	for i, x := range steps(f) {
		c := column{Text: loadCell(f, x), detail: onPage}
		if slices.Contains(inTexts, i) {
			c.detail = inText
		}
		s.Head = append(s.Head, c)
	}
	all := used(f)
	for _, r := range all[:min(len(all), mostResources)] {
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
	if len(all) > mostResources {
		s.Note += fmt.Sprintf(" The %d most used are shown; findings.json has all.", mostResources)
	}
	return s
}

// chosenSteps returns at most so many positions in the curve, evenly distributed, which include the
// first saturated step and the last step.
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
	full := slices.IndexFunc(f.Curve, func(s analysis.Step) bool { return s.Step == f.Bottleneck[0].Step })
	if full < 0 || slices.Contains(all, full) {
		return all
	}
	for k := len(all) - 2; k >= 0; k-- { // instead of the position before it
		if all[k] < full {
			all[k] = full
			break
		}
	}
	return all
}

// limitCard names the bottleneck among the figures that readers look for first.
func limitCard(f *analysis.Findings) []card {
	if len(f.Bottleneck) == 0 {
		return nil
	}
	b := &f.Bottleneck[0]
	note := "see what limits it"
	if s := stepOf(f, b.Step); s != nil && b.Resource != analysis.LimitNone && b.Resource != analysis.LimitLatency {
		note = "from " + at(f, s) + " on"
	}
	if b.Host != "" {
		note = say.Plain(b.Host) + ", " + note
	}
	return []card{{"Limited by", resourceName(b.Resource), note}}
}

// leading keeps only the most used host of each side for each resource: ten equally busy interfaces
// would hide all other resources.
func leading(all []*usedRow) []*usedRow {
	seen := map[[2]string]bool{}
	return slices.DeleteFunc(all, func(r *usedRow) bool {
		var kind [2]string
		for _, u := range r.steps {
			if u != nil {
				kind = [2]string{u.Resource, u.Side}
			}
		}
		if len(seen) >= mostUsed || seen[kind] {
			return true
		}
		seen[kind] = true
		return false
	})
}

// resourceChart shows the use of the most used resources; it returns nil if no use is known.
func resourceChart(f *analysis.Findings) *figure.Figure {
	c := &figure.Figure{ID: "resources", Title: "The most used resources against load", X: stepAxis(f)}
	for _, r := range leading(used(f)) {
		l := figure.Line{Name: say.Plain(r.name), Color: len(c.Lines), Dots: true}
		for i, u := range r.steps {
			if u == nil {
				continue
			}
			s := &f.Curve[i]
			note := fmt.Sprintf("%s: %s %s", at(f, s), l.Name, unit.Percent(*u.Share))
			l.Points = append(l.Points, figure.Point{X: loadOf(f, s), Y: *u.Share, Note: note})
		}
		c.Lines = append(c.Lines, l)
	}
	if len(c.Lines) == 0 || len(f.Curve) < 2 {
		return nil
	}
	c.Y = percentAxis("% of what there is", 1)(c.Lines)
	c.Y.Name = "use"
	c.Desc = "Each resource on the host of each side that uses most of it"
	return c
}
