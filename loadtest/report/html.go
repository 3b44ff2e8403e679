package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// HTML writes f, and s if it is not nil, as one file that needs no other file and no network. The
// plots are pictures, and charts if weir was built with the scripts of the pages.
func HTML(w io.Writer, f *analysis.Findings, s *analysis.Series) error {
	return writePage(w, runPage(f, s))
}

// runPage is the page of a run, or of a table of measurements.
func runPage(f *analysis.Findings, s *analysis.Series) page {
	f = inOrder(f)
	p := newPage(f.Name, f.Validity.Status, checkNames(f))
	headline, facts := verdictLines(f)
	p.Verdicts, p.Warnings, p.Cards, p.Chapters = []string{headline}, plain(f.Warnings), cards(f), chapters(f, s, Figures(f, s))
	if i := slices.IndexFunc(p.Chapters, func(c chapter) bool { return c.ID == "curve" }); i >= 0 {
		p.Chapters[i].Points = facts
	}
	p.About = say.Plain(fmt.Sprintf("%s · %s · run %s", f.Target, f.Start.UTC().Format("2006-01-02 15:04 MST"), f.Run))
	if f.Source == analysis.FromTable { // the time of a table is unknown
		p.About = "from a table of measurements"
	}
	if f.Challenge != nil {
		p.About = challengeAbout(f, s)
	} else if f.Work != "" {
		p.About += " · each client: " + say.Plain(f.Work)
	}
	for _, x := range f.Thresholds {
		class := map[bool]string{true: analysis.OK, false: analysis.Fail}[x.Met]
		p.Thresholds = append(p.Thresholds, card{class, thresholdWord(x), say.Plain(x.Threshold + ": " + x.Detail)})
	}
	p.Footer = "Made by weir from the run directory alone; weir report makes it again. Shares of CPU are of all cores of a machine. " +
		"Quantiles are exact to 1%."
	if s != nil {
		p.Footer = strings.Replace(p.Footer, "weir", "weir "+say.Plain(s.About.Weir), 1)
	}
	return p
}

// cards are the figures that readers look for first.
func cards(f *analysis.Findings) []card {
	if f.Challenge != nil {
		return challengeCards(f.Challenge)
	}
	var all []card
	if best := bestStep(f); best != nil {
		y := yieldOf(f)
		note := "on average"
		if low, high := y.ends(best); low != nil && high != nil {
			note = span(low, high, y.text)
		}
		load, yields := loadCard(f, best), card{say.Capital(y.name), y.text(y.of(best)), note}
		if f.OfJobs() {
			yields.Note = "with " + load.Value + "; " + load.Note
			all = append(jobCards(f, best), yields)
		} else {
			all = append(all, yields, load)
		}
		if q := best.Latency; q != nil && f.Source == analysis.FromTable {
			all = append(all, card{"Latency", unit.Seconds(q.Mean), "mean"})
		} else if q != nil && !f.OfJobs() {
			all = append(all, card{"Latency", unit.Seconds(q.P50), "median; p99 " + unit.Seconds(q.P99)})
		}
	}
	all = append(all, limitCard(f)...)
	if ended, failed := sums(f); f.Source != analysis.FromTable && !f.OfJobs() && len(f.Curve) > 0 {
		all = append(all, card{"Failed", whole(failed), "of " + counted(ended, "operation")})
	}
	return all
}

// loadCard shows the load at which the curve is highest, and the load of the knee.
func loadCard(f *analysis.Findings, best *analysis.Step) card {
	c := card{Name: "Load", Value: at(f, best)}
	if len(f.Optimum.Equals) > 1 {
		c.Value = equalLoads(f)
		c.Note = "the same within noise; "
	}
	if k := f.Knee; k != nil {
		c.Note += "knee at " + where(f, k.Step, k.Clients)
	} else {
		c.Note += "no knee in the tested range"
	}
	return c
}

// checkNames returns the number of checks that passed, and the names of the others.
func checkNames(f *analysis.Findings) string {
	by := map[string][]string{}
	for _, c := range f.Validity.Checks {
		by[c.Status] = append(by[c.Status], c.Name)
	}
	text := fmt.Sprintf("%d of %d checks passed", len(by[analysis.OK]), len(f.Validity.Checks))
	for _, s := range []struct{ status, word string }{{analysis.Fail, "failed"}, {analysis.Warn, "warned"}} {
		if names := by[s.status]; len(names) > 0 {
			text += fmt.Sprintf("; %s: %s", s.word, say.Plain(strings.Join(names, ", ")))
		}
	}
	return text
}
