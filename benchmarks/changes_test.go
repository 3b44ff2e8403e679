package bench

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
)

// fewest is the smallest number of rounds of a figure on a page; see the method on the page.
const fewest = 3

// A change is a figure before and now.
type change struct {
	where, what, before, now string
	ratio                    float64 // of the medians
	p                        float64 // of the exact rank test, two-sided, 1 if the rounds overlap
}

// significance returns the probability that all rounds of one measurement are below all rounds of
// another although the measurements do not differ. With n and m rounds it is 2 n! m! / (n+m)!
// (Wilcoxon's rank sum test).
func significance(n, m int) float64 {
	ways := new(big.Float).SetInt(new(big.Int).Binomial(int64(n+m), int64(n)))
	all, _ := ways.Float64()
	return min(1, 2/all)
}

// compared returns the change of one figure. It returns false if one of the texts is not a figure.
func compared(where, what, before, now string, rounds int) (change, bool) {
	v, low, high, ok := readSpread(before)
	v2, low2, high2, ok2 := readSpread(now)
	if !ok || !ok2 {
		return change{}, false
	}
	c := change{where, what, before, now, v2 / v, 1}
	if high < low2 || high2 < low {
		c.p = significance(fewest, rounds)
	}
	return c, true
}

// changes lists the figures of p that differ from the figures of q, a new measurement: the ratios
// of the bars, and the cells of the tables.
func (p page) changes(q page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Changes against the committed figures: medians, with the smallest and the largest. A change is significant (p < 0.05)\n"+
		"if all rounds of one lie beyond all rounds of the other; the committed ones are taken for %d rounds.\n", fewest)
	if before, now := p.about("processor"), q.about("processor"); before != now {
		fmt.Fprintf(&b, "The machines differ, so only ratios can be compared: %s; now %s.\n", before, now)
	}
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	all, shown := 0, 0
	for _, now := range q.cases {
		before := p.find(now.name)
		if before == nil {
			fmt.Fprintf(out, "%s\tnew\n", now.name)
			continue
		}
		for _, c := range before.changes(&now) {
			all++
			if c.p < 0.05 {
				shown++
				fmt.Fprintf(out, "%s\t%s\t%s\t-> %s\t%+.0f%%\tp = %.2g\n", c.where, c.what, c.before, c.now, 100*(c.ratio-1), c.p)
			}
		}
	}
	_ = out.Flush() // to memory
	fmt.Fprintf(&b, "%d of %d figures changed significantly.\n", shown, all)
	return b.String()
}

// about returns a line of the machine.
func (p page) about(what string) string {
	for _, line := range p.machine {
		if text, ok := strings.CutPrefix(line, "- "+what+": "); ok {
			return text
		}
	}
	return ""
}

func (s *section) changes(now *section) (all []change) {
	add := func(what, a, b string) {
		if c, ok := compared(s.name, what, a, b, now.repeat); ok {
			all = append(all, c)
		}
	}
	for _, b := range now.bars {
		for _, a := range s.bars {
			if a.what == b.what && a.bar == b.bar {
				add(a.what, a.measured, b.measured)
			}
		}
	}
	for _, row := range now.rows {
		for k, column := range now.head {
			for _, old := range s.rows {
				for i, name := range s.head {
					if old[0] == row[0] && name == column {
						add(column+", "+row[0], old[i+1], row[k+1])
					}
				}
			}
		}
	}
	return all
}

func TestChanges(t *testing.T) {
	old := page{machine: []string{"- processor: A"}, cases: []section{{
		comparison: comparison{name: "one"}, head: []string{"throughput", "client CPU per GB"},
		rows: [][]string{{"weir", "10 GB/s (9 GB/s to 11 GB/s)", "0.0100 s (0.00900 s to 0.0110 s)"}, {"gone", "1 GB/s", "1 s"}},
		bars: []shownBar{{"client CPU per GB, weir / curl", "at most 1/10", "1/20 (1/22 to 1/18)", "met", ""}},
	}}}
	now := page{machine: []string{"- processor: B"}, cases: []section{{
		comparison: comparison{name: "one"}, head: []string{"client CPU per GB", "throughput"}, repeat: 5,
		rows: [][]string{{"weir", "0.0105 s (0.00950 s to 0.0120 s)", "5 GB/s (4 GB/s to 6 GB/s)"}, {"more", "1 s", "—"}},
		bars: []shownBar{{"client CPU per GB, weir / curl", "at most 1/10", "1/10 (1/12 to 1/9)", "met", ""}},
	}, {comparison: comparison{name: "two"}, repeat: 5}}}
	text := old.changes(now)
	for _, want := range []string{"A; now B", "one  client CPU per GB, weir / curl  1/20 (1/22 to 1/18)", "+100%  p = 0.036",
		"-> 5 GB/s (4 GB/s to 6 GB/s)", "-50%", "two", "2 of 3 figures changed significantly"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if now.cases[0].repeat = 3; !strings.Contains(old.changes(now), "0 of 3 figures changed significantly") {
		t.Error("three rounds of each are taken for enough")
	}
	if p := significance(5, 5); math.Abs(p-2./252) > 1e-12 {
		t.Errorf("p of 5 and 5 rounds: %v", p)
	}
}

// A page lists the cases that were measured on another processor.
func TestElsewhere(t *testing.T) {
	on := func(processor string, names ...string) page {
		p := page{machine: []string{"- processor: " + processor}}
		for _, name := range names {
			p.cases = append(p.cases, section{comparison: comparison{name: name}})
		}
		return p
	}
	p := on("A", "download-1", "download-64", "metering").with(on("B", "download-1", "metering"))
	p = p.with(on("C", "download-64")).with(on("A", "metering"))
	want := []string{"- processor: A", "- elsewhere, on B: download-1", "- elsewhere, on C: download-64"}
	if d := cmp.Diff(want, p.machine); d != "" {
		t.Error(d)
	}
}
