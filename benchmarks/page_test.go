package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/loadtest/report/figure"
	"weir/monitor"
	"weir/transfer/mover"
)

var (
	resultsFlag = flag.String("results", "", "`FILES` with the output of go test -bench Peers, or pages, for TestWritePage: "+
		"cases of a later one replace those of earlier ones")
	outFlag = flag.String("out", "", "`FILE` to write the page to (default: the test's output)")
)

// TestWritePage writes the page for the results in a file.
func TestWritePage(t *testing.T) {
	if *resultsFlag == "" {
		t.Skip("no -results")
	}
	var p page
	for i, name := range strings.Split(*resultsFlag, ",") {
		text := require.File(t, name)
		more, err := readPage(text)
		require.NoError(t, err)
		if i > 0 {
			fmt.Print(p.changes(more))
		}
		p = p.with(more)
	}
	if *outFlag == "" {
		t.Log(p.render(""))
		return
	}
	picture := strings.TrimSuffix(*outFlag, ".md") + ".png"
	require.NoError(t, os.WriteFile(*outFlag, []byte(p.render(filepath.Base(picture))), 0o644))
	err := errors.Join(writePicture(picture, p.picture()...), writePicture(filepath.Join(filepath.Dir(picture), buffersPicture), p.buffers()))
	require.NoError(t, err)
}

// A page is docs/benchmarks.md: the cases as they are shown. It is made from the output of
// go test -bench Peers, or from the page itself; then its figures are kept, and its text and
// picture are written anew.
type page struct {
	cases   []section
	machine []string // its lines
	short   bool
}

// A section is the part of the page about one case.
type section struct {
	comparison
	head   []string   // the columns of its table, without the first
	rows   [][]string // the name of a side, and its cells
	bars   []shownBar
	repeat int // number of measured rounds, 0 if it is unknown
}

// A shownBar is a bar as the page shows it.
type shownBar struct{ what, bar, measured, verdict, why string }

// met reports whether the median meets the bar.
func (s shownBar) met() bool { return strings.HasPrefix(s.verdict, "met") }

// A result has the measurements of a comparison.
type result struct {
	comparison
	sides  []string
	rounds []map[string]figures // of each side
}

// printConfig prints properties of the machine for the page, as configuration lines of Go's
// benchmark format.
func printConfig(ctx context.Context, weir string) {
	load, _ := os.ReadFile("/proc/loadavg") // without it the page has no load
	busy, _, _ := strings.Cut(string(load), " ")
	fmt.Printf("short: %v\nload: %s\nweir: %s\n", testing.Short(), busy, words(ctx, 3, weir, "--version"))
}

// with returns p with the cases of q, which replace cases of p with the same names, in the order of
// all cases. The machine is the machine of q if q has all cases; else a line of the machine lists
// the cases that were measured on another processor.
func (p page) with(q page) page {
	all, every := page{machine: p.machine, short: p.short || q.short}, cases(fullScale())
	for _, c := range every {
		s := q.find(c.name)
		if s == nil {
			s = p.find(c.name)
		}
		if s != nil {
			all.cases = append(all.cases, *s)
		}
	}
	if len(p.machine) == 0 || len(q.cases) == len(every) {
		all.machine = q.machine
	} else {
		all.machine = p.machineWith(q)
	}
	return all
}

// elsewhere begins the line of the machine that names cases which were measured on another processor.
const elsewhere = "- elsewhere, on "

// machineWith returns the lines of p's machine after the cases of q were measured again.
func (p page) machineWith(q page) (lines []string) {
	processor, found := q.about("processor"), false
	for _, line := range p.machine {
		at, names, is := strings.Cut(line, ": ")
		if !is || !strings.HasPrefix(line, elsewhere) {
			lines = append(lines, line)
			continue
		}
		left := slices.DeleteFunc(strings.Split(names, ", "), func(name string) bool { return q.find(name) != nil })
		if at == elsewhere+processor {
			left, found = append(left, q.names()...), true
		}
		if len(left) > 0 {
			lines = append(lines, at+": "+strings.Join(left, ", "))
		}
	}
	if !found && processor != p.about("processor") {
		lines = append(lines, elsewhere+processor+": "+strings.Join(q.names(), ", "))
	}
	return lines
}

// names returns the names of p's cases.
func (p page) names() (all []string) {
	for _, c := range p.cases {
		all = append(all, c.name)
	}
	return all
}

