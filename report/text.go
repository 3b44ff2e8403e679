package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/analysis"
	"weir/figure"
	"weir/internal/say"
	"weir/internal/unit"
)

// Texts use so many columns unless told otherwise, and never fewer than narrow.
const (
	width  = 100
	narrow = 40
)

// Options say how a text looks.
type Options struct {
	Color bool // colors and bold by terminal escapes
	Width int  // columns of the terminal; 0 is unknown
}

func (o Options) width() int {
	if o.Width <= 0 {
		return width
	}
	return min(max(o.Width, narrow), width)
}

// Text writes the table of steps, the verdict and the checks. Sentences use
// opts.Width columns, at most 100; a table is as wide as it is.
func Text(w io.Writer, f *analysis.Findings, opts Options) error {
	f = inOrder(f)
	out := bufio.NewWriter(w)
	p := printer{out, opts}
	switch {
	case f.Source == analysis.FromTable:
		p.fromTable(f)
	case len(f.Curve) > 0:
		p.transfers(f)
		p.jobs(f)
		p.sites(f)
		p.title(f, "Steps")
		p.table(curveTable(f))
		p.line("")
	}
	p.answers(f)
	if f.Source == analysis.FromTable {
		p.models(f)
	}
	p.limits(f)
	p.where(f)
	p.workers(f)
	p.backends(f)
	p.servers(f)
	p.verdict(f)
	if f.Work != "" {
		p.hanging("  each client: ", say.Plain(f.Work))
	}
	p.line("")
	p.thresholds(f)
	p.checks(f)
	for _, warning := range f.Warnings {
		p.hanging("  note     ", say.Plain(warning))
	}
	return out.Flush()
}

// verdict writes the headline, and below it each fact on lines of its own.
func (p printer) verdict(f *analysis.Findings) {
	headline, facts := verdictLines(f)
	for _, line := range say.Wrap(headline, p.opts.width()) {
		p.line(p.paint(bold, line))
	}
	for _, fact := range facts {
		p.hanging("  ", fact)
	}
}

// verdictLines are the headline and the facts of a verdict.
func verdictLines(f *analysis.Findings) (headline string, facts []string) {
	for i, line := range strings.Split(f.Verdict, "\n") {
		if i > 0 {
			facts = append(facts, say.Plain(line))
		}
	}
	headline, _, _ = strings.Cut(f.Verdict, "\n")
	return say.Plain(headline), facts
}

// Final is the last line of a run's output: the headline and whether it can be
// believed.
func Final(f *analysis.Findings) string { return f.Validity.Status + ": " + say.Plain(f.Headline) }

// Terminal escapes.
const (
	bold   = "\x1b[1m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	faint  = "\x1b[2m"
	normal = "\x1b[0m"
)

type printer struct {
	w    *bufio.Writer // keeps the first error until Flush
	opts Options
}

func (p printer) line(s string) { _, _ = fmt.Fprintln(p.w, s) }

func (p printer) paint(color, s string) string {
	if !p.opts.Color {
		return s
	}
	return color + s + normal
}

// title writes the title of a table, stamped with whether the run can be
// believed: whoever copies the table copies it, too.
func (p printer) title(f *analysis.Findings, text string) {
	p.line(p.paint(bold, text) + p.paint(statusColor(f.Validity.Status), " ("+f.Validity.Status+")"))
}

// hanging writes text behind head, its further lines under its first.
func (p printer) hanging(head, text string) {
	indent := utf8.RuneCountInString(head)
	for i, line := range say.Wrap(text, p.opts.width()-indent) {
		if i == 0 {
			p.line(head + line)
			continue
		}
		p.line(strings.Repeat(" ", indent) + line)
	}
}

func (p printer) thresholds(f *analysis.Findings) {
	for _, j := range f.Thresholds {
		word := p.paint(green, "met      ")
		if !j.Met {
			word = p.paint(red, "not met  ")
		}
		p.line("  " + word + say.Plain(j.Threshold) + ": " + say.Plain(j.Detail))
	}
	if len(f.Thresholds) > 0 {
		p.line("")
	}
}

func (p printer) checks(f *analysis.Findings) {
	counts := map[string]int{}
	for _, c := range f.Validity.Checks {
		counts[c.Status]++
	}
	summary := fmt.Sprintf("%s: %d of %d checks passed", f.Validity.Status, counts[analysis.OK], len(f.Validity.Checks))
	for _, status := range []string{analysis.Warn, analysis.Fail, analysis.Skipped} {
		if counts[status] > 0 {
			summary += fmt.Sprintf(", %d %s", counts[status], word(status, counts[status]))
		}
	}
	p.line(p.paint(statusColor(f.Validity.Status), summary))
	for _, c := range f.Validity.Checks {
		head := fmt.Sprintf("  %-8s %-16s ", c.Status, say.Plain(c.Name))
		indent := utf8.RuneCountInString(head)
		lines := say.Wrap(say.Plain(c.Detail), p.opts.width()-indent)
		p.line(p.paint(statusColor(c.Status), head) + lines[0])
		for _, line := range lines[1:] {
			p.line(strings.Repeat(" ", indent) + line)
		}
	}
}

func word(status string, n int) string {
	switch {
	case status == analysis.Warn && n == 1:
		return "warns"
	case status == analysis.Fail && n == 1:
		return "fails"
	}
	return status
}

func statusColor(status string) string {
	switch status {
	case analysis.OK, analysis.Valid:
		return green
	case analysis.Warn, analysis.Suspect:
		return yellow
	case analysis.Fail, analysis.Invalid:
		return red
	}
	return faint
}

// A table has a head and rows of equal length; all cells are right-aligned
// but the last column's, or none.
type table struct {
	head []string
	rows [][]string
	left bool // all left-aligned
}

// table writes t with the columns as wide as they need to be.
func (p printer) table(t table) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	write := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString("  " + cell)
				break
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.left {
				b.WriteString("  " + cell + pad)
				continue
			}
			b.WriteString("  " + pad + cell)
		}
		return strings.TrimRight(b.String(), " ")
	}
	p.line(p.paint(bold, write(t.head)))
	for _, row := range t.rows {
		p.line(write(row))
	}
}

