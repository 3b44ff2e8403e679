package gallery

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/analysis/table"
	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

func options(formats ...string) Options {
	o := Options{Options: draw.Defaults(), Formats: formats}
	o.DPI = 72
	return o
}

// run makes the figures of an artificial run directory.
func run(t *testing.T) Set {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	s := resultstest.Typical()
	require.NoError(t, s.Write(dir))
	r, err := results.Open(dir)
	require.NoError(t, err)
	f, series, err := analysis.AnalyzeWithSeries(r)
	require.NoError(t, err)
	return OfRun(f, series, "1.2.3")
}

// twenty are the points of the first seed: GridFTP behind LVS, 2017.
func twenty(t *testing.T) Set {
	t.Helper()
	file, err := os.Open("../../analysis/testdata/gridftp/AverageThroughput.csv")
	require.NoError(t, err)
	defer file.Close()
	read, err := table.Read("AverageThroughput.csv", file, table.Options{})
	require.NoError(t, err)
	f, err := analysis.AnalyzeTable(read, analysis.TableOptions{})
	require.NoError(t, err)
	return OfTable(f, "AverageThroughput.csv", "1.2.3")
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Papers and scripts refer to these names: a change breaks the references.
func TestNamesStay(t *testing.T) {
	set := run(t)
	names := Names(set.Figures)
	for _, want := range []string{
		"throughput-vs-clients", "throughput-per-client-vs-clients", "latency-vs-clients", "cpu-vs-clients", "wall-clock-time-vs-clients",
		"throughput-vs-time", "files-vs-time", "latency-vs-time", "latency-heat-map-vs-time", "clients-vs-time",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %v", want, names)
		}
	}
	if !slices.ContainsFunc(names, func(n string) bool { return regexp.MustCompile(`^transfer-time-with-\d+-clients$`).MatchString(n) }) {
		t.Errorf("no histogram among %v", names)
	}
	if slices.ContainsFunc(names, func(n string) bool { return !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(n) }) {
		t.Errorf("%v", names)
	}
}

func TestNamesOfAnything(t *testing.T) {
	all := Names([]figure.Figure{{Title: "../../etc/passwd"}, {Title: "CPU of a/b"}, {Title: "CPU of a b (4 of 50)"}, {Title: "日本"}, {},
		{Title: strings.Repeat("x", 500)}, {ID: "curve", X: figure.Axis{Unit: "arrivals/s"}, Y: figure.Axis{Name: "throughput"}}})
	want := []string{"etc-passwd", "cpu-of-a-b", "cpu-of-a-b-2", "figure", "figure-2", strings.Repeat("x", 60), "throughput-vs-arrivals"}
	if !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
}

// The first seed's figure: twenty points, the fourth-order fit with its maximum at 2161 clients,
// and the preferred fit with its interval.
func TestTwentyPoints(t *testing.T) {
	set := twenty(t)
	curve := &set.Figures[0]
	if n := len(curve.Lines[0].Points); n != 20 || curve.X.Base != 0 {
		t.Errorf("%d points, base %v", n, curve.X.Base)
	}
	var names []string
	for _, l := range curve.Lines {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"measured", "fitted usl", "fitted poly4"}) {
		t.Errorf("lines %q", names)
	}
	marked := map[string]*figure.Mark{}
	for i := range curve.Marks {
		marked[curve.Marks[i].Name] = &curve.Marks[i]
	}
	if m := marked["poly4: 2161 clients"]; m == nil || math.Abs(m.X-2161) > 1 {
		t.Errorf("marks %v", marked)
	}
	if m := marked["optimum: 1992 clients"]; m == nil || m.Low == nil || *m.Low != 1992 || *m.High != 2884 {
		t.Errorf("optimum %v", m)
	}
	caption := set.Caption(curve)
	for _, want := range []string{"Y = a0 + a1 N + a2 N^2 + a3 N^3 + a4 N^4", "n = 20 points",
		"AverageThroughput.csv", "unchecked", "weir 1.2.3"} {
		if !strings.Contains(caption, want) {
			t.Errorf("no %q in: %s", want, caption)
		}
	}
}

// The caption of a run's figure contains everything that a reader needs.
func TestCaptions(t *testing.T) {
	set := run(t)
	caption := set.Caption(&set.Figures[0])
	for _, want := range []string{"Throughput against load.",
		"Student's distribution over", "batch means",
		"Run ", " against ", resultstest.Start().Format("2006-01-02 15:04 MST"), "Validity: ", "drawn with weir 1.2.3"} {
		if !strings.Contains(caption, want) {
			t.Errorf("no %q in: %s", want, caption)
		}
	}
	for i := range set.Figures {
		f := &set.Figures[i]
		if c := set.Caption(f); !strings.Contains(c, "n = ") || !strings.Contains(c, "Validity: ") || f.Stamp == "" {
			t.Errorf("%s, stamp %q: %s", f.ID, f.Stamp, c)
		}
		if f.Y.Name == "" && !strings.Contains(f.Y.Label, " ") {
			t.Errorf("%s: the y axis has no name but %q", f.ID, f.Y.Label)
		}
	}
}

