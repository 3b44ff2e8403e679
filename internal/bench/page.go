package main

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"

	"weir/monitor"
)

// A page is what is written about a run of this program.
type page struct {
	results []result
	rounds  int
	quick   bool
	only    string
	weir    string
	load    string // average of the last minute, before the first run
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
func (p page) render(ctx context.Context) string {
	var b strings.Builder
	b.WriteString(intro)
	if p.quick {
		b.WriteString("**This is a smoke run of very short cases: its figures say that they can be measured, and nothing more.**\n\n")
	}
	if p.only != "" {
		fmt.Fprintf(&b, "Only the cases that match `%s` were measured.\n\n", p.only)
	}
	p.summary(&b)
	b.WriteString(method)
	p.machine(ctx, &b)
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
	fmt.Fprintf(b, "## What was to be reached\n\nRatios are weir's figure over the other's, median of %d round%s (smallest to largest).\n\n", p.rounds, plural(p.rounds))
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

func (p page) machine(ctx context.Context, b *strings.Builder) {
	e := monitor.About()
	fmt.Fprintf(b, "## The machine\n\n")
	for _, row := range [][2]string{
		{"when", e.Time.UTC().Format("2006-01-02 15:04") + " UTC"},
		{"processor", fmt.Sprintf("%s, %d cores (%d usable)", e.CPU, e.Cores, e.CoresUsed)},
		{"below it", e.Virtualization},
		{"memory", fmt.Sprintf("%.0f GiB", float64(e.Memory)/(1<<30))},
		{"system", e.System + ", Linux " + e.Kernel},
		{"load before the start", p.load},
		{"clock", e.ClockSource},
		{"TCP", fmt.Sprintf("%s, receive buffer at most %d KiB, ports %d to %d, backlog %d", e.CongestionControl, e.ReceiveMemory[2]>>10, e.PortLow, e.PortHigh, e.Backlog)},
		{"open files", fmt.Sprintf("%d in a process", e.FilesHard)},
		{"Go", e.Go},
		{"weir", strings.TrimSpace(words(ctx, 3, p.weir, "--version") + " " + words(ctx, 1, "git", "rev-parse", "--short", "HEAD"))},
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
		fmt.Fprintf(b, " %s |", m)
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

// A spread is what values of several rounds have in common.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

func (r result) judge(b bar) spread {
	var all []float64
	for _, round := range r.rounds {
		all = append(all, b.ratio(round))
	}
	return spreadOf(all)
}

func (b bar) what() string {
	switch {
	case b.b == "" && b.a == "weir":
		return string(b.metric)
	case b.b == "":
		return fmt.Sprintf("%s, %s", b.metric, b.a)
	}
	return fmt.Sprintf("%s, %s / %s", b.metric, b.a, b.b)
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
func show(m metric, v float64) string {
	switch m {
	case throughput, knownRate:
		return significant(v/1e9) + " GB/s"
	case clientCPU, serverCPU, bothCPU, knownCPU:
		return significant(v) + " s"
	case requestCPU, filesCPU:
		return significant(v*1e6) + " us"
	case resident:
		return significant(v/1024) + " KiB"
	case startTime, analysisTime, analysisCPU, comingIn, mergeTime, mergeCPU, activeTime, wholeTime, leaseCPU, firstEnd, medianEnd, lastEnd, firstFile:
		return significant(v) + " s"
	case lateMedian, lateHigh, reach, gap, telling, askTime, askHigh, askMost:
		return significant(v*1e3) + " ms"
	case peakMemory, memoryUsed, mergeSize:
		return significant(v/1e6) + " MB"
	case opTime:
		return significant(v*1e9) + " ns"
	case received, written:
		return significant(v/1e6) + " MB/s"
	case serverBusy, rate, filesRate, knownFiles, filesMoved, endsSpread, clients, processes, failed, allocs, coresUsed, reporting, openFiles:
	}
	return significant(v)
}

// significant writes three significant digits, and whole numbers whole.
func significant(v float64) string {
	if a := math.Abs(v); a >= 100 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", max(0, digits), v)
}