// readPage reads the output of go test -bench Peers, or a page. Cases that it does not have are left out.
func readPage(text []byte) (page, error) {
	if bytes.HasPrefix(text, []byte("# ")) {
		return parsePage(string(text))
	}
	results, config, err := readResults(text)
	if err != nil {
		return page{}, err
	}
	p := page{machine: aboutMachine(config), short: config["short"] == "true"}
	for _, r := range results {
		p.cases = append(p.cases, r.section())
	}
	return p, nil
}

// readResults reads the output of go test -bench Peers.
func readResults(text []byte) (all []result, config map[string]string, err error) {
	config = map[string]string{}
	found := map[string]*result{}
	in := benchfmt.NewReader(bytes.NewReader(text), "results")
	for in.Scan() {
		rec, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for _, key := range []string{"load", "weir", "short"} {
			config[key] = rec.GetConfig(key)
		}
		base, at := rec.Name.Parts()
		if string(base) != "Peers" || len(at) < 3 {
			return nil, nil, fmt.Errorf("%s is not Peers/CASE/SIDE/round=N", rec.Name)
		}
		name, side := string(at[0][1:]), strings.ReplaceAll(string(at[1][1:]), "_", " ")
		if found[name] == nil {
			found[name] = &result{}
		}
		var round int
		if _, err := fmt.Sscanf(string(at[2]), "/round=%d", &round); err != nil || round < 1 {
			return nil, nil, fmt.Errorf("%s: %w", rec.Name, err)
		}
		found[name].add(side, round, rec.Values)
	}
	if err := in.Err(); err != nil {
		return nil, nil, err
	}
	for _, c := range cases(scaleOf(config["short"] == "true")) {
		if r := found[c.name]; r != nil {
			r.comparison = c
			all = append(all, *r)
		}
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no results")
	}
	return all, config, nil
}

func scaleOf(short bool) scale {
	if short {
		return quickScale()
	}
	return fullScale()
}

var barLine = regexp.MustCompile(`^- (.+): \*\*(.+?)\*\*, bar (.+?): (.+)$`)

// parsePage reads a page that render has written.
func parsePage(text string) (p page, err error) {
	p.short = strings.Contains(text, smoke)
	titles := map[string]comparison{}
	for _, c := range cases(scaleOf(p.short)) {
		titles[c.title] = c
	}
	_, rest, _ := strings.Cut(text, "\n## The machine\n\n")
	machine, figures, ok := strings.Cut(rest, "\n\n## The figures\n")
	if !ok {
		return p, errors.New("the page has no machine or no figures")
	}
	p.machine = strings.Split(machine, "\n")
	for part := range strings.SplitSeq(figures, "\n### ") {
		title, body, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(title) == "" {
			continue
		}
		c, ok := titles[title]
		if !ok {
			return p, fmt.Errorf("no case has the title %q", title)
		}
		s := section{comparison: c}
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			switch m := barLine.FindStringSubmatch(line); {
			case m != nil:
				i := slices.IndexFunc(c.bars, func(b bar) bool { return b.what() == m[1] && b.text() == m[3] })
				if i < 0 {
					return p, fmt.Errorf("%s has no bar %q, %s", c.name, m[1], m[3])
				}
				s.bars = append(s.bars, shownBar{m[1], m[3], m[2], m[4], c.bars[i].why})
			case strings.HasPrefix(line, "| | "):
				s.head = strings.Split(strings.TrimSuffix(line[4:], " |"), " | ")
			case strings.HasPrefix(line, "| "):
				s.rows = append(s.rows, strings.Split(strings.TrimSuffix(line[2:], " |"), " | "))
			}
		}
		want := slices.DeleteFunc(slices.Clone(c.bars), func(b bar) bool { return !s.has(b.a) || b.b != "" && !s.has(b.b) })
		if len(s.rows) == 0 || len(s.bars) != len(want) {
			return p, fmt.Errorf("%s: %d sides and %d bars", c.name, len(s.rows), len(s.bars))
		}
		p.cases = append(p.cases, s)
	}
	return p, nil
}

// has reports whether a side was measured.
func (s *section) has(side string) bool {
	return slices.ContainsFunc(s.rows, func(row []string) bool { return row[0] == side })
}

// add adds the measurements of a side in a round.
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

// metricOf returns the metric with a unit, or the zero metric if no metric has it.
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

A load generator must cost less than what it measures. This page compares weir with the programs that would otherwise be
used. ` + "`make bench`" + ` measures all cases and writes the page.

