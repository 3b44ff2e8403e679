package report

import (
	"regexp"
	"strings"
	"testing"

	"weir/loadtest/analysis"
	"weir/loadtest/results/resultstest"
)

func TestImbalance(t *testing.T) {
	step := func(shares ...float64) *analysis.Step {
		s := &analysis.Step{Clients: 8, Servers: []analysis.Share{{Name: ""}}}
		for i, x := range shares {
			s.Servers = append(s.Servers, analysis.Share{Name: string(rune('a' + i)), ThroughputShare: x})
		}
		return s
	}
	f := &analysis.Findings{Model: "closed", Measure: analysis.Throughput}
	for want, s := range map[string]*analysis.Step{
		"": step(1),
		"Shares of 2 data servers, 8 clients: largest 51% (b), smallest 49% (a), even 50%: even within 10%": step(0.49, 0.51),
		"Shares of 2 data servers, 8 clients: largest 60% (a), smallest 40% (b), even 50%: uneven":          step(0.6, 0.4),
		"Shares of 4 data servers, 8 clients: largest 97% (d), smallest 0% (b), even 25%: very uneven; " +
			"3 below a tenth of an even share": step(0.02, 0, 0.01, 0.97),
	} {
		if got := imbalance(f, s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAlternativeTexts checks that each plot has a short text with its axes and lines but without its values,
// and that its numbers are in the data of the page or the figure's CSV, which are made of the same fields.
func TestAlternativeTexts(t *testing.T) {
	for name, s := range map[string]resultstest.Service{"typical": resultstest.Typical(), "cluster": cluster(), "small": small(),
		"one": {Lambda: 1, Clients: []int{1}, Duration: 1}} {
		f, series := analyzed(t, s)
		p := Figures(f, series)
		all := append(p.All(), append(p.OtherSteps, p.Papers...)...)
		for _, h := range p.EachHost {
			all = append(all, h.Figures...)
			if !strings.Contains(h.Words, "CPU ") || !strings.Contains(h.Words, " (max ") {
				t.Errorf("%s: %s", h.Host, h.Words)
			}
		}
		seen := map[string]bool{}
		for _, c := range all {
			alt := c.Alt()
			if !strings.Contains(alt, " by ") || !strings.Contains(alt, c.X.Caption()) || len(alt) > 400 ||
				regexp.MustCompile(`%!|\.\.|^ |\d s\b`).MatchString(alt) {
				t.Errorf("%s: %s: %s", name, c.ID, alt)
			}
			for _, l := range c.Lines {
				if len(c.Lines) > 1 && !strings.Contains(alt, l.Name) {
					t.Errorf("%s: %s has no %s: %s", name, c.ID, l.Name, alt)
				}
			}
			if seen[c.ID] || c.Y.Name == "" && c.Heat == nil && len(c.Columns) == 0 && c.Y.Label == "" {
				t.Errorf("%s: %s is there twice, or its axis has no name", name, c.ID)
			}
			if c.X.Label == "" || c.Title == "" {
				t.Errorf("%s: %s has no title or no label", name, c.ID)
			}
			seen[c.ID] = true
		}
	}
}

// TestPauses checks that a data server that was away for a while is in a table.
func TestPauses(t *testing.T) {
	points := []analysis.ServerPoint{{At: 1, Throughput: 1}, {At: 2}, {At: 3}, {At: 4}, {At: 5, Throughput: 1}, {At: 6}}
	series := &analysis.Series{Servers: []analysis.ServerSeries{{Name: "ds1", Points: points}, {Name: "ds2", Points: points[2:]}}}
	s := pauseSection(&analysis.Findings{}, series)
	if len(s.Rows) != 1 || s.Rows[0].Cells[0].Text != "ds1" || s.Rows[0].Cells[1].Text != "1 s" || s.Rows[0].Cells[2].Text != "5 s" {
		t.Errorf("%+v", s.Rows)
	}
	if len(pauseSection(&analysis.Findings{}, nil).Rows) > 0 {
		t.Error("pauses without a run")
	}
}