// curveTable is the table of steps.
func curveTable(f *analysis.Findings) table {
	var most, fastest, slowest float64
	for i := range f.Curve {
		s := &f.Curve[i]
		most, fastest = max(most, s.Throughput), max(fastest, s.Operations)
		if s.Latency != nil {
			slowest = max(slowest, s.Latency.P50)
		}
	}
	byBits, byCount, byTime := figure.Bits(most), figure.Scale{Factor: 1, Unit: things(f)}, figure.Seconds(slowest)
	if fastest >= 1e5 {
		byCount = figure.Decimal(fastest, " "+things(f))
	}
	name, of := load(f)
	t := table{head: []string{name, byBits.Unit, "95% interval", byCount.Unit}}
	if f.Measure == analysis.Rate {
		t.head = []string{name, byCount.Unit, "95% interval"}
	}
	t.head = append(t.head, "p50 "+byTime.Unit, "p99 "+byTime.Unit, "errors", "server CPU", "client CPU", "")
	for i := range f.Curve {
		s := &f.Curve[i]
		row := []string{strconv.FormatFloat(of(s), 'g', 6, 64)}
		if f.Measure == analysis.Rate {
			row = append(row, byCount.Text(s.Operations), span(byCount, s.OperationsLow, s.OperationsHigh))
		} else {
			row = append(row, byBits.Text(s.Throughput), span(byBits, s.ThroughputLow, s.ThroughputHigh), byCount.Text(s.Operations))
		}
		p50, p99 := "-", "-"
		if s.Latency != nil {
			p50, p99 = byTime.Text(s.Latency.P50), byTime.Text(s.Latency.P99)
		}
		t.rows = append(t.rows, append(row, p50, p99, failures(s), share(s.ServerCPU), share(s.ClientCPU), remark(f, s)))
	}
	return t
}

func span(s figure.Scale, low, high *float64) string {
	if low == nil || high == nil {
		return "-"
	}
	return s.Text(*low) + " to " + s.Text(*high)
}

func share(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(100**x, 'f', 0, 64) + "%"
}

func failures(s *analysis.Step) string {
	if s.Errors == 0 {
		return "0"
	}
	percent := strconv.FormatFloat(100*s.ErrorRatio, 'f', 1, 64) + "%"
	if s.ErrorRatio < 0.001 {
		percent = "<0.1%"
	}
	return fmt.Sprintf("%s (%s)", unit.Count(float64(s.Errors)), percent)
}

// remark marks the best step, those that cannot be told from it, and the one
// next to the knee.
func remark(f *analysis.Findings, s *analysis.Step) string {
	var marks []string
	switch o := f.Optimum; {
	case isBest(f, s):
		marks = append(marks, "best")
	case o != nil && slices.Contains(o.Equals, s.Step):
		marks = append(marks, "same")
	}
	if k := f.Knee; k != nil && s.Step == k.Step {
		marks = append(marks, "knee")
	}
	if s.Clients < s.Planned {
		marks = append(marks, fmt.Sprintf("of %d planned", s.Planned))
	}
	return strings.Join(marks, ", ")
}
