package report

import (
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/analysis/fact"
)

func repeated(t *testing.T) *compare.Repeated {
	t.Helper()
	g := compare.Group{Name: "c"}
	g.Lose(fact.New("compare.missing.run", "dir", "004-a"))
	for i, v := range []float64{10e6, 12e6, 14e6} {
		name := string(rune('1' + i))
		g.Runs = append(g.Runs, &compare.Run{Dir: "c/00" + name + "-a", Name: name, Status: analysis.Valid, Found: &analysis.Findings{
			Measure: analysis.Throughput, Optimum: &analysis.Optimum{Clients: 8, Throughput: v, Inside: true}, Curve: []analysis.Step{
				{Step: 1, Clients: 4, Duration: 10, Throughput: v / 2, Moved: 100, Done: 10, Latency: &analysis.Quantiles{P50: 0.01, P99: 0.1}},
				{Step: 2, Clients: 8, Duration: 10, Throughput: v, ThroughputLow: new(v * 0.9), ThroughputHigh: new(v * 1.1), Moved: 100, Done: 10,
					Latency: &analysis.Quantiles{P50: 0.02, P99: 0.2}},
			},
		}})
	}
	r, err := compare.Repeat(g, nil)
	require.NoError(t, err)
	return r
}

func TestRepeatedText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Repeated(&b, repeated(t), Options{}))
	for _, w := range []string{
		"Over 3 runs, the throughput at 8 clients is 96.0 Mbit/s", "Throughput\n  clients         mean",
		"96.0 Mbit/s   56.3 to 136 Mbit/s    16.7%   +-10%  3\n", "throughput of the optimum", "note  004-a was not done", "5 or more are",
	} {
		if !strings.Contains(b.String(), w) {
			t.Errorf("it does not say %q:\n%s", w, b.String())
		}
	}
	if strings.Contains(b.String(), "Error ratio") {
		t.Errorf("a table without any errors:\n%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 101 {
			t.Errorf("too long: %s", line)
		}
	}
}

func TestRepeatedHTML(t *testing.T) {
	r := repeated(t)
	r.Warnings = append(r.Warnings, "<script>alert(1)</script>\x1b[31m")
	var b strings.Builder
	require.NoError(t, RepeatedHTML(&b, r, "a & b", func(dir string) string { return "javascript:" + dir }))
	headed(t, b.String())
	page := b.String()
	for _, w := range []string{"<title>weir: a &amp; b: valid</title>", "96.0 Mbit/s", "<svg", "56.3 to 136 Mbit/s",
		"Throughput against load", "</html>"} {
		if !strings.Contains(page, w) {
			t.Errorf("the page has no %q", w)
		}
	}
	for _, w := range []string{"<script", "\x1b", "http://", "https://", `href="javascript:`} {
		if strings.Contains(body(t, page), w) {
			t.Errorf("the page has %q", w)
		}
	}
	r.Steps, r.PerRun = nil, nil
	if err := RepeatedHTML(&b, r, "", func(string) string { return "" }); err != nil {
		t.Error(err)
	}
}
