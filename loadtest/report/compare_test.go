package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/analysis/links"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// variant makes n runs of a service that gives so many bytes per second.
func variant(name string, n int, throughput float64, levels map[string]string) compare.Group {
	g := compare.Group{Name: name, Levels: levels}
	for i := range n {
		f := &analysis.Findings{Run: fmt.Sprint(name, i), Measure: analysis.Throughput, Target: "http://" + name,
			Start: time.Unix(int64(1e9+100*i), 0), Validity: analysis.Validity{Status: analysis.Suspect}}
		for k := range 3 {
			t := throughput * float64(k+1) * (1 + 0.001*float64(i*i%7))
			f.Curve = append(f.Curve, analysis.Step{Step: k + 1, Clients: 10 << k, Duration: 9, Throughput: t, Moved: 1, Done: 9,
				Errors: int64(i % 2), ErrorRatio: 0.1 * float64(i%2), Latency: &analysis.Quantiles{P50: 1e6 / t, P99: 3e6 / t}})
		}
		f.Optimum = &analysis.Optimum{Clients: 20 + i, Inside: true, Throughput: 3 * throughput}
		g.Runs = append(g.Runs, compare.NewRun("runs/"+name, results.About{}, &scenario.Plan{}, f).Of("c", i+1, levels))
	}
	return g
}

const rude = "<script>alert(1)</script>\x1b[31m\u202e a name that is far too long for any column"

func comparisons(t *testing.T) map[string]*compare.Comparison {
	t.Helper()
	level := func(a, b string) map[string]string { return map[string]string{"auth.method": a, rude: b} }
	factors := []compare.Factor{{Key: "auth.method", Levels: []string{"none", "krb5"}}, {Key: rude, Levels: []string{"1", rude}}}
	all := map[string]*compare.Comparison{}
	for name, c := range map[string]struct {
		groups []compare.Group
		opts   compare.Options
	}{
		"two": {[]compare.Group{variant("before", 9, 1e8, nil), variant("after", 9, 1.2e8, nil)},
			compare.Options{Metrics: []string{"throughput", "all"}}},
		"one":     {[]compare.Group{variant("before", 1, 1e8, nil), variant("after", 1, 1.2e8, nil)}, compare.Options{}},
		"hostile": {[]compare.Group{variant(rude, 5, 1e8, nil), variant("b", 4, 1.2e8, nil)}, compare.Options{}},
		"matrix": {[]compare.Group{variant("a", 5, 1e8, level("none", "1")), variant("b", 5, 2e8, level("krb5", "1")),
			variant("c", 5, 1.1e8, level("none", rude)), variant("d", 4, 5e8, level("krb5", rude))}, compare.Options{Factors: factors}},
	} {
		made, err := compare.Of(c.groups, c.opts)
		require.NoError(t, err)
		all[name] = made
	}
	return all
}

func TestComparison(t *testing.T) {
	for name, c := range comparisons(t) {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, Comparison(&out, c, Options{}))
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && name != "hostile" && name != "matrix" || n > 140 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if strings.ContainsAny(out.String(), "\x1b\u202e") {
				t.Error("what a terminal obeys is in the text")
			}
		})
	}
	var out bytes.Buffer
	require.NoError(t, Comparison(&out, comparisons(t)["two"], Options{}))
	golden(t, "compare.txt", out.Bytes())
}

func TestComparisonHTML(t *testing.T) {
	for name, c := range comparisons(t) {
		var out bytes.Buffer
		require.NoError(t, ComparisonHTML(&out, c))
		headed(t, out.String())
		page := body(t, out.String())
		if strings.Contains(page, "<script") || strings.Contains(page, "\x1b") {
			t.Errorf("%s: a name is obeyed", name)
		}
		if strings.Count(page, "<svg") < 3 || !strings.Contains(page, `class="stamp suspect"`) || strings.Contains(page, "NaN") ||
			strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: plots or stamp are missing", name)
		}
		for rest := page; strings.Contains(rest, "<svg"); {
			_, rest, _ = strings.Cut(rest, "<svg")
			svg, after, _ := strings.Cut(rest, "</svg>")
			d := xml.NewDecoder(strings.NewReader("<svg" + svg + "</svg>"))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %s", name, err, svg)
				}
			}
			rest = after
		}
	}
}

// The steps of data challenges are stages, which have no clients.
func TestComparisonOfChallenges(t *testing.T) {
	challenges := func(name string, throughput float64) compare.Group {
		g := variant(name, 2, throughput, nil)
		for _, r := range g.Runs {
			r.Found.Challenge = &links.Challenge{}
			for i := range r.Found.Curve {
				r.Found.Curve[i].Clients = 200
			}
		}
		return g
	}
	c, err := compare.Of([]compare.Group{challenges("before", 1e8), challenges("after", 1.2e8)}, compare.Options{})
	require.NoError(t, err)
	var text, page bytes.Buffer
	require.NoError(t, Comparison(&text, c, Options{}))
	require.NoError(t, ComparisonHTML(&page, c))
	if pair := c.Pairs[0]; pair.Load != analysis.Stages || len(pair.Steps) != 3 || pair.Steps[2].Again != 3 {
		t.Errorf("%+v", pair)
	}
	if strings.Contains(text.String(), "200") || strings.Contains(text.String(), "clients") || !strings.Contains(text.String(), "stages") {
		t.Error(text.String())
	}
	if !strings.Contains(page.String(), "stage 3") || strings.Contains(page.String(), "200 ") {
		t.Error("the page has no stages")
	}
}
