package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"weir/monitor"
)

var (
	resultsFlag = flag.String("results", "", "`FILE` with the output of go test -bench Peers, for TestWritePage")
	outFlag     = flag.String("out", "", "`FILE` to write the page to (default: the test's output)")
)

// TestWritePage writes the page of the results in a file.
func TestWritePage(t *testing.T) {
	if *resultsFlag == "" {
		t.Skip("no -results")
	}
	text, err := os.ReadFile(*resultsFlag)
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPage(text)
	if err != nil {
		t.Fatal(err)
	}
	if *outFlag == "" {
		t.Log(p.render())
	} else if err := os.WriteFile(*outFlag, []byte(p.render()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A page is docs/benchmarks.md.
type page struct {
	results []result
	short   bool
	config  map[string]string // of printConfig
}

// A result is what a comparison showed.
type result struct {
	comparison
	sides  []string
	rounds []map[string]figures // of each side
}

// printConfig writes what the page says of the machine as configuration lines of Go's benchmark format.
func printConfig(ctx context.Context, weir string) {
	load, _ := os.ReadFile("/proc/loadavg") // without it the page does not say
	busy, _, _ := strings.Cut(string(load), " ")
	fmt.Printf("short: %v\nload: %s\nweir: %s\n", testing.Short(), busy, words(ctx, 3, weir, "--version"))
}

// readPage reads the output of go test -bench Peers. Cases that it does not have are left out.
func readPage(text []byte) (page, error) {
	p := page{config: map[string]string{}}
	found := map[string]*result{}
	in := benchfmt.NewReader(bytes.NewReader(text), "results")
	for in.Scan() {
		rec, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, key := range []string{"load", "weir", "short"} {
			p.config[key] = rec.GetConfig(key)
		}
		parts := strings.Split(string(rec.Name.Base()), "/")
		base, at := rec.Name.Parts()
		if string(base) != "Peers" || len(at) < 3 {
			return p, fmt.Errorf("%s is not Peers/CASE/SIDE/round=N", strings.Join(parts, "/"))
		}
		name, side := string(at[0][1:]), strings.ReplaceAll(string(at[1][1:]), "_", " ")
		if found[name] == nil {
			found[name] = &result{}
		}
		var round int
		if _, err := fmt.Sscanf(string(at[2]), "/round=%d", &round); err != nil || round < 1 {
			return p, fmt.Errorf("%s: %w", rec.Name, err)
		}
		found[name].add(side, round, rec.Values)
	}
	if err := in.Err(); err != nil {
		return p, err
	}
	p.short = p.config["short"] == "true"
	s := fullScale()
	if p.short {
		s = quickScale()
	}
	for _, c := range cases(s) {
		if r := found[c.name]; r != nil {
			r.comparison = c
			p.results = append(p.results, *r)
		}
	}
	if len(p.results) == 0 {
		return p, fmt.Errorf("no results")
	}
	return p, nil
}

// add adds what a side showed in a round.
func (r *result) add(side string, round int, values []benchfmt.Value) {
	if !slices.Contains(r.sides, side) {
		r.sides = append(r.sides, side)
	}
	for len(r.rounds) < round {
		r.rounds = append(r.rounds, map[string]figures{})
	}
	f := figures{}
	for _, v := range values {
		if v.OrigUnit != "" {
			v.Value, v.Unit = v.OrigValue, v.OrigUnit
		}
		if m := metricOf(v.Unit); m.unit != "" {
			f[m] = v.Value / m.scale
		}
	}
	r.rounds[round-1][side] = f
}

// metricOf returns the metric with a unit, the zero metric if there is none.
func metricOf(unit string) metric {
	for _, c := range cases(quickScale()) {
		for _, m := range c.metrics {
			if m.unit == unit {
				return m
			}
		}
		for _, b := range c.bars {
			if b.metric.unit == unit {
				return b.metric
			}
		}
	}
	return metric{}
}

const intro = `# Benchmarks

A load generator must cost less than what it measures, or it measures itself. This page says what weir costs and how
fast it is, beside the programs that one would use instead. ` + "`make bench`" + ` writes it whole, on the machine at hand.

`

const method = `## How it was measured

- Every run is a process of its own: ` + "`weir run`" + ` on a scenario with everything on that a user has on (metering of each
  operation, verifying 1% of them, watching the host once a second, writing the run directory and the report), and the
  other programs with their usual options. Each run of weir has another seed, which decides what is verified.
- nginx has no checksums. So of what is read from it, weir discards the 1%, too, once nginx has said so, and counts them as
  unverifiable; what is written to it is read back and compared. From weir's own server the 1% are read and verified.
- The sides of a table take turns: one round is one run of each. A ratio compares two runs of the same round;
  the tables show the median of all rounds and the smallest and largest.
- Client CPU is user and system time of the whole process from its start to its end (wait4), over all bytes that it
  moved or all requests that it made. Server CPU is the difference of /proc/PID/stat over the same time. GB is 10^9 bytes.
- Throughput and requests/s are what weir reports for the time at full load; of curl, bytes over wall time;
  of wrk and iperf3, what they report themselves.
- Client and server are on one machine and talk over loopback: they share its cores, and part of the kernel's work for
  the one is charged to the other. Ratios hold; absolute figures say little about another machine or a real network.
- Before each copy of files as much memory is written and freed as it takes: a virtual machine gives freed memory back to
  its host, and who writes into that first would pay for all (up to twice the CPU). It is not counted.
- Over loopback ` + "`weir serve`" + ` and the doors of agents send with TCP's congestion control reno, whatever the machine
  uses otherwise (see TCP below), since nothing can be congested there; all others send with the machine's. bbr costs sender and receiver.
- Plain HTTP. With TLS, or when a length is unknown, weir reads payload instead of discarding it in the kernel; that is
  not measured here.

`

// render writes the page.
func (p page) render() string {
	var b strings.Builder
	b.WriteString(intro)
	if p.short {
		b.WriteString("**This is a smoke run of very short cases: its figures say that they can be measured, and nothing more.**\n\n")
	}
	var names []string
	for _, r := range p.results {
		names = append(names, r.name)
	}
	if len(names) < len(cases(quickScale())) {
		fmt.Fprintf(&b, "Only these cases were measured: %s.\n\n", strings.Join(names, ", "))
	}
	p.summary(&b)
	b.WriteString(method)
	p.machine(&b)
	b.WriteString("## The figures\n\n")
	for _, r := range p.results {
		r.render(&b)
	}
	return b.String()
}

// summary lists every bar, met or not.
func (p page) summary(b *strings.Builder) {
	var lost []string
	all := 0
	rounds := 0
	for _, r := range p.results {
		rounds = max(rounds, len(r.rounds))
	}
	fmt.Fprintf(b, "## What was to be reached\n\nRatios are weir's figure over the other's, median of %d round%s (smallest to largest).\n\n", rounds, plural(rounds))
	b.WriteString("| case | compared | bar | measured | |\n|---|---|---|---|---|\n")
	for _, r := range p.results {
		for _, bar := range r.bars {
			s := r.judge(bar)
			all++
			fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s | %s |\n", r.title, anchor(r.title), bar.what(), bar.text(), bar.spread(s), bar.verdict(s))
			if !bar.met(s.median) {
				lost = append(lost, strings.TrimSpace(fmt.Sprintf("- **%s**, %s: %s, where the bar is %s. %s", r.title, bar.what(), bar.spread(s), bar.text(), bar.why)))
			}
		}
	}
	fmt.Fprintf(b, "\n%d of %d are met.", all-len(lost), all)
	if len(lost) > 0 {
		fmt.Fprintf(b, " Not met:\n\n%s", strings.Join(lost, "\n"))
	}
	b.WriteString("\n\n")
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(title))
}

func (p page) machine(b *strings.Builder) {
	e, ctx := monitor.About(), context.Background()
	fmt.Fprintf(b, "## The machine\n\n")
	for _, row := range [][2]string{
		{"when", e.Time.UTC().Format("2006-01-02 15:04") + " UTC"},
		{"processor", fmt.Sprintf("%s, %d cores (%d usable)", e.CPU, e.Cores, e.CoresUsed)},
		{"below it", e.Virtualization},
		{"memory", fmt.Sprintf("%.0f GiB", float64(e.Memory)/(1<<30))},
		{"system", e.System + ", Linux " + e.Kernel},
		{"load before the start", p.config["load"]},
		{"clock", e.ClockSource},
		{"TCP", fmt.Sprintf("%s, receive buffer at most %d KiB, ports %d to %d, backlog %d", e.CongestionControl, e.ReceiveMemory[2]>>10, e.PortLow, e.PortHigh, e.Backlog)},
		{"open files", fmt.Sprintf("%d in a process", e.FilesHard)},
		{"Go", e.Go},
		{"weir", strings.TrimSpace(p.config["weir"] + " " + words(ctx, 1, "git", "rev-parse", "--short", "HEAD"))},
		{"peers", strings.Join([]string{
			words(ctx, 2, "curl", "--version"), words(ctx, 2, "wrk", "-v"), words(ctx, 2, "iperf3", "--version"),
			strings.TrimPrefix(words(ctx, 3, "nginx", "-v"), "nginx version: "),
		}, ", ")},
	} {
		if row[1] != "" {
			fmt.Fprintf(b, "- %s: %s\n", row[0], row[1])
		}
	}
	b.WriteString("\n")
}

// words returns the first n words that a program says, such as its version.
func words(ctx context.Context, n int, program string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if path, err := exec.LookPath("/usr/sbin/" + program); err == nil {
		program = path // where daemons lie
	}
	out, _ := exec.CommandContext(ctx, program, args...).CombinedOutput() // wrk -v says it and fails
	all := strings.Fields(string(out))
	return strings.Join(all[:min(n, len(all))], " ")
}

// render writes one comparison: what ran, each side's figures, each bar.
func (r result) render(b *strings.Builder) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n", r.title, r.about)
	var metrics []metric
	for _, m := range r.metrics {
		if slices.ContainsFunc(r.sides, func(s string) bool { return len(r.values(s, m)) > 0 }) {
			metrics = append(metrics, m)
		}
	}
	b.WriteString("| |")
	for _, m := range metrics {
		fmt.Fprintf(b, " %s |", m.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(metrics)) + "\n")
	for _, s := range r.sides {
		fmt.Fprintf(b, "| %s |", s)
		for _, m := range metrics {
			fmt.Fprintf(b, " %s |", cell(m, r.values(s, m)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, bar := range r.bars {
		s := r.judge(bar)
		fmt.Fprintf(b, "- %s: **%s**, bar %s: %s\n", bar.what(), bar.spread(s), bar.text(), bar.verdict(s))
	}
	b.WriteString("\n")
}

func (r result) values(side string, m metric) []float64 {
	var all []float64
	for _, round := range r.rounds {
		if v, ok := round[side][m]; ok {
			all = append(all, v)
		}
	}
	return all
}

func cell(m metric, values []float64) string {
	if len(values) == 0 {
		return "—"
	}
	s := spreadOf(values)
	text := show(m, s.median)
	if low, high := show(m, s.low), show(m, s.high); low != high {
		text += fmt.Sprintf(" (%s to %s)", low, high)
	}
	return text
}

// A spread is the median of values of several rounds, and its interval: of up to five values the smallest and the
// largest are the only order statistics that enclose the median with a confidence of 75% (three) to 94% (five).
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	s := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	return spread{benchmath.AssumeNothing.Summary(s, .5).Center, s.Values[0], s.Values[len(s.Values)-1]}
}

func (r result) judge(b bar) spread {
	var all []float64
	for _, round := range r.rounds {
		if round[b.a] != nil && (b.b == "" || round[b.b] != nil) { // both went well
			all = append(all, b.ratio(round))
		}
	}
	if len(all) == 0 {
		all = []float64{math.NaN()}
	}
	return spreadOf(all)
}

func (b bar) what() string {
	switch {
	case b.b == "" && b.a == "weir":
		return b.metric.name
	case b.b == "":
		return fmt.Sprintf("%s, %s", b.metric.name, b.a)
	}
	return fmt.Sprintf("%s, %s / %s", b.metric.name, b.a, b.b)
}

// number writes a ratio, or the figure itself where nothing is compared.
func (b bar) number(v float64) string {
	if b.b == "" {
		return show(b.metric, v)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "nothing" // too short to be seen
	}
	if b.limit < .5 && v > 0 {
		return "1/" + significant(1/v)
	}
	return significant(v) + " x"
}

func (b bar) text() string {
	if b.least {
		return "at least " + b.number(b.limit)
	}
	if b.limit == 0 {
		return "none"
	}
	return "at most " + b.number(b.limit)
}

func (b bar) spread(s spread) string {
	text, low, high := b.number(s.median), b.number(s.low), b.number(s.high)
	if low != high {
		text += fmt.Sprintf(" (%s to %s)", strings.TrimSuffix(low, " x"), strings.TrimSuffix(high, " x"))
	}
	return text
}

// verdict says whether the median meets the bar, and all rounds.
func (b bar) verdict(s spread) string {
	if math.IsNaN(s.median) || math.IsInf(s.median, 0) {
		return "not measured"
	}
	all, none := b.met(s.low) && b.met(s.high), !b.met(s.low) && !b.met(s.high)
	switch {
	case all:
		return "met"
	case b.met(s.median):
		return "met, not in every round"
	case none:
		return "**not met**"
	}
	return "**not met**, but in some rounds"
}

// show writes a figure with its unit.
func show(m metric, v float64) string { return significant(v*m.scale) + m.suffix }

// significant writes three significant digits, and whole numbers whole.
func significant(v float64) string {
	if a := math.Abs(v); a >= 100 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", max(0, digits), v)
}

func TestVerdicts(t *testing.T) {
	most := bar{metric: clientCPU, a: "weir", b: "curl", limit: 0.1}
	least := bar{metric: startTime, a: "weir", least: true, limit: 2}
	none := bar{metric: failed, a: "weir"}
	of := func(a, b float64) map[string]figures {
		return map[string]figures{"weir": {clientCPU: a, startTime: a, failed: a}, "curl": {clientCPU: b}}
	}
	for _, c := range []struct {
		bar           bar
		rounds        []map[string]figures
		text, verdict string
	}{
		{most, []map[string]figures{of(1, 20), of(1, 40), of(1, 25)}, "1/25 (1/40 to 1/20)", "met"},
		{most, []map[string]figures{of(1, 5), of(1, 40), of(1, 25)}, "1/25 (1/40 to 1/5)", "met, not in every round"},
		{most, []map[string]figures{of(1, 5), of(1, 4)}, "1/4.44 (1/5 to 1/4)", "**not met**"},
		{least, []map[string]figures{of(1, 0), of(2, 0), of(1, 0)}, "1 s (1 s to 2 s)", "**not met**, but in some rounds"},
		{none, []map[string]figures{of(0, 0)}, "0", "met"},
		{none, []map[string]figures{of(3, 0)}, "3", "**not met**"},
	} {
		s := result{rounds: c.rounds}.judge(c.bar)
		if text, verdict := c.bar.spread(s), c.bar.verdict(s); text != c.text || verdict != c.verdict {
			t.Errorf("%s: %q, %q, want %q, %q", c.bar.text(), text, verdict, c.text, c.verdict)
		}
	}
}

func TestSummaryNamesLosses(t *testing.T) {
	lost := bar{metric: rate, a: "weir", b: "wrk", least: true, limit: 0.85}
	r := result{
		comparison: comparison{name: "small", title: "Small requests", about: "x", metrics: []metric{rate}, bars: []bar{lost}},
		sides:      []string{"weir", "wrk"},
		rounds:     []map[string]figures{{"weir": {rate: 1000}, "wrk": {rate: 2000}}},
	}
	text := page{results: []result{r}, config: map[string]string{}}.render()
	for _, want := range []string{
		"0 of 1 are met. Not met:\n\n- **Small requests**, requests/s, weir / wrk: 0.500 x, where the bar is at least 0.850 x.",
		"| weir | 1000 |", "[Small requests](#small-requests)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.01234: "0.0123", 9.876: "9.88", 45.67: "45.7", 123456.7: "123457", -0.5: "-0.500"} {
		if got := significant(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// What go test prints is read back, in base units.
func TestReadPage(t *testing.T) {
	p, err := readPage([]byte(`short: true
load: 0.42
weir: weir 1.0
BenchmarkPeers/small-64/weir/round=1-2                1   5.000 client-cpu-us/request    1000 requests/s
BenchmarkPeers/small-64/wrk/round=1-2                 1   4.000 client-cpu-us/request    2000 requests/s
--- FAIL: BenchmarkPeers/small-64/wrk/round=2-2
BenchmarkPeers/small-64/weir/round=2-2                1   7.000 client-cpu-us/request    1200 requests/s
BenchmarkPeers/download-1/iperf3_-R_-Z/round=1-2      1   5.500 GB/s
`))
	if err != nil || len(p.results) != 2 || !p.short || p.config["load"] != "0.42" {
		t.Fatalf("%+v, %v", p, err)
	}
	small := p.results[1]
	if ratio := small.judge(small.bars[1]).median; math.Abs(ratio-1.25) > 1e-9 {
		t.Errorf("CPU per request, weir / wrk: %v, want the 1.25 of the only round that both went through", ratio)
	}
	if v := small.values("weir", requestCPU); len(v) != 2 || math.Abs(v[1]-7e-6) > 1e-12 {
		t.Errorf("CPU per request: %v, want 5 and 7 us", v)
	}
	if v := p.results[0].values("iperf3 -R -Z", throughput); len(v) != 1 || v[0] != 5.5e9 {
		t.Errorf("throughput of iperf3: %v", v)
	}
	for _, bad := range []string{"", "BenchmarkOther/x-2 1 5 s/op", "BenchmarkPeers/small-64/weir/round=x-2 1 5 s/op"} {
		if _, err := readPage([]byte(bad)); err == nil {
			t.Errorf("%q is read as a page", bad)
		}
	}
}
