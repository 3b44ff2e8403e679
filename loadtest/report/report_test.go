package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want := require.File(t, path)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (look at it, then run the test with -update):\n%s", path, diff)
	}
}

func analyzed(t testing.TB, s resultstest.Service) (*analysis.Findings, *analysis.Series) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, s.Write(dir))
	return both(t, dir)
}

func both(t testing.TB, dir string) (*analysis.Findings, *analysis.Series) {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	return f, series
}

// hostile gives attacks as names to all things.
func hostile() resultstest.Service {
	const name = `<script>alert(1)</script>"'&\x1b[31m` + "\x1b[2J\u202e"
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{1, 8, 64}, 3
	s.Interval = func(iv *measure.Interval) {
		iv.Server = name
		iv.Failed = map[storage.Class]int64{storage.Other: 1}
	}
	s.Sample = func(x *monitor.Sample) {
		x.Host, x.Error = name+x.Host, name
		for i := range x.Procs {
			x.Procs[i].Name = name
		}
		for i := range x.Nets {
			x.Nets[i].Name = name
		}
	}
	return s
}

func small() resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{1, 8, 64, 256}, 5
	return s
}

// cluster is a redirector with two data servers. It makes clients wait, sometimes fails itself, and
// its operations have a tail.
func cluster() resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{4, 32, 256}, 6
	s.Interval = func(iv *measure.Interval) {
		iv.Server = "ds1.example.org:1094"
		iv.Waits, iv.Waited = iv.Done/20, float64(iv.Done)/200
		if iv.Step == 3 {
			iv.Reopened = 1
		}
		for i := range iv.Done {
			iv.Redirect.Record(time.Millisecond * time.Duration(1+i%3))
			iv.Login.Record(time.Millisecond)
			if i%50 == 0 {
				iv.Latency.Record(time.Duration(float64(iv.Latency.Count()+i) * 1e6))
			}
		}
	}
	s.More = func(iv *measure.Interval) []*measure.Interval {
		write := *iv
		write.Kind, write.Server, write.Done, write.Moved, write.Waits, write.Waited = storage.Write, "ds2.example.org:1094", iv.Done/3,
			iv.Moved/3, 0, 0
		write.Failed = map[storage.Class]int64{storage.Reset: int64(iv.Step - 1)}
		return []*measure.Interval{&write, {
			Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients, Kind: iv.Kind,
			Sum: measure.Sum{
				Begun: iv.Done, Failed: map[storage.Class]int64{storage.Busy: 3},
			},
		}}
	}
	return s
}

// body returns a page without its own script and data. These must be at the end of the page, equal
// to the script that weir was built with, and contain only letters and digits.
func body(t *testing.T, page string) string {
	t.Helper()
	b := built()
	if b.script == "" {
		return page
	}
	before, after, ok := strings.Cut(page, `<script type="application/octet-stream" id="figures">`)
	data, rest, found := strings.Cut(after, "</script>")
	if !ok {
		return page // it has no plots
	}
	if want := "<script>" + b.script + "</script>\n</body>\n</html>\n"; !found || rest != want ||
		!regexp.MustCompile(`^[A-Za-z0-9+/=]+$`).MatchString(data) {
		t.Errorf("what follows the page is %.200q ...", after)
	}
	return before
}

// still writes the page in the form of a weir that was built without the scripts of the pages, and
// leaves out the style sheet, which has a file of its own.
func still(w io.Writer, f *analysis.Findings, s *analysis.Series) error {
	var page bytes.Buffer
	if err := writePageWith(&page, runPage(f, s), bundle{}); err != nil {
		return err
	}
	_, err := w.Write(regexp.MustCompile(`(?s)<meta http-equiv.*?</style>`).ReplaceAll(page.Bytes(), []byte("(policy and style)")))
	return err
}

func TestGolden(t *testing.T) {
	of, ofSeries := analyzed(t, cluster())
	f, _ := analyzed(t, resultstest.Typical())
	small, smallSeries := analyzed(t, small())
	for name, write := range map[string]func(io.Writer) error{
		"summary.txt":  func(w io.Writer) error { return Text(w, f, Options{}) },
		"typical.txt":  func(w io.Writer) error { return Text(w, f, Options{Verbose: true}) },
		"color.txt":    func(w io.Writer) error { return Text(w, small, Options{Color: true, Verbose: true}) },
		"typical.csv":  func(w io.Writer) error { return analysis.CurveCSV(w, f) },
		"small.json":   func(w io.Writer) error { return analysis.JSON(w, small) },
		"cluster.txt":  func(w io.Writer) error { return Text(w, of, Options{Verbose: true}) },
		"cluster.html": func(w io.Writer) error { return still(w, of, ofSeries) },
		"small.html":   func(w io.Writer) error { return still(w, small, smallSeries) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, write(&b))
			golden(t, name, b.Bytes())
		})
	}
}

