package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report/figure/draw"
)

// ComparisonHTML writes c as one file that needs no other files, no font and no network.
func ComparisonHTML(w io.Writer, c *compare.Comparison) error {
	var names []string
	runs := 0
	for _, g := range c.Groups {
		names = append(names, g.Name)
		runs += len(g.Runs)
	}
	p := newPage("comparison of "+strings.Join(names, ", "), c.Status, fmt.Sprintf("the least valid of %s", say.Plural(runs, "run")))
	p.Verdicts, p.Warnings, p.About = plain(ownVerdicts(c)), plain(c.Warnings), strings.Join(plain(methods(c)), " ")
	p.Footer = "Made by weir compare from run directories alone. Samples are runs, never seconds of a run. p is corrected for all figures " +
		"of a pair (Holm); intervals are not. Ratios are shown as changes in percent, on a logarithmic axis."
	p.Chapters = kept(chapter{ID: "beside", Title: "Side by side", Open: true, Charts: besideEachOther(c)},
		chapter{ID: "jobs", Title: "Jobs", Open: true, Parts: filled(outcomeSection(c))}, effectChapter(c))
	for i := range c.Pairs {
		p.Chapters = append(p.Chapters, pairChapter(c, i))
	}
	p.Chapters = append(p.Chapters, conditionChapter(c), groupChapter(c))
	return writePage(w, p)
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

// conditionChapter lists the other differences between the groups, the intended differences first.
func conditionChapter(c *compare.Comparison) chapter {
	all := chapter{ID: "conditions", Title: "What else differs"}
	s := section{Caption: "Keys of the plan and of the machine that are not the same in all groups"}
	if len(c.Conditions) == 0 {
		all.Brief, all.Note = "nothing", "Nothing that is known of the scenarios and of the machines differs between the groups."
		return all
	}
	planned := c.Effects != nil // otherwise the intended differences are unknown
	all.Brief = say.Plural(len(c.Conditions), "key")
	s.Note = "Keys of plan.json and about.json that are not the same in all groups. All but what was meant to differ may be the cause of " +
		"what is shown above."
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
	all.Parts = []section{s}
	return all
}

// groupChapter lists all runs.
func groupChapter(c *compare.Comparison) chapter {
	m := compare.MetricOf(c.Metrics[0])
	s := section{Caption: "Runs", Note: "The last column is the number of each run that the verdict stands on: its " + m.Title +
		" over all common steps.", table: table{Head: heads("<group", "<run directory", "<began", "block", "<validity", m.Title)}}
	for _, g := range c.Groups {
		for _, r := range g.Runs {
			block := "-"
			if r.Block > 0 {
				block = fmt.Sprint(r.Block)
			}
			s.row(false, g.Name, r.Dir, r.Start.UTC().Format("2006-01-02 15:04:05"), block, r.Status, orDash(r.Value, m.Format))
		}
	}
	return chapter{ID: "runs", Title: "Runs", Brief: fmt.Sprint(len(s.Rows)), Parts: []section{s}}
}

// pairChapter has the plots and tables of one pair.
func pairChapter(c *compare.Comparison, i int) chapter {
	pair := &c.Pairs[i]
	all := chapter{ID: fmt.Sprintf("pair%d", i), Title: say.Plain(pair.B) + " against " + say.Plain(pair.A), Lead: say.Plain(pair.Verdict),
		Open: !brevity(c)}
	all.Parts, all.Points = shiftSections(c, pair)
	for k := range all.Parts {
		s := &all.Parts[k]
		s.ID = fmt.Sprintf("t%d-%d", i, k)
		f := pairForest(pair, s.metric)
		f.ID = fmt.Sprintf("f%d-%s", i, s.metric.Name)
		all.Charts = append(all.Charts, drawing{Title: say.Capital(s.metric.Title), Desc: f.Desc, Forest: f})
	}
	return all
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

// pairForest has a row for each step with the metric, and the overall shift.
func pairForest(pair *compare.Pair, m *compare.Metric) *draw.Forest {
	desc := fmt.Sprintf("Shift of %s from %s to %s by %s, with 95%% intervals. %s", m.Title, say.Plain(pair.A), say.Plain(pair.B), pair.Load,
		better(m))
	f := newForest(m, m.Title, desc)
	add := func(name string, s *compare.Shift) {
		if s.Metric != m.Name || s.RunsA == 0 || s.RunsB == 0 {
			return
		}
		f.Rows = append(f.Rows, draw.ForestRow{Name: name, Class: resultClass(s.Result), Value: s.Value, Low: s.Low, High: s.High,
			Note: fmt.Sprintf("%s: %s to %s, %s; %s", name, m.Format(s.A), m.Format(s.B), m.Signed(s.Value), s.Result)})
	}
	for i := range pair.Steps {
		name := loadText(&pair.Steps[i], pair.Load) + " " + pair.Load
		if pair.Load == analysis.Stages {
			name = "stage " + loadText(&pair.Steps[i], pair.Load)
		}
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
		return "Right is better"
	case compare.Lower:
		return "Left is better"
	}
	return ""
}

// effectChapter shows the effects of the factors of a campaign.
func effectChapter(c *compare.Comparison) chapter {
	if c.Effects == nil {
		return chapter{}
	}
	m := compare.MetricOf(c.Effects.Metric)
	f := newForest(m, "Effects of factors",
		"Shift of "+m.Title+" by factor and level against the first level, with 95% intervals. "+better(m))
	f.ID = "effects"
	for i := range c.Effects.Main {
		x := &c.Effects.Main[i]
		name := x.Factor + " " + x.Level
		f.Rows = append(f.Rows, draw.ForestRow{Name: name, Class: resultClass(x.Result), Value: x.Value, Low: x.Low, High: x.High,
			Note: fmt.Sprintf("%s against %s: %s; %s", name, x.Against, m.Signed(x.Value), x.Result)})
	}
	all := chapter{ID: "factors", Title: "Effects of the factors on the " + m.Title, Open: true, Parts: effectSections(c)}
	for i := range all.Parts {
		all.Parts[i].Points = nil // they are the note
	}
	if len(f.Rows) > 0 {
		all.Charts = []drawing{{Title: "Main effects", Desc: f.Desc, Forest: f}}
	}
	return all
}
