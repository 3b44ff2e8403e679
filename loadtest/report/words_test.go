package report

import (
	"regexp"
	"strings"
	"testing"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
	"weir/loadtest/results/resultstest"
)

func points(ys ...float64) []figure.Point {
	var all []figure.Point
	for i, y := range ys {
		all = append(all, figure.Point{X: float64(i), Y: y})
	}
	return all
}

func TestCourse(t *testing.T) {
	for want, p := range map[string][]figure.Point{
		"It is not known.":            nil,
		"It is 8 bit/s all the time.": points(1, 1, 1),
		"It begins near 8 bit/s, is highest with 40 bit/s at 2 s, lowest with 0 bit/s at 3 s, and ends near 16 bit/s.": points(1, 3, 5, 0, 2),
	} {
		if got := course("It", p, unit.Bits); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBursts(t *testing.T) {
	for want, p := range map[string][]figure.Point{
		"none":             points(0, 0),
		"only at 1 s, 4/s": points(0, 4, 0),
		"from 1 s to 2 s after the start, at most 9/s at 2 s":                points(0, 4, 9),
		"from 0 s to 4 s after the start in 3 stretches, at most 7/s at 4 s": points(1, 0, 2, 0, 7),
	} {
		if got := bursts(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHeatWords(t *testing.T) {
	h := &analysis.Heat{At: []float64{0, 4, 8, 12, 16}, Latency: []float64{0.001, 0.01, 0.1, 1},
		Counts: [][]int64{{9, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 7, 1}}}
	want := "Each column is 4 s of the run, each row a factor of 10 in latency; the stronger a cell's color, " +
		"the more operations ended there. The middle rises from about 5.5 ms at the start to about 55 ms at the end. " +
		"The slowest took up to 1 s and ended between 12 s and 16 s after the start. No operation ended between 4 s and 12 s after the start."
	if got := heatWords(h); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	one := &analysis.Heat{At: []float64{0, 1}, Latency: []float64{0.001, 0.01}, Counts: [][]int64{{1}}}
	if got := heatWords(one); !strings.Contains(got, "The middle is about 5.5 ms at the start and at the end. The slowest took up to 10 ms "+
		"and ended between 0 s and 1 s") {
		t.Error(got)
	}
}

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
		"With 8 clients the 2 data servers shared the throughput evenly, within 10%: b had the most with 51% and a the least with 49%; " +
			"an even share is 50%.": step(0.49, 0.51),
		"With 8 clients the 2 data servers shared the throughput unevenly: a had the most with 60% and b the least with 40%; " +
			"an even share is 50%.": step(0.6, 0.4),
		"With 8 clients the 4 data servers shared the throughput very unevenly: d had the most with 97% and b the least with 0%; " +
			"an even share is 25%, and 3 servers did less than a tenth of it.": step(0.02, 0, 0.01, 0.97),
	} {
		if got := imbalance(f, s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Who does not see a plot is told of it with numbers; what a curve says is what
// the numbers say.
func TestEveryFigureIsTold(t *testing.T) {
	for name, s := range map[string]resultstest.Service{"typical": resultstest.Typical(), "cluster": cluster(), "small": small(),
		"one": {Lambda: 1, Clients: []int{1}, Duration: 1}} {
		f, series := analyzed(t, s)
		p := Figures(f, series)
		all := append(p.All(), append(p.OtherSteps, p.Papers...)...)
		for _, h := range p.EachHost {
			all = append(all, h.Figures...)
			if !strings.Contains(h.Words, "CPU ") {
				t.Errorf("%s: %s", h.Host, h.Words)
			}
		}
		seen := map[string]bool{}
		for _, c := range all {
			if !regexp.MustCompile(`\d`).MatchString(c.Desc) || !strings.HasSuffix(c.Desc, ".") || strings.Contains(c.Desc, "%!") ||
				strings.Contains(c.Desc, "..") {
				t.Errorf("%s: %s: %s", name, c.ID, c.Desc)
			}
			if seen[c.ID] || c.Y.Name == "" && c.Heat == nil && len(c.Columns) == 0 && c.Y.Label == "" {
				t.Errorf("%s: %s is there twice, or nobody knows what its axis shows", name, c.ID)
			}
			seen[c.ID] = true
		}
	}
	f, _ := analyzed(t, resultstest.Typical())
	c := yieldChart(f)
	for _, want := range []string{"It rises from ", " with 1 client to ", ", then falls to ", "The knee is at ", "The optimum is at ",
		"the band around it is its 95% interval"} {
		if !strings.Contains(c.Desc, want) {
			t.Errorf("no %q in %s", want, c.Desc)
		}
	}
	level := resultstest.Typical()
	level.Sigma, level.Kappa = 0.5, 0
	g, _ := analyzed(t, level)
	if c := yieldChart(g); !strings.Contains(c.Desc, "shaded).") {
		t.Errorf("the equal loads are not told: %s", c.Desc)
	}
	for i, s := range f.Curve {
		if i == len(f.Curve)-1 && !strings.Contains(c.Desc, unit.Bits(s.Throughput)+" with 256 clients") {
			t.Errorf("the last step is not told: %s", c.Desc)
		}
	}
}

func TestApart(t *testing.T) {
	line := func(name string, ys ...float64) figure.Line { return figure.Line{Name: name, Points: points(ys...)} }
	for want, lines := range map[string][]figure.Line{
		"":                                       {line("a", 1)},
		" With 1 clients both have the same.":    {line("a", 1, 2), line("b", 2, 2)},
		" With 2 clients b has 50% more than a.": {line("a", 1, 1, 2), line("b", 2, 1, 3)},
		" With 2 clients b has 50% less than a. They cross below 1 clients.": {line("a", 1, 1, 2, 0), line("b", 2, 0.5, 1, 7)},
	} {
		if got := apart(lines, "clients"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
