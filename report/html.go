package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

//go:embed report.html.tmpl
var pageText string

// page is what the template shows.
type page struct {
	pageHead
	F                  *analysis.Findings
	Target, Verdict    string // Verdict is the headline
	Facts              []string
	When, Run, Summary string
	Work               string
	Weir               string
	Cards              []card
	Warnings           []string
	Chapters           []chapter
}

type card struct{ Name, Value, Note string }

// HTML writes f, and s where it is not nil, as one file that needs nothing
// else: no other file, no network. Plots are there as pictures, and where weir
// was built with the pages' scripts as charts, too.
func HTML(w io.Writer, f *analysis.Findings, s *analysis.Series) error {
	return writePage(w, pageText, newPage(f, s))
}

func newPage(f *analysis.Findings, s *analysis.Series) page {
	f = inOrder(f)
	p := page{F: f, pageHead: newHead(f.Name, f.Validity.Status), Target: say.Plain(f.Target), Work: say.Plain(f.Work),
		When: f.Start.UTC().Format("2006-01-02 15:04 MST"), Run: say.Plain(f.Run), Summary: summary(f),
		Cards: cards(f), Chapters: chapters(f, s)}
	p.Verdict, p.Facts = verdictLines(f)
	for _, warning := range f.Warnings {
		p.Warnings = append(p.Warnings, say.Plain(warning))
	}
	if f.Source == analysis.FromTable { // nobody knows when that was
		p.Target, p.When = "from a table of measurements", ""
	}
	if s != nil {
		p.Weir = say.Plain(s.About.Weir)
	}
	return p
}

func drawings(charts []figure.Figure) []drawing {
	var all []drawing
	for i := range charts {
		c := &charts[i]
		all = append(all, drawing{Title: c.Title, Desc: say.Plain(c.Desc), Data: c})
	}
	return all
}

func noErrors(f *analysis.Findings) bool {
	for i := range f.Curve {
		if f.Curve[i].Errors > 0 {
			return false
		}
	}
	return len(f.Curve) > 0 && f.Source != analysis.FromTable
}

func summary(f *analysis.Findings) string {
	by := map[string][]string{}
	for _, c := range f.Validity.Checks {
		by[c.Status] = append(by[c.Status], c.Name)
	}
	text := fmt.Sprintf("%d of %d checks passed", len(by[analysis.OK]), len(f.Validity.Checks))
	for _, status := range []struct{ status, word string }{{analysis.Fail, "failed"}, {analysis.Warn, "warned"}, {analysis.Skipped, "skipped"}} {
		if names := by[status.status]; len(names) > 0 {
			text += fmt.Sprintf("; %s: %s", status.word, say.Plain(strings.Join(names, ", ")))
		}
	}
	return text + "."
}

// cards are the figures that people ask for first.
func cards(f *analysis.Findings) []card {
	best := bestStep(f)
	if best == nil {
		return nil
	}
	if f.Source == analysis.FromTable {
		return tableCards(f, best)
	}
	if f.OfJobs() {
		return jobCards(f, best)
	}
	all := []card{{"Best throughput", unit.Bits(best.Throughput), "with " + at(f, best)}}
	if f.Measure == analysis.Rate {
		all = []card{{"Best rate", unit.Count(best.Operations) + "/s", "with " + at(f, best)}}
	} else {
		all = append(all, card{"Operations there", unit.Count(best.Operations) + "/s", "with " + at(f, best)})
	}
	all = append(all, rangeCard(f)...)
	if c, ok := kneeCard(f); ok {
		all = append(all, c)
	} else {
		all = append(all, card{"Knee", "none", "found in the tested range"})
	}
	if q := best.Latency; q != nil {
		all = append(all, card{"Latency there", unit.Seconds(q.P50), "median; mean " + unit.Seconds(q.Mean) + ", p99 " + unit.Seconds(q.P99)})
	}
	if best.ServerCPU != nil {
		all = append(all, card{"Server CPU there", unit.Percent(*best.ServerCPU), "of its machine's cores"})
	}
	if c, ok := limitCard(f); ok {
		all = append(all, c)
	}
	var done, errors int64
	for i := range f.Curve {
		done, errors = done+f.Curve[i].Done, errors+f.Curve[i].Errors
	}
	return append(all, card{"Failed operations", unit.Count(float64(errors)), "of " + unit.Count(float64(done+errors)) + " in all steps"})
}

// rangeCard shows the loads that cannot be told from the optimum.
func rangeCard(f *analysis.Findings) []card {
	o := f.Optimum
	if len(o.Equals) < 2 {
		return nil
	}
	low, _, _ := strings.Cut(where(f, o.Equals[0], o.ClientsLow), " ")
	return []card{{"The same within noise", low + " to " + where(f, o.Equals[len(o.Equals)-1], o.ClientsHigh), fmt.Sprintf("%d tested loads", len(o.Equals))}}
}

func kneeCard(f *analysis.Findings) (card, bool) {
	if f.Knee == nil {
		return card{}, false
	}
	return card{"Knee", where(f, f.Knee.Step, f.Knee.Clients), "beyond it each adds less than on average"}, true
}

// mostText is how many bytes of a plan or an environment are shown.
const mostText = 64 << 10

func textSection(title string, v any) section {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return section{Title: title, Text: say.Plain(err.Error())}
	}
	if len(b) > mostText {
		b = append(b[:mostText], "\n... (cut off here; the run directory has all of it)"...)
	}
	return section{Title: title, Text: printable(string(b))}
}

// printable keeps the line breaks that plain replaces.
func printable(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = say.Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
