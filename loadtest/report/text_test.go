package report

import (
	"bytes"
	"strings"
	"testing"

	"weir/loadtest/analysis"
)

// TestNoTextIsCut writes the result of a table whose texts are wider than 80 columns: all of its
// words are there, in lines of at most 80 columns. Only names are shortened.
func TestNoTextIsCut(t *testing.T) {
	p := newPrinter(nil, Options{})
	tab := table{Head: heads("<", "<where", "<what it gives", "rate")}
	tab.row(false, "optimum", "8 clients (8 to 64 clients the same)", "12.5 Gbit/s (12.1 to 12.9 Gbit/s) beyond noise", "12345.6 files/s")
	tab.row(false, "host", "x", "a-very-long-name-of-a-host-in-a-domain-of-many-parts.example.org", "1")
	lines := p.rows(&tab, inText)
	all := strings.Join(lines, "\n")
	for _, line := range lines {
		if len([]rune(line)) > summaryWidth {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	for word := range strings.FieldsSeq("8 clients (8 to 64 clients the same) (12.1 to 12.9 Gbit/s) beyond noise 12345.6 files/s") {
		if !strings.Contains(all, word) {
			t.Errorf("%q is missing in\n%s", word, all)
		}
	}
	if strings.Count(all, "..") != 1 {
		t.Errorf("only the name is to be shortened:\n%s", all)
	}
	f := &analysis.Findings{Model: "closed", Source: analysis.FromTable,
		Curve:   []analysis.Step{{Step: 1, Clients: 8}, {Step: 2, Clients: 1024}},
		Optimum: &analysis.Optimum{Step: 1, Clients: 8, ClientsLow: 8, ClientsHigh: 1024, Equals: []int{1, 2}, Throughput: 1.2345e9},
		Knee:    &analysis.Knee{Step: 1, Clients: 8, ClientsLow: new(1.0), ClientsHigh: new(1000.0), Throughput: 1e9}}
	f.Boundaries = []analysis.Boundary{{Condition: "latency_mean < 10 x single and a long condition of a scenario"}}
	var b bytes.Buffer
	if err := Text(&b, f, Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "..") || !strings.Contains(strings.Join(strings.Fields(b.String()), " "), "(8 to 1024 clients") {
		t.Errorf("a text is cut:\n%s", b.String())
	}
}
