package report

import (
	"strings"
	"testing"

	"weir/internal/say"
	"weir/loadtest/analysis"
)

// few is a curve of loads whose latency is q, nil where nothing ended well.
func few(q []*analysis.Quantiles, loads ...int) *analysis.Findings {
	f := &analysis.Findings{Measure: analysis.Throughput, Model: "closed"}
	for i, n := range loads {
		f.Curve = append(f.Curve, analysis.Step{Step: i + 1, Clients: n, Latency: q[i], FirstByte: q[i], PerClient: 1e6})
	}
	return f
}

// What is told of a plot is told of its points: not of a step that has none,
// and not twice of the only one.
func TestWordsOfFewPoints(t *testing.T) {
	q := func(x float64) *analysis.Quantiles {
		return &analysis.Quantiles{Count: 1, Mean: x, P50: x, P90: x, P99: x, Max: x}
	}
	for name, c := range map[string]struct {
		f                      *analysis.Findings
		latency, wall, clients string
	}{
		"the last step has nothing": {few([]*analysis.Quantiles{q(0.001), q(0.002), nil}, 1, 8, 32),
			"from 1 client to 8 clients the median goes from 1 ms to 2 ms", "end: 1 ms with 1 client, 2 ms with 8 clients. That",
			"With 1 client each gets 8.00 Mbit/s, with 32 clients"},
		"one step": {few([]*analysis.Quantiles{q(0.001)}, 1),
			": with 1 client the median is 1 ms, the 99th percentile 1 ms; the longest one took 1 ms.", "end: 1 ms with 1 client.",
			"With 1 client each gets 8.00 Mbit/s."},
	} {
		for want, got := range map[string]string{c.latency: firstByteChart(c.f).Desc, c.wall: wallChart(c.f).Desc,
			c.clients: perClientChart(c.f).Desc} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %q", name, want, got)
			}
		}
	}
}

// A step in which nothing ended well has no latency, and not one of 0 s.
func TestNoLatency(t *testing.T) {
	f := few([]*analysis.Quantiles{nil}, 4)
	for _, c := range stepSection(f).Rows[0].Cells {
		if c.Text == "0 s" {
			t.Errorf("a latency of 0 s is shown of none: %v", stepSection(f).Rows[0])
		}
	}
}

// In the open model loads are arrivals, in the cards on top as well.
func TestCardsOfOpenLoad(t *testing.T) {
	f := &analysis.Findings{Measure: analysis.Throughput, Model: "open", Knee: &analysis.Knee{Clients: 2000, Step: 2},
		Optimum: &analysis.Optimum{Step: 1}, Curve: []analysis.Step{{Step: 1, Clients: 2000, Rate: 50}, {Step: 2, Clients: 2000, Rate: 400}}}
	if c := loadCard(f, &f.Curve[0]); c.Value != "50 arrivals/s" || c.Note != "knee at 400 arrivals/s" {
		t.Errorf("the knee is told as %+v", c)
	}
}

func TestListed(t *testing.T) {
	for want, all := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := say.List(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
