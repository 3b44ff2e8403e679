package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/internal/require"
	"weir/loadtest/analysis"
)

// limited is a curve of n steps that a CPU limits from the step at position full on.
func limited(n, full int) *analysis.Findings {
	f := &analysis.Findings{Measure: analysis.Throughput, Model: "closed"}
	f.Validity.Status = analysis.Valid
	for i := range n {
		share := min(0.97, 0.97*float64(i+1)/float64(full+1))
		f.Curve = append(f.Curve, analysis.Step{Step: i + 1, Clients: 10 * (i + 1), Resources: []analysis.ResourceUsage{
			{Resource: analysis.ResourceCPU, Host: "a-host-with-a-rather-long-name.cluster.example.org", Side: "server", Share: &share,
				Saturated: i >= full},
			{Resource: analysis.ResourceConnections, Host: "store", Side: "server", Detail: "7"},
		}})
	}
	f.Optimum = &analysis.Optimum{Clients: 10 * n, Step: n}
	s := f.Curve[full]
	f.Bottleneck = []analysis.Bottleneck{
		{Resource: analysis.ResourceCPU, Host: "store", Side: "server", Step: s.Step, From: s.Clients, Evidence: []string{"First.", "Second."}},
		{Resource: analysis.ResourceDisk, Host: "store", Side: "server", Step: n, Evidence: []string{"Third.", "Fourth."}},
	}
	return f
}

// The first saturated step and the last step are always shown.
func TestLimitsOfManySteps(t *testing.T) {
	for _, full := range []int{0, 7, 12, 18, 19} {
		f := limited(20, full)
		var b bytes.Buffer
		require.NoError(t, Text(&b, f, Options{Verbose: true}))
		_, text, _ := strings.Cut(b.String(), "What limits it\n")
		for _, want := range []string{fmt.Sprintf("From %d clients on throughput is limited by the CPU of store.", 10*(full+1)), "- First.",
			"- Second.", "- Third.",
			fmt.Sprintf(" %d ", 10*(full+1)), " 200\n", " 97%*", "CPU,", "a-host-with-a"} {
			if !strings.Contains(text, want) {
				t.Errorf("full from step %d: no %q in\n%s", full+1, want, text)
			}
		}
		if strings.Contains(text, "Fourth") || strings.Contains(text, "connections") {
			t.Errorf("too much is told:\n%s", text)
		}
		for _, line := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(line) > width {
				t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestLimitsOnThePage(t *testing.T) {
	p := page1(t, limited(4, 2), nil)
	for _, want := range []string{`<h2 id="limits">What limits it`,
		`<p class="lead">From 30 clients on throughput is limited by the CPU of store.</p>`, "<li>First.</li><li>Second.</li><li>Third.</li>",
		`<td class="warn">97%*</td>`, "<span>Limited by</span><b>CPU</b><span>store, from 30 clients on</span>"} {
		if !strings.Contains(p, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	f := limited(4, 2)
	f.Bottleneck = nil
	if p := page1(t, f, nil); strings.Contains(p, "What limits it") || strings.Contains(p, "Limited by") {
		t.Error("nothing was judged, and the page says what limits")
	}
}
