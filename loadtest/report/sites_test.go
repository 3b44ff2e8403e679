package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/link"
	"weir/loadtest/analysis"
	"weir/loadtest/results/resultstest"
)

// With several links the report distinguishes the sites: in a figure, in a table, and in a
// terminal.
func TestSites(t *testing.T) {
	f, s, _ := farm(t, func(s *resultstest.Service) {
		s.Clients, s.Duration = []int{4, 8, 40}, 40
		s.Jobs.Far, s.Jobs.Job.Events = 0.25, 20
		s.Jobs.Crashed = func(n int) float64 { return map[bool]float64{true: 0.2}[n >= 40] }
		s.Links = []link.Named{{Name: "near", Spec: link.Spec{Share: 3}}, {Name: "far"}}
	})
	var c = siteChart(f)
	if c == nil || len(c.Lines) != 2 || c.Lines[0].Name != "near" || len(c.Lines[1].Points) != 3 ||
		c.Lines[1].Points[2].Y < 1.5*c.Lines[0].Points[2].Y {
		t.Fatalf("%+v", c)
	}
	if got := Figures(f, s).Jobs; got[3].ID != "sitewalltime" || got[3].Y.Name == "" {
		t.Errorf("%+v", got[3])
	}
	table := siteSection(f)
	if len(table.Rows) != 6 || table.Rows[5].Cells[1].Text != "far" || !strings.HasSuffix(table.Rows[5].Cells[4].Text, "%)") {
		t.Errorf("%+v", table.Rows)
	}
	var out bytes.Buffer
	require.NoError(t, Text(&out, f, Options{Verbose: true}))
	if text := out.String(); !strings.Contains(text, "Mean wall clock time of a job at each site, and how many crashed or failed there\n") ||
		!strings.Contains(text, " lost)") {
		t.Error(text)
	}
}

// A report with too many sites for one plot states this, and their names are text.
func TestManySites(t *testing.T) {
	f, _, _ := farm(t, nil)
	for i := range 9 {
		f.Curve[0].Sites = append(f.Curve[0].Sites, analysis.SiteFigure{Site: fmt.Sprintf("\x1b[31m%d<b>", i), JobFigures: f.Curve[0].JobFigures})
	}
	c := siteChart(f)
	if c == nil || len(c.Lines) != mostLinks || c.Desc != "Not shown: 3 sites" {
		t.Fatalf("%+v", c)
	}
	var out bytes.Buffer
	require.NoError(t, Text(&out, f, Options{Verbose: true}))
	if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "Not shown: 3 sites") {
		t.Error(out.String())
	}
	f.Curve[0].Sites = []analysis.SiteFigure{{Site: "far"}} // of findings that were changed later
	if err := Text(&out, f, Options{Verbose: true}); err != nil || siteChart(f) != nil || len(siteSection(f).Rows) > 0 {
		t.Error(err)
	}
}
