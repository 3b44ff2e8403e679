package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/workload"
)

// farm analyzes a made-up run of jobs.
func farm(t *testing.T, change func(*resultstest.Service)) (*analysis.Findings, *analysis.Series, *results.Run) {
	t.Helper()
	s := resultstest.Farm()
	if change != nil {
		change(&s)
	}
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, s.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	return f, series, run
}

// crashing makes a tenth of the jobs crash from 40 jobs on, and a few fail.
func crashing(s *resultstest.Service) {
	s.Duration, s.Jobs.Failed = 30, 0.02
	s.Jobs.Crashed = func(n int) float64 { return map[bool]float64{true: 0.1}[n >= 40] }
}

func TestJobFigures(t *testing.T) {
	f, s, _ := farm(t, crashing)
	p := Figures(f, s)
	var ids []string
	for _, c := range p.Jobs {
		ids = append(ids, c.ID)
		if c.X.Unit != "jobs" || c.Y.Name == "" || c.Stamp == "" {
			t.Errorf("%s: %+v", c.ID, c.X)
		}
	}
	if got := strings.Join(ids, " "); got != "cluster cpuefficiency walltime lostjobs events" {
		t.Errorf("figures %s", got)
	}
	if l := p.Jobs[0].Lines[0]; len(l.Points) != 6 || l.Points[3].Low == nil || *l.Points[3].Low > l.Points[3].Y {
		t.Errorf("cluster throughput %+v", l)
	}
	if siteChart(f) != nil {
		t.Error("sites of a run that has none")
	}
	for _, id := range []string{"jobtime", "eventtime", "endedtime"} {
		found := false
		for _, c := range p.Time {
			found = found || c.ID == id
		}
		if !found {
			t.Errorf("no %s", id)
		}
	}
	if len(p.Papers) != 0 || !strings.HasPrefix(p.Distributions[0].Title, "Job wall clock time with ") {
		t.Errorf("%d, %s", len(p.Papers), p.Distributions[0].Title)
	}
}

func TestJobPageAndText(t *testing.T) {
	f, s, _ := farm(t, crashing)
	var page, text bytes.Buffer
	require.NoError(t, HTML(&page, f, s))
	headed(t, page.String())
	for _, want := range []string{`id="jobs"`, "best with", "Lost jobs", "Jobs, step by step", "x single", "concurrent jobs",
		"Cluster throughput against load"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	require.NoError(t, Text(&text, f, Options{Verbose: true}))
	for _, want := range []string{"efficiency    95% interval", "done    crashed     failed", "requests/s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// Files that are staged beside files that are read directly: the figures of the report of 2009 come
// first, and a table lists the number of lost jobs of each group.
func TestStagedBesideDirect(t *testing.T) {
	direct, _, a := farm(t, nil)
	staged, _, b := farm(t, func(s *resultstest.Service) {
		s.Jobs.Job.Access, s.Lambda, s.Jobs.Failed = workload.Staged, 60, 0.17
	})
	if c := usedChart(staged); c == nil || c.Lines[0].Name != "copied to scratch" {
		t.Errorf("%+v", c)
	}
	disk := measure.Scratch{Folder: "/scratch", Filesystem: "tmpfs"}
	if note := scratchNote(staged, &disk); note != "Scratch folder: /scratch on tmpfs (in memory)" {
		t.Error(note)
	}
	groups := []compare.Group{
		{Name: "direct", Runs: []*compare.Run{compare.NewRun("a", a.About, a.Plan, direct)}},
		{Name: "staged", Runs: []*compare.Run{compare.NewRun("b", b.About, b.Plan, staged)}},
	}
	c, err := compare.Of(groups, compare.Options{})
	require.NoError(t, err)
	if strings.Join(c.Metrics, " ") != "cluster_throughput cpu_efficiency job_mean crash_ratio job_failure_ratio" {
		t.Errorf("%v", c.Metrics)
	}
	plots := Overlay([]Side{{"direct", []*analysis.Findings{direct}}, {"staged", []*analysis.Findings{staged}}})
	if len(plots) < 4 || plots[0].ID != "cluster" || plots[1].ID != "cpuefficiency" || plots[2].ID != "walltime" ||
		plots[3].ID != "lostjobs" || len(plots[0].Lines) != 2 {
		t.Errorf("%d plots", len(plots))
	}
	var page, text bytes.Buffer
	require.NoError(t, ComparisonHTML(&page, c))
	headed(t, page.String())
	require.NoError(t, Comparison(&text, c, Options{}))
	for _, out := range []string{page.String(), text.String()} {
		if !strings.Contains(out, "What became of the jobs") {
			t.Error("nothing is said of what became of the jobs")
		}
		if !strings.Contains(out, "jobs") || strings.Contains(out, "80 clients") || strings.Contains(out, ">clients<") ||
			strings.Contains(out, "\nclients ") {
			t.Errorf("loads are not said to be jobs:\n%s", out)
		}
	}
}