func TestHostileCaptions(t *testing.T) {
	set := Set{Title: `$x_1$ \input{/etc/passwd} <script>`, Origin: []string{"![x](y) [a](b) `c` 100% #1 & {~^}\x1b[31m \u202e"},
		Figures: []figure.Figure{{Title: `\end{figure}<img src=x onerror=alert(1)>`}}}
	var md, latex bytes.Buffer
	if err := errors.Join(markdown(&md, set, []string{"figure"}, options("png")),
		tex(&latex, set, []string{"figure"}, options("png"))); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img", "<script", "![x]", "[a](b)", "\x1b", "\u202e"} {
		if strings.Contains(md.String(), bad) {
			t.Errorf("%q in %s", bad, md.String())
		}
	}
	if n := strings.Count(latex.String(), `\end{`); n != 1 || strings.Contains(latex.String(), `\input`) {
		t.Errorf("%s", latex.String())
	}
	plain := regexp.MustCompile(`\\[a-z]+\{\}|\\[&%$#_{}]`).ReplaceAllString(latex.String(), "")
	if strings.Count(plain, "{") != strings.Count(plain, "}") || strings.ContainsAny(plain, "&$#_~^") {
		t.Errorf("%s", plain)
	}
}

// The numbers beside a figure are the numbers that it shows, in the units of its axes.
func TestNumbers(t *testing.T) {
	set := run(t)
	for i := range set.Figures {
		f := &set.Figures[i]
		var b bytes.Buffer
		require.NoError(t, Numbers(&b, f))
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", f.ID, err)
		}
		want := len(f.Columns)
		for _, l := range f.Lines {
			want += len(l.Points)
		}
		if f.Heat == nil && len(rows) != 1+want+min(1, len(f.Lines))*len(f.Marks) {
			t.Errorf("%s: %d rows for %d points and %d marks", f.ID, len(rows)-1, want, len(f.Marks))
		}
		if f.ID != "curve" {
			continue
		}
		p := f.Lines[0].Points[2]
		for k, want := range map[int]float64{1: p.X, 2: p.Y * f.Y.Factor, 3: *p.Low * f.Y.Factor, 4: *p.High * f.Y.Factor} {
			if got, err := strconv.ParseFloat(rows[3][k], 64); err != nil || math.Abs(got-want) > 1e-9*want {
				t.Errorf("%q: column %d is not %v", rows[3], k, want)
			}
		}
		if !strings.Contains(rows[0][2], "throughput (") || !strings.Contains(rows[0][2], "bit/s)") {
			t.Errorf("header %q", rows[0])
		}
	}
}

// Formulas of spreadsheets, quotes and line breaks in names remain parts of names.
func TestNumbersOfHostileNames(t *testing.T) {
	f := figure.Figure{Lines: []figure.Line{{Name: "=1+cmd|' /C calc'!A0", Points: []figure.Point{{X: 1, Y: math.NaN()}}},
		{Name: "a,\"b\"\nc", Points: []figure.Point{{X: math.Inf(1), Y: 2}}}}}
	f.X.Factor, f.Y.Factor = 1, 1
	var b bytes.Buffer
	require.NoError(t, Numbers(&b, &f))
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 || rows[1][0][0] == '=' || rows[1][2] != "" || rows[2][0] != `a,"b" c` || rows[2][1] != "" {
		t.Errorf("%q %v", rows, err)
	}
}