func TestTextStaysInItsColumns(t *testing.T) {
	for i, s := range []resultstest.Service{resultstest.Typical(), hostile()} {
		f, _ := analyzed(t, s)
		var b bytes.Buffer
		require.NoError(t, Text(&b, f, Options{Verbose: true}))
		if strings.ContainsAny(b.String(), "\x1b\u202e\r") {
			t.Error("a name reached the terminal unchanged")
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if utf8.RuneCountInString(line) > width {
				t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
		b.Reset()
		require.NoError(t, Text(&b, f, Options{Width: 70, Verbose: true}))
		row := regexp.MustCompile(`\S {2,}\S+ {2,}\S`) // a table keeps its width
		for _, line := range strings.Split(b.String(), "\n") {
			if i == 0 && !row.MatchString(line) && utf8.RuneCountInString(line) > 70 { // the names of the other run are longer
				t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
	}
}

// A summary fits on a screen, with as many warnings as there may be.
func TestSummaryIsShort(t *testing.T) {
	f, _ := analyzed(t, resultstest.Typical())
	for i := range f.Validity.Checks {
		f.Validity.Checks[i].Status = analysis.Warn
		f.Warnings = append(f.Warnings, strings.Repeat("a word and another ", i))
	}
	f.Thresholds = []analysis.Judgment{{Threshold: "p99 < 1s", Detail: "it is 2 s"}}
	for _, opts := range []Options{{}, {Width: 80, Color: true}, {Width: 200}} {
		var b bytes.Buffer
		require.NoError(t, Text(&b, f, opts))
		text := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(b.String(), "")
		if n := strings.Count(text, "\n"); len(f.Curve) != 9 || n > 22 { // the path of the report follows
			t.Errorf("%d lines of %d steps:\n%s", n, len(f.Curve), text)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > summaryWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if !strings.Contains(text, "not met  p99 < 1s: it is 2 s") || !strings.Contains(text, "see --verbose") {
			t.Errorf("the threshold, or how to see the rest, is missing:\n%s", text)
		}
	}
}

func page1(t *testing.T, f *analysis.Findings, s *analysis.Series) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, HTML(&b, f, s))
	headed(t, b.String())
	return b.String()
}

func TestHTMLWithoutSeries(t *testing.T) {
	f, _ := analyzed(t, small())
	if text := page1(t, f, nil); !strings.Contains(text, "Throughput against load") || strings.Contains(text, "Throughput against time") {
		t.Error("the plots against load are missing, or there are plots of what is not there")
	}
}

func TestHTMLStandsAlone(t *testing.T) {
	for name, s := range map[string]resultstest.Service{"typical": resultstest.Typical(), "hostile": hostile(),
		"one":  {Lambda: 1, Clients: []int{1}, Duration: 1},
		"none": {Lambda: 1}, "no payload": {Lambda: 30, Clients: []int{1, 2}, Duration: 6}} {
		t.Run(name, func(t *testing.T) {
			f, series := analyzed(t, s)
			text := body(t, page1(t, f, series))
			for _, forbidden := range []string{"<script", "javascript:", "<link", "<img", "@import", "url(", "NaN", "Inf", "ZgotmplZ",
				"\x1b", "%!"} {
				if strings.Contains(text, forbidden) {
					t.Errorf("the page holds %q", forbidden)
				}
			}
			for _, ref := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(ref[1], "#") {
					t.Errorf("the page refers to %s", ref[1])
				}
			}
			if !strings.Contains(text, `class="stamp `+f.Validity.Status+`"`) {
				t.Error("the page has no stamp")
			}
			checkSVG(t, text)
		})
	}
}

// checkSVG checks that every plot is well-formed, titled and described.
func checkSVG(t *testing.T, text string) {
	t.Helper()
	ids := map[string]bool{}
	for _, at := range regexp.MustCompile(`<svg viewBox="0 0 270`).FindAllStringIndex(text, -1) {
		svg := text[at[0]:]
		d := xml.NewDecoder(strings.NewReader(svg))
		for depth := 0; ; {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("%v in %.200s", err, svg)
			}
			switch token.(type) {
			case xml.StartElement:
				depth++
			case xml.EndElement:
				depth--
			}
			if depth == 0 {
				svg = svg[:d.InputOffset()]
				break
			}
			if e, ok := token.(xml.StartElement); ok {
				for _, a := range e.Attr {
					if a.Name.Local == "id" && ids[a.Value] {
						t.Errorf("id %s is there twice", a.Value)
					} else if a.Name.Local == "id" {
						ids[a.Value] = true
					}
				}
			}
		}
		if !strings.Contains(svg, "<title id=") || !strings.Contains(svg, "<desc id=") || strings.Contains(svg, "></desc>") {
			t.Errorf("a plot is not described: %.200s", svg)
		}
	}
}

func TestLongRunStaysSmall(t *testing.T) {
	f, series := analyzed(t, small())
	point, host := series.Points[0], series.Hosts[0].Points[0]
	for i := range 100_000 {
		point.At, host.At = float64(i), float64(i)
		point.Throughput = 1e9 + 1e6*float64(i%977)
		series.Points = append(series.Points, point)
		for k := range series.Hosts {
			series.Hosts[k].Points = append(series.Hosts[k].Points, host)
		}
	}
	for i := range 10_000 {
		series.Events = append(series.Events, measure.Event{Kind: measure.EventError, Text: fmt.Sprint(i, strings.Repeat("x", 2000))})
		f.Phases = append(f.Phases, f.Phases[0])
	}
	if n := len(page1(t, f, series)); n > 1<<20 {
		t.Errorf("the page has %d bytes", n)
	}
}
