package report

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report/figure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// shared analyses a made-up balanced run.
func shared(t *testing.T, s resultstest.Service) (*analysis.Findings, *analysis.Series) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, s.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	return f, series
}

func byID(all []figure.Figure, id string) *figure.Figure {
	if i := slices.IndexFunc(all, func(c figure.Figure) bool { return c.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

func TestBackends(t *testing.T) {
	f, s := shared(t, resultstest.Balanced(0.2, 0.2, 0.4, 0.2))
	var text, page bytes.Buffer
	require.NoError(t, Text(&text, f, Options{Verbose: true}))
	require.NoError(t, HTML(&page, f, s))
	headed(t, page.String())
	for _, want := range []string{"Backends Shares of 4 backends, 64 clients: largest 40% (gftp-3), smallest 20% ",
		"gftp-3 is full first, with 32 clients: 95% busy", "even 25%; imbalance 1.60, by chance ", ": more than chance"} {
		in := strings.Join(strings.Fields(text.String()), " ")
		if !strings.Contains(in, want) {
			t.Errorf("the text has no %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "Data servers, step by step") {
		t.Error("the text tells the same twice")
	}
	for _, want := range []string{`id="backends"`, `id="backendswhole"`, `id="imbalances"`, `id="backendsteps"`, "transfer log",
		"Source of the shares: measurements of the clients"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	figures := Figures(f, s).Backends
	for _, id := range []string{"backendload", "imbalance", "backendsessions", "backendcpu", "backendnet", "backendtime", "sessiontime"} {
		if byID(figures, id) == nil {
			t.Fatalf("no figure %s", id)
		}
	}
	// The upper end of the stack is the sum, and each area one backend's part.
	c := byID(figures, "backendload")
	last := c.Lines[len(c.Lines)-1]
	for i, p := range last.Points {
		step := f.Curve[i]
		if sum := step.Balance.Sum; p.Y < 0.999*sum || p.Y > 1.001*sum {
			t.Errorf("step %d: the stack ends at %v, the sum is %v", i, p.Y, sum)
		}
		if own := *p.High - *p.Low; own < 0.999**step.Backends[3].Throughput || own > 1.001**step.Backends[3].Throughput {
			t.Errorf("step %d: the last area is %v, the backend gave %v", i, own, *step.Backends[3].Throughput)
		}
	}
	if c.Lines[0].Name != "gftp-1" || c.Lines[2].Name != "+ gftp-3" || len(c.Lines) != 4 {
		t.Errorf("%+v", c.Lines)
	}
}

// TestManyBackends: the largest backends have colors of their own, the other backends form one
// layer.
func TestManyBackends(t *testing.T) {
	shares := make([]float64, 20)
	for i := range shares {
		shares[i] = float64(i+1) / 210
	}
	f, s := shared(t, resultstest.Balanced(shares...))
	figures := Figures(f, s).Backends
	c := byID(figures, "backendload")
	if len(c.Lines) != mostBackends || c.Lines[5].Name != "+ 15 others" || c.Lines[0].Name != "gftp-20" {
		t.Errorf("%d lines, %q ... %q", len(c.Lines), c.Lines[0].Name, c.Lines[len(c.Lines)-1].Name)
	}
	if c := byID(figures, "backendcpu"); len(c.Lines) != mostBackends || !strings.Contains(c.Title, "(6 of 20)") {
		t.Errorf("%q: %d lines", c.Title, len(c.Lines))
	}
	var text bytes.Buffer
	if err := Text(&text, f, Options{Verbose: true}); err != nil || !strings.Contains(text.String(), "more in report.html") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestSessionsOnly: no source reports bytes.
func TestSessionsOnly(t *testing.T) {
	service := resultstest.Balanced(0.25, 0.75)
	service.Interval, service.More = nil, nil
	service.MoreSamples = nil
	for i := range service.Hosts {
		service.Hosts[i].TransferLog = ""
	}
	f, _ := shared(t, service)
	if balanced(f) {
		t.Fatal("nothing is known of these backends")
	}
	if c := backendChapter(f, nil); c.Title != "" {
		t.Errorf("%+v", c)
	}
	service = resultstest.Balanced(0.25, 0.75)
	service.Sample = func(x *monitor.Sample) {
		x.Transfers = nil
		if x.Cores == 8 {
			x.Nets = nil
		}
	}
	more := service.More
	interval := service.Interval
	service.Interval = func(iv *measure.Interval) { interval(iv); iv.Server = "" }
	service.More = func(iv *measure.Interval) []*measure.Interval {
		all := more(iv)
		for _, x := range all {
			x.Server = ""
		}
		return all
	}
	f, s := shared(t, service)
	var text bytes.Buffer
	if err := Text(&text, f, Options{Verbose: true}); err != nil || f.Balance.Source != analysis.BySessions ||
		!strings.Contains(text.String(), "Source of the shares: concurrent sessions") {
		t.Errorf("%v\n%s", err, text.String())
	}
	figures := Figures(f, s).Backends
	if c := byID(figures, "backendtime"); c == nil || c.Y.Label != "sessions" || byID(figures, "sessiontime") != nil {
		t.Errorf("%+v", c)
	}
	if c := backendChapter(f, figures); !slices.ContainsFunc(c.Points,
		func(p string) bool { return strings.Contains(p, "concurrent sessions") }) {
		t.Errorf("%q", c.Points)
	}
}
