package report

import (
	"testing"

	"weir/internal/say"
	"weir/loadtest/analysis"
)

// few is a curve of loads whose latency is q, nil if no operation succeeded.
func few(q []*analysis.Quantiles, loads ...int) *analysis.Findings {
	f := &analysis.Findings{Measure: analysis.Throughput, Model: "closed"}
	for i, n := range loads {
		f.Curve = append(f.Curve, analysis.Step{Step: i + 1, Clients: n, Latency: q[i], FirstByte: q[i], PerClient: 1e6})
	}
	return f
}

// TestFewPoints checks the plots of a step without latencies and of a single step.
func TestFewPoints(t *testing.T) {
	q := &analysis.Quantiles{Count: 1, Mean: 1, P50: 1, P90: 1, P99: 1, Max: 1}
	for want, f := range map[int]*analysis.Findings{2: few([]*analysis.Quantiles{q, q, nil}, 1, 8, 32), 1: few([]*analysis.Quantiles{q}, 1)} {
		if n := len(firstByteChart(f).Lines[0].Points); n != want {
			t.Errorf("%d times to first byte, want %d", n, want)
		}
		if n := len(wallChart(f).Lines[0].Points); n != want {
			t.Errorf("%d wall clock times, want %d", n, want)
		}
		if n := len(perClientChart(f).Lines[0].Points); n != len(f.Curve) {
			t.Errorf("%d shares of %d steps", n, len(f.Curve))
		}
	}
}

// A step without a successful operation has no latency, and not a latency of 0 s.
func TestNoLatency(t *testing.T) {
	f := few([]*analysis.Quantiles{nil}, 4)
	for _, c := range stepSection(f).Rows[0].Cells {
		if c.Text == "0 s" {
			t.Errorf("a latency of 0 s is shown of none: %v", stepSection(f).Rows[0])
		}
	}
}

// In the open model loads are arrivals, also in the cards at the top.
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