`

const method = `## Method

- Each run is a process: ` + "`weir run`" + ` with its defaults (metering, verification of 1%, monitoring once per second, run directory,
  report) and a new seed; the others with their usual options.
- The sides of a table alternate; one round is one run of each. Figures are medians of 3 to 9 rounds, unless the case states
  another number, with the smallest and the largest. A ratio compares two sides of the same round.
- Client CPU is user and system time of the process (wait4), server CPU the change of /proc/PID/stat. 1 GB is 10^9 bytes.
- Client and server share the machine and its loopback interface; the kernel charges part of its work to either side.
  Ratios hold; absolute figures do not carry over to other machines or networks.
- Files are in memory. nginx has one worker and sendfile. Where the server's cores are busy, no client can be faster.
- Downloads are discarded (xrdcp, without DNS, and globus-url-copy: to /dev/null). weir reads what it verifies, and payload of
  unknown length. nginx reports checksums only for downloads over TLS; elsewhere the 1% is counted as unverifiable. Over TLS weir decrypts
  only what it reads.
- Uploads of weir differ in content and are read back from nginx; the others send one file repeatedly.
- "bare" is a minimal Go loop that sends the same requests on as many connections and reads the responses. "system calls" is a loop of
  little else, without the start of its process: a blocking socket for each connection, each response dropped by the kernel
  (MSG_TRUNC) in calls that wait for 4 MiB, over TLS undecrypted as well; uploads send the same 256 KiB from memory. Of a copy it is
  splice from the socket into the file, and one pass over the file for its adler32. Where it is most of the cost, the bar is the ratio to it.
- Before each copy as much memory is written and freed as it needs: the first write to memory that a virtual machine returned
  to its host costs up to twice the CPU time.
- Over loopback ` + "`weir serve`" + ` and agents use TCP's congestion control reno, which costs less than bbr; the others the machine's.

