package report

import (
	"slices"

	"weir/analysis"
	"weir/figure"
	"weir/internal/say"
)

// A chapter of a page answers one question: with sentences, plots and parts.
type chapter struct {
	ID, Title string
	Mini      string // the stamp beside the title; "": none
	Lead      string
	Points    []string
	Note      string
	Charts    []drawing
	Parts     []section
}

// chapters are those of a report in the order in which people ask. Those that
// nothing is known for are left out.
func chapters(f *analysis.Findings, s *analysis.Series) []chapter {
	plots := Figures(f, s)
	all := []chapter{loadChapter(f, plots.Load), limitChapter(f), phaseChapter(f), {ID: "time", Title: "Against time", Charts: drawings(plots.Time)},
		latencyChapter(f, s, plots.Distributions),
		serverChapter(f), hostChapter(f), checkChapter(f), runChapter(s)}
	all = slices.DeleteFunc(all, func(c chapter) bool {
		return len(c.Charts)+len(c.Parts) == 0 && c.Lead == ""
	})
	for i := range all {
		for k := range all[i].Parts {
			p := &all[i].Parts[k]
			if p.Text == "" {
				p.Stamp = f.Validity.Status
			}
			if p.Caption == "" {
				p.Caption = p.Title
			}
		}
	}
	return all
}

// filled leaves out sections without a row.
func filled(all ...section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return len(s.Rows) == 0 && s.Text == "" && len(s.Charts) == 0 })
}

func loadChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	c := chapter{ID: "load", Title: "Against load", Charts: drawings(plots)}
	if noErrors(f) {
		c.Note = "No operation failed."
	}
	steps := stepSection(f)
	if f.Source == analysis.FromTable {
		steps = pointSection(f)
	}
	c.Parts = append([]section{steps}, filled(answerSection(f), fitSection(f))...)
	if redirected(f) {
		c.Parts = append(c.Parts, whereSection(f))
	}
	c.Parts = append(c.Parts, filled(partSection("kinds", "Kinds of operations", f.Kinds))...)
	return c
}

func phaseChapter(f *analysis.Findings) chapter {
	c := chapter{ID: "phases", Title: "Phases of the steps", Parts: filled(subintervalSection(f), phaseSection(f))}
	for i := range c.Parts {
		c.Parts[i].Folded = true
	}
	return c
}

// latencyChapter has the plots that are seen at once, and the other steps folded.
func latencyChapter(f *analysis.Findings, s *analysis.Series, plots []figure.Figure) chapter {
	c := chapter{ID: "latencies", Title: "How long it took", Charts: drawings(plots)}
	if s == nil {
		return c
	}
	if others := histograms(f, s, false); len(others) > 0 {
		c.Parts = append(c.Parts, section{Title: "The other " + say.Plural(len(others), "step"), Charts: drawings(others), Folded: true})
	}
	return c
}

func serverChapter(f *analysis.Findings) chapter {
	c := chapter{ID: "servers", Title: "Data servers"}
	if len(f.Servers) > 1 {
		whole := partSection("whole", "All steps together", f.Servers)
		c.Parts = append(c.Parts, whole, serverSteps(f))
	}
	own := serverSection(f)
	own.Folded = true
	c.Parts = append(c.Parts, filled(own)...)
	return c
}

func hostChapter(f *analysis.Findings) chapter {
	table := hostSection(f)
	table.Folded = true
	return chapter{ID: "hosts", Title: "Hosts", Parts: filled(table)}
}

func checkChapter(f *analysis.Findings) chapter {
	s := checkSection(f)
	c := chapter{ID: s.ID, Title: s.Title, Mini: f.Validity.Status, Note: s.Note, Parts: []section{s}}
	own := &c.Parts[0]
	own.ID, own.Title, own.Note, own.Caption = "", "", "", s.Title
	return c
}

func runChapter(s *analysis.Series) chapter {
	c := chapter{ID: "run", Title: "The run"}
	if s != nil {
		c.Parts = filled(eventSection(s), environment(s), textSection("Plan", s.Plan))
	}
	for i := range c.Parts {
		c.Parts[i].Folded = true
	}
	return c
}
