package report

import (
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/loadtest/analysis"
)

// chapters returns the chapters of a report in the order of importance to readers; a chapter
// without content is left out.
func chapters(f *analysis.Findings, s *analysis.Series, plots Plots) []chapter {
	all := kept(transferChapter(f), curveChapter(f, plots), limitChapter(f, plots.Limits), jobChapter(f, s, plots), loadChapter(f, plots),
		chapter{ID: "time", Title: "Against time", Charts: drawings(plots.Time)}, latencyChapter(f, plots), phaseChapter(f, plots.Parts),
		backendChapter(f, plots.Backends), serverChapter(f, s, plots.Servers), linkChapter(f, s, plots.Links), hostChapter(f, s, plots),
		workerChapter(f), errorChapter(f, s), checkChapter(f), runChapter(f, s))
	if f.Challenge != nil { // its stages are no curve
		all = kept(challengeChapter(f, s, plots), hostChapter(f, s, plots), checkChapter(f), runChapter(f, s))
	}
	for i := range all {
		for k := range all[i].Parts {
			for n := range all[i].Parts[k].Charts {
				all[i].Parts[k].Charts[n].Under = true
			}
		}
	}
	return all
}

// curveChapter has the results that readers look for first: the curve and its table.
func curveChapter(f *analysis.Findings, plots Plots) chapter {
	first := firstPlots(f)
	c := chapter{ID: "curve", Title: "The curve", Open: true, Charts: drawings(plots.Load[:min(first, len(plots.Load))])}
	if f.Transfers == nil {
		of := populationSection(f, func(*analysis.Step) bool { return true })
		of.Points = populationPoints(f)
		c.Parts = filled(curveSection(f), of, answerSection(f), fitSection(f), columnSection(f))
	}
	if f.OfJobs() {
		c.Parts = append(filled(siteTimes(f)), c.Parts...)
	}
	return c
}

// firstPlots is the number of plots against load at the top: the curve, and the curve of
// populations.
func firstPlots(f *analysis.Findings) int {
	if len(f.Populations) > 0 {
		return 2
	}
	return 1
}

// loadChapter has the other plots against load.
func loadChapter(f *analysis.Findings, plots Plots) chapter {
	c := chapter{ID: "load", Title: "Against load", Charts: drawings(slices.Concat(plots.Load[min(firstPlots(f), len(plots.Load)):],
		plots.Papers))}
	if f.OfJobs() {
		c.Parts = append(c.Parts, stepSection(f))
	}
	c.Parts = append(c.Parts, filled(whereSection(f), connectionsSection(f), partSection("kinds", "Kinds of operations", f.Kinds))...)
	return c
}

// latencyChapter has the quantiles, the plots that are visible at once, and the other steps folded.
func latencyChapter(f *analysis.Findings, plots Plots) chapter {
	c := chapter{ID: "latencies", Title: "Latencies", Charts: drawings(plots.Distributions), Parts: filled(quantileSection(f))}
	if n := len(plots.OtherSteps); n > 0 {
		title := say.Either(n, "The histogram of the other step", fmt.Sprintf("The %d histograms of the other steps", n))
		c.Parts = append(c.Parts, section{Title: title, Charts: drawings(plots.OtherSteps)})
	}
	return c
}
