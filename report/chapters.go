package report

import (
	"fmt"
	"slices"

	"weir/analysis"
	"weir/internal/say"
	"weir/report/figure"
)

// chapters are those of a report in the order in which people ask. Those that
// nothing is known for are left out.
func chapters(f *analysis.Findings, s *analysis.Series) []chapter {
	plots := Figures(f, s)
	all := []chapter{transferChapter(f), jobChapter(f, s, plots), loadChapter(f, append(plots.Load, plots.Papers...)), limitChapter(f, plots.Limits), phaseChapter(f, plots.Parts), {ID: "time", Title: "Against time", Charts: drawings(plots.Time)},
		latencyChapter(plots),
		backendChapter(f, plots.Backends), serverChapter(f, plots.Servers), linkChapter(f, s, plots.Links), hostChapter(f, s, plots), workerChapter(f), errorChapter(f, s), checkChapter(f), runChapter(f, s)}
	all = slices.DeleteFunc(all, func(c chapter) bool {
		return len(c.Charts)+len(c.Parts) == 0 && c.Lead == ""
	})
	for i := range all {
		for k := range all[i].Parts {
			p := &all[i].Parts[k]
			for n := range p.Charts {
				p.Charts[n].Under = p.Title != ""
			}
			if p.Text == "" && p.Brief == "" && all[i].ID != "run" { // plots have it, and that is no result
				p.Stamp = f.Validity.Status
			}
		}
	}
	return all
}

func loadChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	c := chapter{ID: "load", Title: "Against load", Charts: drawings(plots)}
	if noErrors(f) {
		c.Note = "No operation failed."
	}
	steps := stepSection(f, onPage)
	if f.Source == analysis.FromTable {
		steps = pointSection(f)
	}
	c.Parts = append([]section{steps}, filled(answerSection(f, onPage), fitSection(f, onPage))...)
	c.Parts = append(c.Parts, filled(whereSection(f), partSection("kinds", "Kinds of operations", f.Kinds))...)
	return c
}

// latencyChapter has the plots that are seen at once, and the other steps folded.
func latencyChapter(plots Plots) chapter {
	c := chapter{ID: "latencies", Title: "How long it took", Charts: drawings(plots.Distributions)}
	if n := len(plots.OtherSteps); n > 0 {
		c.Parts = append(c.Parts, section{Title: say.Either(n, "Another histogram, of another step", say.Plural(n, "histogram")+" more, of the other steps"), Charts: drawings(plots.OtherSteps), Folded: true})
	}
	return c
}

func serverChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	c := chapter{ID: "servers", Title: "Data servers", Charts: drawings(plots)}
	if s := reference(f); s != nil {
		c.Lead = imbalance(f, s)
	}
	if len(f.Servers) > 1 {
		whole, steps := partSection("whole", "All steps together", f.Servers), serverSteps(f)
		steps.Folded = len(steps.Rows) > mostOpenRows
		c.Parts = append(c.Parts, whole, steps)
	}
	own := serverSection(f)
	own.Folded = true
	c.Parts = append(c.Parts, filled(own)...)
	return c
}

// mostOpenRows is how long a table is that is seen at once.
const mostOpenRows = 40

// hostChapter has the busiest hosts beside each other, and each by itself, folded
// unless there are two.
func hostChapter(f *analysis.Findings, s *analysis.Series, plots Plots) chapter {
	c := chapter{ID: "hosts", Title: "Hosts", Charts: drawings(plots.Hosts)}
	folded := len(plots.EachHost) > 2
	for _, h := range plots.EachHost {
		part := section{Title: fmt.Sprintf("%s (%s)", h.Host, h.Role), Charts: drawings(h.Figures), Folded: folded, Screen: len(plots.EachHost) > fewHosts}
		if folded {
			part.Brief = h.Words
		} else {
			part.Note = h.Words
		}
		c.Parts = append(c.Parts, part)
	}
	if s != nil && len(s.Hosts) > len(plots.EachHost) {
		c.Note = fmt.Sprintf("The %d busiest of %d hosts have plots of their own; hosts.csv has all.", len(plots.EachHost), len(s.Hosts))
	}
	table := hostSection(f)
	table.Folded = true
	c.Parts = append(c.Parts, filled(table)...)
	return c
}

func checkChapter(f *analysis.Findings) chapter {
	s := checkSection(f)
	c := chapter{ID: s.ID, Title: s.Title, Mini: f.Validity.Status, Note: s.Note, Parts: []section{s}}
	own := &c.Parts[0]
	own.ID, own.Title, own.Note, own.Caption = "", "", "", s.Title
	c.Parts = append(c.Parts, filled(noteSection(f))...)
	return c
}

// runChapter tells how the run came about, so that it can be done again.
func runChapter(f *analysis.Findings, s *analysis.Series) chapter {
	c := chapter{ID: "run", Title: "The run"}
	if s == nil {
		return c
	}
	c.Parts = filled(commandSection(s), thresholdSection(f), environmentSection(s), programSection(s), eventSection(s), planSection(s), textSection("Everything that is known of the machine", s.About))
	for i := range c.Parts {
		c.Parts[i].Folded = c.Parts[i].Text != "" && c.Parts[i].ID == "" || len(c.Parts[i].Rows) > mostOpenRows/2
	}
	return c
}