// Files of the same names are replaced; other files in the folder remain.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "figures")
	set := twenty(t)
	said := 0
	o := options("svg", "png", "pdf")
	o.Progress = func(done, total int) {
		if done == total {
			said = total
		}
	}
	names, err := Write(dir, set, o)
	if err != nil || said != 4*len(names) {
		t.Fatal(names, said, err)
	}
	if got := files(t, dir); len(got) != 4*len(names)+2 {
		t.Errorf("%v", got)
	}
	first := require.File(t, filepath.Join(dir, names[0]+".pdf"))
	mine := filepath.Join(dir, "mine.txt")
	if err := errors.Join(os.WriteFile(mine, nil, 0o600), os.WriteFile(filepath.Join(dir, names[0]+".pdf"), []byte("old"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, set, options("pdf")); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, names[0]+".pdf"))
	if err != nil || !bytes.Equal(first, again) {
		t.Error("the PDF is not the same again", err)
	}
	if got := files(t, dir); len(got) != 4*len(names)+3 {
		t.Errorf("something was left or removed: %v", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	set := twenty(t)
	run := t.TempDir()
	file := filepath.Join(run, results.AboutFile)
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	if _, err := Write(run, set, options("svg")); err == nil || !strings.Contains(err.Error(), filepath.Join(run, "figures")) {
		t.Errorf("into a run directory: %v", err)
	}
	if _, err := Write(file, set, options("svg")); err == nil {
		t.Error("into a file")
	}
	if _, err := Write(t.TempDir(), Set{}, options("svg")); err == nil || !strings.Contains(err.Error(), "nothing to draw") {
		t.Errorf("nothing: %v", err)
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "throughput-vs-clients.svg"), 0o700))
	if _, err := Write(dir, set, options("svg")); err == nil || !strings.Contains(err.Error(), "throughput-vs-clients.svg") {
		t.Errorf("over a folder: %v", err)
	}
	for _, n := range files(t, dir) {
		if strings.HasPrefix(n, ".") {
			t.Errorf("%s was left", n)
		}
	}
	if _, err := ParseFormats([]string{"svg", "gif"}); err == nil || !strings.Contains(err.Error(), "svg, png, pdf") {
		t.Error(err)
	}
}

// step is a made-up point of a curve.
func step(clients int, throughput float64) analysis.Step {
	low, high := throughput*0.9, throughput*1.1
	return analysis.Step{Step: clients, Clients: clients, ActiveClients: float64(clients), Throughput: throughput, ThroughputLow: &low,
		ThroughputHigh: &high, PerClient: throughput / float64(clients),
		ExternalCores: 0.25 * float64(clients), Latency: &analysis.Quantiles{Mean: float64(clients) / 10, P99: float64(clients)}}
}

func found(status string, factor float64) *compare.Run {
	f := &analysis.Findings{Measure: analysis.Throughput, Validity: analysis.Validity{Status: status},
		Curve: []analysis.Step{step(1, 100*factor), step(2, 200*factor), step(4, 200*factor)}}
	return &compare.Run{Name: "r", Start: time.Unix(0, 0), Status: status, Found: f}
}

// Two ways of access on one plot: a line for each, means over runs with their intervals, and the
// efficiency of the two.
func TestOfComparison(t *testing.T) {
	groups := []compare.Group{{Name: "direct", Runs: []*compare.Run{found("valid", 1), found("valid", 1.1), found("suspect", 1.2)}},
		{Name: "staged", Runs: []*compare.Run{found("valid", 2)}}, {Name: "lost"}}
	set := OfComparison(groups, "1.2.3")
	by := map[string]*figure.Figure{}
	for i, name := range Names(set.Figures) {
		by[name] = &set.Figures[i]
		if f := by[name]; f.Stamp != "suspect" || len(f.Lines) != 2 || len(f.Lines[0].Points) != 3 {
			t.Errorf("%s: stamp %s, lines %+v", name, f.Stamp, f.Lines)
		}
	}
	yield, scaling, cpu := by["throughput-vs-clients"], by["efficiency-vs-clients"], by["cpu-efficiency-vs-clients"]
	if yield == nil || scaling == nil || cpu == nil || by["wall-clock-time-vs-clients"] == nil {
		t.Fatalf("%v", Names(set.Figures))
	}
	p := yield.Lines[0].Points[1] // 200, 220, 240: 220 with t(2 degrees) 4.3027 x 20/sqrt(3)
	if math.Abs(p.Y-220) > 1e-9 || p.High == nil || math.Abs(*p.High-p.Y-49.683) > 0.01 {
		t.Errorf("mean of three runs %+v", p)
	}
	if p := yield.Lines[1].Points[1]; p.High == nil || math.Abs(*p.High-440) > 1e-9 {
		t.Errorf("a single run has its own interval: %+v", p)
	}
	for i, want := range []float64{1, 1, 0.5} {
		if got := scaling.Lines[1].Points[i].Y; math.Abs(got-want) > 1e-9 {
			t.Errorf("efficiency of point %d: %v, want %v", i, got, want)
		}
	}
	if got := cpu.Lines[0].Points[2].Y; math.Abs(got-0.25) > 1e-9 {
		t.Errorf("CPU efficiency %v", got)
	}
	if c := set.Caption(yield); !strings.Contains(c, "direct: 3 runs") || !strings.Contains(c, "staged: 1 run") ||
		!strings.Contains(c, "mean over runs") {
		t.Error(c)
	}
	if len(OfComparison(nil, "").Figures) != 0 {
		t.Error("figures of nothing")
	}
}
