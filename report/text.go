package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"weir/analysis"
	"weir/internal/say"
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
	sections := func(all ...section) {
		for i := range all {
			p.section(f.Validity.Status, &all[i])
		}
	}
	if f.Source == analysis.FromTable {
		p.fromTable(f)
	} else {
		p.transfers(f)
		sections(jobSection(f, onTerminal), siteTimes(f), stepSection(f, onTerminal))
	}
	if len(f.Curve) > 1 {
		sections(answerSection(f, onTerminal))
	}
	if f.Source == analysis.FromTable {
		sections(fitSection(f, onTerminal))
	}
	p.limits(f)
	sections(whereSection(f))
	p.workers(f)
	sections(backendShares(f), serverShares(f))
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
func (p printer) title(status, text string) {
	p.line(p.paint(bold, text) + p.paint(statusColor(status), " ("+status+")"))
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
	for i := range f.Validity.Checks {
		if c := &f.Validity.Checks[i]; !f.Validity.Noted(c) {
			p.check(c.Status, c.Name, c.Text())
		}
	}
	for i := range f.Validity.Notes {
		n := &f.Validity.Notes[i]
		p.check("note", n.Check, "not checked: "+n.Text())
	}
}

// check writes a line of the list of checks and notes.
func (p printer) check(status, name, text string) {
	head := fmt.Sprintf("  %-8s %-16s ", status, say.Plain(name))
	indent := utf8.RuneCountInString(head)
	lines := say.Wrap(say.Plain(text), p.opts.width()-indent)
	p.line(p.paint(statusColor(status), head) + lines[0])
	for _, line := range lines[1:] {
		p.line(strings.Repeat(" ", indent) + line)
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

// section writes the title of a section, stamped, its table and its points.
func (p printer) section(status string, s *section) {
	if len(s.Rows) == 0 {
		return
	}
	p.title(status, s.Title)
	p.table(&s.table)
	for _, text := range s.Points {
		p.hanging("  ", text)
	}
	p.line("")
}

// table writes t with the columns as wide as they need to be.
func (p printer) table(t *table) {
	widths := make([]int, len(t.Head))
	head := row{}
	for _, c := range t.Head {
		head.Cells = append(head.Cells, cell{Text: c.Text})
	}
	for _, r := range append([]row{head}, t.Rows...) {
		for i, c := range r.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	write := func(r row) string {
		var b strings.Builder
		for i, c := range r.Cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text))
			if t.Head[i].Class == "" {
				b.WriteString("  " + pad + c.Text)
			} else {
				b.WriteString("  " + c.Text + pad)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	p.line(p.paint(bold, write(head)))
	for _, r := range t.Rows {
		p.line(write(r))
	}
}
