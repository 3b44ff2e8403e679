package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"weir/analysis/compare"
	"weir/internal/say"
	"weir/report/figure/draw"
)

//go:embed compare.html.tmpl
var comparisonText string

// A comparisonPage is what the template shows.
type comparisonPage struct {
	pageHead
	Verdicts []string
	Methods  []string
	Warnings []string
	Beside   []drawing // the curves of all groups
	Outcomes section   // what became of jobs; no rows: there were none
	Unlike   section   // what else differs
	Groups   section
	Pairs    []pairPart
	Effects  *pairPart
}

// A pairPart is the plots and tables of one pair.
type pairPart struct {
	Title   string
	Verdict string
	Plots   []drawing
	Tables  []section
	Same    []string
}

// ComparisonHTML writes c as one file that needs nothing else: no script, no
// font, no network.
func ComparisonHTML(w io.Writer, c *compare.Comparison) error {
	return writePage(w, comparisonText, newComparisonPage(c))
}

func newComparisonPage(c *compare.Comparison) comparisonPage {
	var names []string
	for _, g := range c.Groups {
		names = append(names, say.Plain(g.Name))
	}
	p := comparisonPage{pageHead: newHead("comparison of "+strings.Join(names, ", "), c.Status), Groups: groupSection(c)}
	verdicts := c.Verdicts
	if brevity(c) {
		verdicts = verdicts[:len(verdicts)-len(c.Pairs)] // those of pairs are beside them
	}
	for _, v := range verdicts {
		p.Verdicts = append(p.Verdicts, say.Plain(v))
	}
	for _, warning := range c.Warnings {
		p.Warnings = append(p.Warnings, say.Plain(warning))
	}
	for _, how := range methods(c) {
		p.Methods = append(p.Methods, say.Plain(how))
	}
	if c.Effects != nil {
		p.Effects = effectPart(c)
	}
	p.Beside, p.Unlike = besideEachOther(c), conditionSection(c)
	p.Outcomes = outcomeSection(c)
	for i := range c.Pairs {
		p.Pairs = append(p.Pairs, newPairPart(c, i))
	}
	return p
}

// besideEachOther draws the curves of all groups into the same plots.
func besideEachOther(c *compare.Comparison) []drawing {
	var sides []Side
	for _, g := range c.Groups {
		side := Side{Name: say.Plain(g.Name)}
		for _, r := range g.Runs {
			if r.Found != nil && len(r.Found.Curve) > 0 {
				side.Runs = append(side.Runs, r.Found)
			}
		}
		sides = append(sides, side)
	}
	return drawings(Overlay(sides))
}

// conditionSection shows what else differs between the groups, what was meant
// to differ first.
func conditionSection(c *compare.Comparison) section {
	s := section{ID: "conditions", Title: "What else differs", Caption: "Keys of the plan and of the machine that are not the same in all groups"}
	if len(c.Conditions) == 0 {
		s.Note = "Nothing that is known of the scenarios and of the machines differs between the groups."
		return s
	}
	planned := c.Effects != nil // else nobody has said what was meant to differ
	s.Note = "Keys of plan.json and about.json that are not the same in all groups. All but what was meant to differ may be the cause of what is shown above."
	names := []string{"<key"}
	if planned {
		names = append(names, "<meant")
	}
	for _, g := range c.Groups {
		names = append(names, "~"+brief(g.Name))
	}
	s.Head = heads(names...)
	for _, x := range c.Conditions {
		texts := []string{x.Name}
		if planned {
			texts = append(texts, map[bool]string{true: "yes", false: "no"}[x.Meant])
		}
		for _, v := range x.Values {
			texts = append(texts, cmp.Or(v, "-"))
		}
		s.row(x.Meant, texts...)
	}
	return s
}

// groupSection lists all runs.
func groupSection(c *compare.Comparison) section {
	m := compare.MetricOf(c.Metrics[0])
	s := section{ID: "runs", Title: "Runs", Note: "The last column is the number of each run that the verdict stands on: its " + m.Title + " over all common steps.",
		table: table{Head: heads("<", "<run directory", "<began", "block", "<", m.Title)}}
	for _, g := range c.Groups {
		for _, r := range g.Runs {
			block := "-"
			if r.Block > 0 {
				block = fmt.Sprint(r.Block)
			}
			s.row(false, g.Name, r.Dir, r.Start.UTC().Format("2006-01-02 15:04:05"), block, r.Status, orDash(r.Value, m.Format))
		}
	}
	return s
}