`

// smoke is the warning on a page of short cases.
const smoke = "**These cases were shortened to show that they run. Their figures mean nothing.**"

// The headlines are the results that a reader should remember: a bar of a case, in words.
var headlines = []struct{ name, what, text string }{
	{"download-1", "client CPU per GB, weir / curl", "HTTP reads: **%s** of curl's CPU time per GB"},
	{"small-64", "requests/s, weir / wrk", "HTTP requests of 4 KiB: **%s** the rate of wrk, with each request metered"},
	{"root-download-1", "client CPU per GB, weir / xrdcp", "root:// reads: **%s** of xrdcp's CPU time per GB"},
	{"root-fresh", "requests/s, weir, 100, plain / xrdcp, 100, plain", "root:// files of 1 MiB with a session each, without page checksums: " +
		"**%s** the rate of 100 xrdcp processes"},
	{"ftp-download-1", "client CPU per GB, weir / globus-url-copy", "GridFTP reads: **%s** the CPU time per GB of globus-url-copy"},
	{"clients-memory", "resident per client", "Memory: **%s** per connected client"},
	{"metering", "time per operation", "Metering: **%s** per operation, without allocation"},
	{"transfer-large", "throughput, weir / xrdcp", "Copies verified at both ends: **%s** the throughput of xrdcp"},
	{"service-million", "submitted to completed, SQLite", "A transfer request of a million files: **%s** until it is completed, " +
		"with SQLite and simulated agents"},
	{"controller", "cores, 1000 workers, hosts monitored", "A controller of 1000 workers and their hosts: **%s** of a CPU core"},
}

// render writes the page; picture is the path of its picture, if there is one.
func (p page) render(picture string) string {
	var b strings.Builder
	b.WriteString(intro)
	if p.short {
		b.WriteString(smoke + "\n\n")
	}
	if picture != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", pictureText, picture)
	}
	for _, h := range headlines {
		if c := p.find(h.name); c != nil {
			if i := slices.IndexFunc(c.bars, func(s shownBar) bool { return s.what == h.what }); i >= 0 {
				value, _, _ := strings.Cut(c.bars[i].measured, " (")
				fmt.Fprintf(&b, "- "+h.text+" ([figures](#%s))\n", value, anchor(c.title))
			}
		}
	}
	if len(p.cases) < len(cases(quickScale())) {
		fmt.Fprintf(&b, "\nOnly these cases were measured: %s.\n", strings.Join(p.names(), ", "))
	}
	p.missed(&b)
	b.WriteString(method)
	fmt.Fprintf(&b, "## The machine\n\n%s\n\n## The figures\n\n", strings.Join(p.machine, "\n"))
	for i, c := range p.cases {
		if i > 0 {
			c.about = unlike(p.cases[i-1].about, c.about)
		}
		c.render(&b)
	}
	return b.String()
}

// unlike returns about, with "As above." in place of its first sentences that are also the first
// sentences of before.
func unlike(before, about string) string {
	n := 0
	for n < len(before) && n < len(about) && before[n] == about[n] {
		n++
	}
	if n == len(about) {
		return "As above."
	}
	if i := strings.LastIndex(about[:n], ". "); i >= 0 {
		return "As above." + about[i+1:]
	}
	return about
}

func (p page) find(name string) *section {
	if i := slices.IndexFunc(p.cases, func(c section) bool { return c.name == name }); i >= 0 {
		return &p.cases[i]
	}
	return nil
}

// missed lists the bars that are not met, and each reason once.
func (p page) missed(b *strings.Builder) {
	var rows, reasons []string
	all := 0
	for _, c := range p.cases {
		for _, s := range c.bars {
			all++
			if s.met() {
				continue
			}
			note := ""
			if s.why != "" {
				n := slices.Index(reasons, s.why)
				if n < 0 {
					n, reasons = len(reasons), append(reasons, s.why)
				}
				note = fmt.Sprint(n + 1)
			}
			rows = append(rows, fmt.Sprintf("| [%s](#%s) | %s | %s | %s | %s |\n", c.title, anchor(c.title), s.what, s.bar, s.measured, note))
		}
	}
	fmt.Fprintf(b, "\n**%d of %d bars are met.**", all-len(rows), all)
	if len(rows) > 0 {
		b.WriteString(" The others:\n\n| case | compared | bar | measured | reason |\n|---|---|---|---|---|\n" + strings.Join(rows, ""))
	}
	b.WriteString("\n\n"[min(1, len(rows)):])
	for i, r := range reasons {
		fmt.Fprintf(b, "%d. %s\n", i+1, r)
	}
	if len(reasons) > 0 {
		b.WriteString("\n")
	}
}

// buffersPicture is the file of the plot of buffers, beside the page.
const buffersPicture = "benchmarks-buffers.png"

// buffers returns the plot of the mover's buffers: all values are ratios to the value of the
// default buffer.
func (p page) buffers() *figure.Figure {
	f := &figure.Figure{
		ID: "buffers", Title: "Buffers of the mover", Desc: "Throughput and CPU time per GB of the mover against the size of its buffers",
		X: figure.Axis{Label: "buffer", Max: float64(len(bufferSizes))}, // without numbers
		Y: figure.Axis{Label: "ratio to " + bufferName(mover.DefaultBuffer>>10), Max: 1.6, Ticks: []float64{0, .4, .8, 1, 1.2, 1.6}, Factor: 1},
	}
	for i, kib := range bufferSizes {
		f.Zones = append(f.Zones, figure.Zone{From: float64(i), To: float64(i + 1), Name: bufferName(kib)})
	}
	for i, name := range []string{"buffers-plain", "buffers-tls"} {
		s := p.find(name)
		if s == nil {
			continue
		}
		for k, m := range []metric{bothCPU, throughput} {
			usual, _, _, _ := s.cellOf(bufferName(mover.DefaultBuffer>>10), m.name)
			line := figure.Line{Name: m.name + map[int]string{0: ", plain", 1: ", TLS"}[i], Color: i, Dots: true, Dash: k == 1}
			for x, kib := range bufferSizes {
				if v, _, _, ok := s.cellOf(bufferName(kib), m.name); ok && usual > 0 {
					line.Points = append(line.Points, figure.Point{X: float64(x) + .5, Y: v / usual})
				}
			}
			f.Lines = append(f.Lines, line)
		}
	}
	return f
}

// cellOf reads a cell of the table back: the median, the smallest and the largest value.
func (s *section) cellOf(side, column string) (v, low, high float64, ok bool) {
	k := slices.Index(s.head, column)
	i := slices.IndexFunc(s.rows, func(row []string) bool { return row[0] == side })
	if k < 0 || i < 0 {
		return 0, 0, 0, false
	}
	return readSpread(s.rows[i][k+1])
}

var numberText = regexp.MustCompile(`(1/)?([\d.]+)`)

// readSpread parses the output of cell or bar.spread.
func readSpread(text string) (v, low, high float64, ok bool) {
	var all []float64
	for _, m := range numberText.FindAllStringSubmatch(text, -1) {
		x, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, 0, 0, false
		}
		if m[1] != "" {
			x = 1 / x
		}
		all = append(all, x)
	}
	switch len(all) {
	case 1:
		return all[0], all[0], all[0], true
	case 3:
		return all[0], all[1], all[2], true
	}
	return 0, 0, 0, false
}

// anchor returns the fragment of links to a heading.
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

func aboutMachine(config map[string]string) (lines []string) {
	e, ctx := monitor.About(), context.Background()
	for _, row := range [][2]string{
		{"when", e.Time.UTC().Format("2006-01-02 15:04") + " UTC"},
		{"processor", fmt.Sprintf("%s, %d cores (%d usable)", e.CPU, e.Cores, e.CoresUsed)},
		{"below it", e.Virtualization},
		{"memory", fmt.Sprintf("%.0f GiB", float64(e.Memory)/(1<<30))},
		{"system", e.System + ", Linux " + e.Kernel},
		{"load before the start", config["load"]},
		{"clock", e.ClockSource},
		{"TCP", fmt.Sprintf("%s, receive buffer at most %d KiB, ports %d to %d, backlog %d", e.CongestionControl, e.ReceiveMemory[2]>>10,
			e.PortLow, e.PortHigh, e.Backlog)},
		{"kernel TLS", kernelTLS()},
		{"open files", fmt.Sprintf("%d in a process", e.FilesHard)},
		{"Go", e.Go},
		{"weir", strings.TrimSpace(config["weir"] + " " + words(ctx, 1, "git", "rev-parse", "--short", "HEAD"))},
		{"peers", strings.Join([]string{
			words(ctx, 2, "curl", "--version"), words(ctx, 2, "wrk", "-v"), words(ctx, 2, "iperf3", "--version"),
			strings.TrimPrefix(words(ctx, 3, "nginx", "-v"), "nginx version: "),
		}, ", ")},
	} {
		if row[1] != "" {
			lines = append(lines, "- "+row[0]+": "+row[1])
		}
	}
	return lines
}

// kernelTLS returns a text about whether the kernel can encrypt the data that a connection sends.
func kernelTLS() string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	c, err := block(l.Addr().String())
	if err != nil {
		return err.Error()
	}
	defer syscall.Close(c.fd)
	if err := unix.SetsockoptString(c.fd, unix.IPPROTO_TCP, unix.TCP_ULP, "tls"); err != nil {
		return fmt.Sprintf("none (setsockopt TCP_ULP: %v)", err)
	}
	return "available, not used"
}

// words returns the first n words of a program's output, such as its version.
func words(ctx context.Context, n int, program string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if path, err := exec.LookPath("/usr/sbin/" + program); err == nil {
		program = path // the folder of daemons
	}
	out, _ := exec.CommandContext(ctx, program, args...).CombinedOutput() // wrk -v prints it and fails
	all := strings.Fields(string(out))
	return strings.Join(all[:min(n, len(all))], " ")
}

// section returns the section of the page about a result.
func (r result) section() section {
	s := section{comparison: r.comparison, repeat: len(r.rounds)}
	var metrics []metric
	for _, m := range r.metrics {
		if slices.ContainsFunc(r.sides, func(s string) bool { return len(r.values(s, m)) > 0 }) {
			metrics = append(metrics, m)
			s.head = append(s.head, m.name)
		}
	}
	for _, side := range r.sides {
		row := []string{side}
		for _, m := range metrics {
			row = append(row, cell(m, r.values(side, m)))
		}
		s.rows = append(s.rows, row)
	}
	for _, b := range r.bars {
		found := r.judge(b)
		s.bars = append(s.bars, shownBar{b.what(), b.text(), b.spread(found), b.verdict(found), b.why})
	}
	return s
}

// render writes one case: its description, each side's figures, each bar.
func (s section) render(b *strings.Builder) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n| | %s |\n|---|%s\n", s.title, s.about, strings.Join(s.head, " | "), strings.Repeat("---|", len(s.head)))
	for _, row := range s.rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
	if s.name == "buffers-tls" {
		fmt.Fprintf(b, "![%s](%s)\n\n", (page{}).buffers().Desc, buffersPicture)
	}
	for _, s := range s.bars {
		fmt.Fprintf(b, "- %s: **%s**, bar %s: %s\n", s.what, s.measured, s.bar, s.verdict)
	}
	if len(s.bars) > 0 {
		b.WriteString("\n")
	}
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
		if round[b.a] != nil && (b.b == "" || round[b.b] != nil) { // both sides succeeded
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

// number formats a ratio, or the figure itself if there is no side to compare with.
func (b bar) number(v float64) string {
	if b.b == "" {
		return show(b.metric, v)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "nothing" // too short to be measured
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

// verdict returns a text about whether the median meets the bar, and whether all rounds meet it.
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
	lost := bar{metric: rate, a: "weir", b: "wrk", least: true, limit: 0.85, why: "because"}
	r := result{
		comparison: comparison{name: "small", title: "Small requests", about: "x", metrics: []metric{rate}, bars: []bar{lost}},
		sides:      []string{"weir", "wrk"},
		rounds:     []map[string]figures{{"weir": {rate: 1000}, "wrk": {rate: 2000}}},
	}
	text := page{cases: []section{r.section()}}.render("")
	for _, want := range []string{
		"**0 of 1 bars are met.** The others:\n", "| [Small requests](#small-requests) | requests/s, weir / wrk | at least 0.850 x " +
			"| 0.500 x | 1 |\n",
		"\n1. because\n", "| weir | 1000 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// docs/benchmarks.md equals the output of render for the figures in it, so that text in the cases
// and text on the page do not differ.
func TestPageIsRendered(t *testing.T) {
	old := require.File(t, "../docs/benchmarks.md")
	p, err := readPage(old)
	require.NoError(t, err)
	if len(p.cases) != len(cases(fullScale())) {
		t.Errorf("the page has %d of %d cases", len(p.cases), len(cases(fullScale())))
	}
	if p.render("benchmarks.png") != string(old) {
		t.Error("docs/benchmarks.md is not what is rendered of it: make bench-page")
	}
	for _, h := range headlines {
		if s := p.find(h.name); s == nil || !slices.ContainsFunc(s.bars, func(b shownBar) bool { return b.what == h.what }) {
			t.Errorf("%s has no %s", h.name, h.what)
		}
	}
	for _, v := range slices.Concat(picturedBytes, picturedFiles) {
		c := p.find(v.name)
		for _, side := range v.sides {
			if c == nil || !c.has(side) {
				t.Errorf("the picture has no %s of %s", side, v.name)
			}
		}
	}
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.01234: "0.0123", 9.876: "9.88", 45.67: "45.7", 123456.7: "123457",
		-0.5: "-0.500"} {
		if got := significant(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// The output of go test is read back, in base units.
func TestReadPage(t *testing.T) {
	found, config, err := readResults([]byte(`short: true
