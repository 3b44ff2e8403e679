package gallery

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report"
	"weir/loadtest/report/figure"
)

// OfRun returns the set of a run's figures; drawn is the version of weir that draws them.
func OfRun(f *analysis.Findings, s *analysis.Series, drawn string) Set {
	measured := drawn
	if s != nil {
		measured = s.About.Weir
	}
	set := Set{Title: "run " + f.Run, Figures: figures(f, s),
		Bars: "95% intervals: Student's distribution over " + batches(f) + "batch means of the measured seconds"}
	set.Origin = []string{fmt.Sprintf("Run %s (%s) against %s, %s", f.Run, f.Name, f.Target, f.Start.UTC().Format("2006-01-02 15:04 MST")),
		"Validity: " + validity(f), fmt.Sprintf("Measured with weir %s, drawn with weir %s", measured, drawn)}
	set.Fits = fits(f, set.Figures)
	return set
}

// OfTable returns the set of the figures of a table that was read from the file name.
func OfTable(f *analysis.Findings, name, drawn string) Set {
	set := Set{Title: "the table " + name, Figures: figures(f, nil), Bars: "95% intervals: Student's distribution over the rows of a point",
		Origin: []string{"Table " + name, "Validity: " + validity(f), "Drawn with weir " + drawn}}
	set.Fits = fits(f, set.Figures)
	return set
}

// OfComparison returns the set of figures that show groups of runs on one plot.
func OfComparison(groups []compare.Group, drawn string) Set {
	var sides []report.Side
	var names, runs []string
	many := false
	for i := range groups {
		g := &groups[i]
		side := report.Side{Name: g.Name}
		var of []string
		for _, r := range g.Runs {
			side.Runs = append(side.Runs, r.Found)
			of = append(of, fmt.Sprintf("%s of %s (%s)", r.Name, r.Start.UTC().Format("2006-01-02 15:04 MST"), r.Status))
		}
		if len(of) == 0 {
			continue
		}
		const most = 4 // a caption is not a list of runs
		if len(of) > most {
			of = append(of[:most], fmt.Sprintf("and %d more", len(side.Runs)-most))
		}
		many = many || len(side.Runs) > 1
		sides, names = append(sides, side), append(names, g.Name)
		runs = append(runs, fmt.Sprintf("%s: %s against %s: %s", g.Name, say.Plural(len(side.Runs), "run"), side.Runs[0].Target,
			strings.Join(of, ", ")))
	}
	set := Set{Title: strings.Join(names, " and "), Figures: report.Overlay(sides)}
	set.Bars = "95% intervals of the mean of a step: Student's distribution over batch means of its seconds"
	if many {
		set.Bars = "95% intervals of the mean over runs: Student's distribution over three or more runs; of a single run, of its own mean"
	}
	set.Origin = append(runs, "Drawn with weir "+drawn)
	return set
}

// fewHosts is the largest number of hosts that have figures of their own: more hosts would mean
// hundreds of files, and the report contains their figures.
const fewHosts = 4

// ofHost gives the y axes of a host's figures names: "CPU of ds1" shows the CPU.
func ofHost(figures []figure.Figure) []figure.Figure {
	all := slices.Clone(figures)
	for i := range all {
		if what, _, ok := strings.Cut(all[i].Title, " of "); ok && all[i].Y.Name == "" {
			all[i].Y.Name = what
			if r := []rune(what); len(r) > 1 && !unicode.IsUpper(r[1]) { // not an abbreviation
				all[i].Y.Name = strings.ToLower(what)
			}
		}
	}
	return all
}

// figures returns the figures of the report and the figures for papers.
func figures(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	p := report.Figures(f, s)
	if len(p.Matrix) > 0 { // the stages of a data challenge are no curve
		p.Jobs, p.Load, p.Papers, p.Limits, p.Distributions = nil, nil, nil, nil, nil
	}
	all := slices.Concat(p.Matrix, p.Challenge, p.Jobs, p.Load, p.Papers, p.Limits, p.Parts, p.Time, p.Distributions,
		p.Backends, p.Servers, p.Links, p.Hosts)
	if len(p.EachHost) <= fewHosts {
		for _, h := range p.EachHost {
			all = append(all, ofHost(h.Figures)...)
		}
	}
	for i := range all {
		if all[i].ID == "curve" {
			all[i].Marks = mainMarks(all[i].Marks)
		}
	}
	return all
}

// mainMarks leaves out the marks that need the larger plot of the report.
func mainMarks(marks []figure.Mark) []figure.Mark {
	var kept []figure.Mark
	for _, m := range marks {
		what, where, _ := strings.Cut(m.Name, ": ")
		names := slices.DeleteFunc(strings.Split(what, ", "), func(n string) bool { return n == "most power" })
		if len(names) > 0 {
			m.Name = strings.Join(names, ", ") + ": " + where
			kept = append(kept, m)
		}
	}
	return kept
}

// fits lists the formulas of the lines that are fitted to the curve.
func fits(f *analysis.Findings, all []figure.Figure) []string {
	i := slices.IndexFunc(all, func(c figure.Figure) bool { return c.ID == "curve" })
	if f.Fits == nil || i < 0 {
		return nil
	}
	var formulas []string
	for _, m := range []*analysis.Fit{f.Fits.Line, f.Fits.Plateau, f.Fits.Amdahl, f.Fits.USL, f.Fits.Decline, f.Fits.Poly4} {
		if m != nil && slices.ContainsFunc(all[i].Lines, func(l figure.Line) bool { return l.Name == "fitted "+m.Name }) {
			formulas = append(formulas, fmt.Sprintf("Fitted %s: %s, R2 %.3g", m.Name, m.Formula, m.R2))
		}
	}
	return formulas
}

func validity(f *analysis.Findings) string {
	var doubts []string
	for _, c := range f.Validity.Checks {
		if c.Status == analysis.Warn || c.Status == analysis.Fail {
			doubts = append(doubts, c.Name)
		}
	}
	if len(doubts) == 0 {
		return f.Validity.Status
	}
	return f.Validity.Status + " (" + strings.Join(doubts, ", ") + ")"
}

// batches returns the number of batch means, "" if there are no batch means.
func batches(f *analysis.Findings) string {
	least, most := 0, 0
	for i := range f.Curve {
		if n := f.Curve[i].Batches; n > 0 {
			if least == 0 || n < least {
				least = n
			}
			most = max(most, n)
		}
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return fmt.Sprint(most, " ")
	}
	return fmt.Sprintf("%d to %d ", least, most)
}