func newPairPart(c *compare.Comparison, i int) pairPart {
	pair := &c.Pairs[i]
	part := pairPart{Title: say.Plain(pair.B) + " against " + say.Plain(pair.A), Verdict: say.Plain(pair.Verdict)}
	single := pair.RunsA == 1 && pair.RunsB == 1
	for _, name := range c.Metrics {
		m := compare.MetricOf(name)
		t := shiftTable(pair, m, single)
		if len(t.Rows) == 0 {
			continue
		}
		if same, value := allEqual(pair, m); same {
			part.Same = append(part.Same, say.Capital(m.Title)+": "+value+" in all runs of both.")
			continue
		}
		f := pairForest(pair, m)
		f.ID, f.Stamp = fmt.Sprintf("f%d-%s", i, m.Name), c.Status
		part.Plots = append(part.Plots, drawing{Title: say.Capital(m.Title), Desc: f.Desc, Forest: f})
		part.Tables = append(part.Tables, section{ID: fmt.Sprintf("t%d-%s", i, m.Name), Title: say.Capital(m.Title), Stamp: c.Status, table: t})
	}
	return part
}

// newForest returns a forest plot of shifts of m without rows.
func newForest(m *compare.Metric, title, desc string) *draw.Forest {
	f := &draw.Forest{Title: title, Desc: desc, Log: !m.Plain, Least: 0.02, Signed: m.Signed}
	if m.Plain {
		f.Least = 0.001
	}
	return f
}

// resultClass is the color of a result.
func resultClass(result string) string {
	switch result {
	case compare.Better:
		return "ok"
	case compare.Worse:
		return "fail"
	case compare.Different:
		return "c0"
	}
	return "skipped"
}

// pairForest has a row for each step with the metric, and the overall one.
func pairForest(pair *compare.Pair, m *compare.Metric) *draw.Forest {
	f := newForest(m, m.Title, fmt.Sprintf("Shift of %s from %s to %s with its 95%% interval, step by step. %s", m.Title, say.Plain(pair.A), say.Plain(pair.B), better(m)))
	add := func(name string, s *compare.Shift) {
		if s.Metric != m.Name || s.RunsA == 0 || s.RunsB == 0 {
			return
		}
		f.Rows = append(f.Rows, draw.ForestRow{Name: name, Class: resultClass(s.Result), Value: s.Value, Low: s.Low, High: s.High,
			Note: fmt.Sprintf("%s: %s to %s, %s; %s", name, m.Format(s.A), m.Format(s.B), m.Signed(s.Value), s.Result)})
	}
	for i := range pair.Steps {
		name := loadText(&pair.Steps[i]) + " " + pair.Load
		for k := range pair.Steps[i].Metrics {
			add(name, &pair.Steps[i].Metrics[k])
		}
	}
	for i := range pair.PerRun {
		add("run", &pair.PerRun[i])
	}
	add("overall", &pair.Overall)
	return f
}

func better(m *compare.Metric) string {
	switch m.Better {
	case compare.Higher:
		return "Right is better."
	case compare.Lower:
		return "Left is better."
	}
	return ""
}

// effectPart is what the factors of a campaign do.
func effectPart(c *compare.Comparison) *pairPart {
	m := compare.MetricOf(c.Effects.Metric)
	part := &pairPart{Title: "What the factors do to the " + m.Title}
	f := newForest(m, "Effects of factors", "Shift by each level against the first one of its factor, over all levels of the others, with its 95% interval. "+better(m))
	f.ID, f.Stamp = "effects", c.Status
	for i := range c.Effects.Main {
		x := &c.Effects.Main[i]
		name := x.Factor + " " + x.Level
		f.Rows = append(f.Rows, draw.ForestRow{Name: name, Class: resultClass(x.Result), Value: x.Value, Low: x.Low, High: x.High,
			Note: fmt.Sprintf("%s against %s: %s; %s", name, x.Against, m.Signed(x.Value), x.Result)})
	}
	if len(f.Rows) > 0 {
		part.Plots = append(part.Plots, drawing{Title: "Main effects", Desc: f.Desc, Forest: f})
	}
	for i, t := range effectTables(c.Effects, m) {
		part.Tables = append(part.Tables, section{ID: fmt.Sprintf("e%d", i), Title: []string{"Main effects", "Interactions"}[i], Stamp: c.Status, Note: say.Plain(c.Effects.Detail), table: t})
	}
	return part
}