load: 0.42
weir: weir 1.0
BenchmarkPeers/small-64/weir/round=1-2                1   5.000 client-cpu-us/request    1000 requests/s
BenchmarkPeers/small-64/wrk/round=1-2                 1   4.000 client-cpu-us/request    2000 requests/s
--- FAIL: BenchmarkPeers/small-64/wrk/round=2-2
BenchmarkPeers/small-64/weir/round=2-2                1   7.000 client-cpu-us/request    1200 requests/s
BenchmarkPeers/download-1/iperf3_-R_-Z/round=1-2      1   5.500 GB/s
`))
	if err != nil || len(found) != 2 || config["short"] != "true" || config["load"] != "0.42" {
		t.Fatalf("%+v, %v", found, err)
	}
	small := found[1]
	if ratio := small.judge(small.bars[1]).median; math.Abs(ratio-1.25) > 1e-9 {
		t.Errorf("CPU per request, weir / wrk: %v, want the 1.25 of the only round that both went through", ratio)
	}
	if v := small.values("weir", requestCPU); len(v) != 2 || math.Abs(v[1]-7e-6) > 1e-12 {
		t.Errorf("CPU per request: %v, want 5 and 7 us", v)
	}
	if v := found[0].values("iperf3 -R -Z", throughput); len(v) != 1 || v[0] != 5.5e9 {
		t.Errorf("throughput of iperf3: %v", v)
	}
	for _, bad := range []string{"", "BenchmarkOther/x-2 1 5 s/op", "BenchmarkPeers/small-64/weir/round=x-2 1 5 s/op"} {
		if _, err := readPage([]byte(bad)); err == nil {
			t.Errorf("%q is read as a page", bad)
		}
	}
}
