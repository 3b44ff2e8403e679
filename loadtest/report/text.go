package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/say"
	"weir/loadtest/analysis"
)

// Bounds of texts. Lines have at most this width unless a table needs more columns.
const (
	width         = 100
	narrow        = 40
	summaryWidth  = 80
	mostFindings  = 5  // lines of remarks in a summary
	mostTextRows  = 40 // of a table
	leastBar      = 8  // columns of the bars in a summary
	mostBar       = 20
	leastHung     = 16 // columns of a sentence at the end of a row
	shortestNames = 10 // columns to which names are shortened before sentences
	shortestTexts = 20 // columns to which the texts of a wide table are broken, and names shortened
)

// Options control the appearance of a text.
type Options struct {
	Color   bool // colors and bold by terminal escapes
	Blocks  bool // the terminal shows block characters
	Width   int  // columns of the terminal; 0: unknown
	Verbose bool // all chapters; otherwise a summary
}

func (o Options) width() int {
	most := summaryWidth
	if o.Verbose {
		most = width
	}
	if o.Width <= 0 {
		return most
	}
	return min(max(o.Width, narrow), most)
}

// Text writes the headline, the curve, and the findings against the result: at most 20 lines of 80
// columns for nine steps. With opts.Verbose it writes all chapters in 100 columns; tables may be
// wider.
func Text(w io.Writer, f *analysis.Findings, opts Options) error {
	f = inOrder(f)
	p := newPrinter(w, opts)
	headline, facts := verdictLines(f)
	p.headline(f.Validity.Status, headline)
	if opts.Verbose {
		for _, fact := range facts {
			p.hanging("  ", fact)
		}
		if f.Work != "" {
			p.hanging(map[bool]string{false: "  each client: ", true: "  each link: "}[f.Challenge != nil], say.Plain(f.Work))
		}
		p.findings(thresholds(f), math.MaxInt)
		p.line("")
		for _, c := range chapters(f, nil, Plots{}) {
			p.chapter(&c)
		}
		p.findings(notes(f), math.MaxInt)
		return p.w.Flush()
	}
	p.line("")
	if f.Challenge != nil {
		p.challenge(f)
	} else {
		p.curve(f)
	}
	if s := populationSection(f, func(s *analysis.Step) bool { return isBest(f, s) }); len(s.Rows) > 0 {
		p.table(&s.table, inSummary)
		p.line("")
	}
	if s := answerSection(f); f.Source == analysis.FromTable {
		p.section(&s) // no report contains it
		p.meanings(f)
	}
	if all := concerns(f); len(all) > 0 {
		p.findings(all, mostFindings)
		p.line("")
	}
	if f.Source != analysis.FromTable {
		p.line(checkWords(f))
	}
	return p.w.Flush()
}

// mostWorst is the number of links in the summary of a data challenge.
const mostWorst = 8

// challenge writes the facts of a data challenge and its worst links.
func (p printer) challenge(f *analysis.Findings) {
	_, facts := verdictLines(f)
	if len(facts) > 0 {
		p.hanging("  ", facts[0])
		p.line("")
	}
	s := linkTable(f.Challenge)
	more := len(f.Challenge.Links) - mostWorst
	s.Rows = s.Rows[:min(mostWorst, len(s.Rows))]
	p.table(&s.table, inSummary)
	if more > 0 {
		p.line("  and " + say.Plural(more, "link") + " closer to their targets: see --verbose")
	}
	p.line("")
}

// meanings writes the meaning of each column of an analyzed table, one line a column: the used
// columns, then at most mostUnused others.
func (p printer) meanings(f *analysis.Findings) {
	p.line("Columns of the table")
	width, unused := 0, 0
	for _, c := range f.Columns {
		width = max(width, min(len([]rune(c.Name)), longestName))
	}
	for _, used := range []bool{true, false} {
		for _, c := range f.Columns {
			if c.Used != used {
				continue
			}
			if !used {
				unused++
			}
			if unused > mostUnused {
				continue
			}
			name := "  " + c.Name + strings.Repeat(" ", max(0, width-len([]rune(c.Name)))+2)
			for _, line := range p.hung(name, width+4, say.Plain(c.Fact.Text)) {
				p.line(line)
			}
		}
	}
	if unused > mostUnused {
		p.line(fmt.Sprintf("  and %d more that are not used: see --verbose", unused-mostUnused))
	}
	p.line("")
}

const mostUnused = 12

// longestName is the width of names of columns to which meanings are aligned.
const longestName = 30

// verdictLines returns the headline and the facts of a verdict.
func verdictLines(f *analysis.Findings) (headline string, facts []string) {
	lines := strings.Split(f.Verdict, "\n")
	for _, line := range lines[1:] {
		facts = append(facts, say.Plain(line))
	}
	return say.Plain(lines[0]), facts
}

// Final returns a result in one line: its validity and the headline.
func Final(f *analysis.Findings) string { return f.Validity.Status + ": " + say.Plain(f.Headline) }

// curve writes the columns of a table that belong into a summary, with a bar for each row.
func (p printer) curve(f *analysis.Findings) {
	s := curveSection(f)
	if len(s.Rows) == 0 {
		return
	}
	if f.Transfers == nil {
		p.bars(f, &s.table)
	}
	p.table(&s.table, inSummary)
	p.line("")
}

// bars inserts a column of bars behind the load: the throughput of each step.
func (p printer) bars(f *analysis.Findings, t *table) {
	used := 0
	for i, c := range t.Head {
		if c.detail == inSummary {
			used += 2 + t.width(i)
		}
	}
	room := min(mostBar, p.opts.width()-used-2)
	y, most := yieldOf(f), 0.0
	for _, s := range steps(f) {
		most = max(most, y.of(s))
	}
	if room < leastBar || len(f.Curve) < 2 || len(t.Rows) != len(f.Curve) || !(most > 0) {
		return
	}
	block := "="
	if p.opts.Blocks {
		block = "▇"
	}
	last := len(t.Head) - 1
	t.Head = append(t.Head[:last:last], column{Class: "l"}, t.Head[last])
	for i := range t.Rows {
		cells := t.Rows[i].Cells
		bar := cell{Text: strings.Repeat(block, int(float64(room)*y.of(&f.Curve[i])/most+0.5))}
		t.Rows[i].Cells = append(cells[:last:last], bar, cells[last])
	}
}

// A finding is a line below the curve: a threshold, a check or a note.
type finding struct{ status, text string }

// thresholds returns the findings about thresholds: first the missed thresholds, then the met
// thresholds.
func thresholds(f *analysis.Findings) []finding {
	var met, missed []finding
	for _, x := range f.Thresholds {
		if r := (finding{thresholdWord(x), x.Threshold + ": " + x.Detail}); x.Met {
			met = append(met, r)
		} else {
			missed = append(missed, r)
		}
	}
	return append(missed, met...)
}

// notes returns the warnings for readers.
func notes(f *analysis.Findings) []finding {
	var all []finding
	for _, text := range f.Warnings {
		all = append(all, finding{"note", text})
	}
	return all
}

// concerns returns the thresholds, the checks that do not pass, and the notes.
func concerns(f *analysis.Findings) []finding {
	all := thresholds(f)
	for _, status := range []string{analysis.Fail, analysis.Warn} {
		for _, c := range f.Validity.Checks {
			if c.Status == status {
				all = append(all, finding{status, c.Name + ": " + c.Text()})
			}
		}
	}
	return append(all, notes(f)...)
}

// findings writes at most so many lines of findings, one more if that is the last line.
func (p printer) findings(all []finding, most int) {
	column := 0
	for _, r := range all {
		column = max(column, len(r.status))
	}
	lines := 0
	for i, r := range all {
		pad := strings.Repeat(" ", column-len(r.status)+2)
		color := map[string]string{"met": green, "not met": red}[r.status]
		text := p.hung("  "+p.paint(cmp.Or(color, statusColor(r.status)), r.status)+pad, column+4, say.Plain(r.text))
		if lines += len(text); lines > most && (i < len(all)-1 || lines > most+1) {
			p.line(fmt.Sprintf("  and %d more: see --verbose", len(all)-i))
			return
		}
		for _, line := range text {
			p.line(line)
		}
	}
}

// checkWords counts the checks by their status.
func checkWords(f *analysis.Findings) string {
	counts := map[string]int{}
	for _, c := range f.Validity.Checks {
		counts[c.Status]++
	}
	text := fmt.Sprintf("%d of %d checks passed", counts[analysis.OK], len(f.Validity.Checks))
	for _, s := range []struct{ status, one, many string }{
		{analysis.Fail, "fails", "fail"}, {analysis.Warn, "warns", "warn"}, {analysis.Skipped, "skipped", "skipped"},
	} {
		if n := counts[s.status]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, say.Either(n, s.one, s.many))
		}
	}
	return text
}

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

func newPrinter(w io.Writer, opts Options) printer { return printer{bufio.NewWriter(w), opts} }

func (p printer) line(s string) { _, _ = fmt.Fprintln(p.w, s) }

func (p printer) paint(color, s string) string {
	if !p.opts.Color || color == "" {
		return s
	}
	return color + s + normal
}

// headline writes a verdict after its status.
func (p printer) headline(status, text string) {
	for i, line := range say.Wrap(status+": "+text, p.opts.width()) {
		if rest, ok := strings.CutPrefix(line, status+":"); ok && i == 0 {
			p.line(p.paint(bold+statusColor(status), status+":") + p.paint(bold, rest))
			continue
		}
		p.line(p.paint(bold, line))
	}
}

// hanging writes text after head and indents its further lines to the first.
func (p printer) hanging(head, text string) {
	for _, line := range p.hung(head, utf8.RuneCountInString(head), text) {
		p.line(line)
	}
}

// hung returns the lines of text after head, which has so many columns.
func (p printer) hung(head string, columns int, text string) []string {
	lines := say.Wrap(text, max(p.opts.width()-columns, leastHung))
	for i := range lines {
		if i == 0 {
			lines[i] = head + lines[i]
		} else {
			lines[i] = strings.Repeat(" ", columns) + lines[i]
		}
	}
	return lines
}

func statusColor(status string) string {
	switch status {
	case analysis.OK, analysis.Valid:
		return green
	case analysis.Warn, analysis.Suspect:
		return yellow
	case analysis.Fail, analysis.Invalid:
		return red
	case analysis.Skipped, "note":
		return faint
	}
	return ""
}

// chapter writes the sentences and the tables of c, without its notes.
func (p printer) chapter(c *chapter) {
	if c.PageOnly {
		return
	}
	if c.Lead != "" || len(c.Points) > 0 {
		p.line(p.paint(bold, c.Title))
		p.points(append([]string{c.Lead}, c.Points...))
		p.line("")
	}
	for i := range c.Parts {
		p.section(&c.Parts[i])
	}
}

func (p printer) points(all []string) {
	for i, text := range all {
		switch {
		case text == "":
		case i == 0:
			p.hanging("  ", text)
		default:
			p.hanging("  - ", text)
		}
	}
}

// section writes the title of a section, its table and its points.
func (p printer) section(s *section) {
	if len(s.Rows)+len(s.Points) == 0 || s.PageOnly {
		return
	}
	if s.Title+s.Caption != "" {
		p.line(p.paint(bold, cmp.Or(s.Title, s.Caption)))
	}
	t := s.table
	if n := len(t.Rows) - mostTextRows; n > 0 {
		t.Rows = t.Rows[:mostTextRows]
		defer p.line(fmt.Sprintf("  and %d more in report.html\n", n))
	} else {
		defer p.line("")
	}
	if len(t.Rows) > 0 {
		p.table(&t, inText)
	}
	p.points(append([]string{""}, s.Points...))
}

func (p printer) table(t *table, upTo detail) {
	for _, line := range p.rows(t, upTo) {
		p.line(line)
	}
}

// width returns the number of columns that column i of t needs.
func (t *table) width(i int) int {
	n := utf8.RuneCountInString(t.Head[i].Text)
	for _, r := range t.Rows {
		n = max(n, utf8.RuneCountInString(r.Cells[i].Text))
	}
	return n
}

// empty reports whether all cells of column i of t are empty.
func (t *table) empty(i int) bool {
	return !slices.ContainsFunc(t.Rows, func(r row) bool { return r.Cells[i].Text != "" })
}

// rows returns the lines of t, the head first. Columns whose cells are empty are left
// out, the others have the width of their longest cell. The last column is broken into lines if it
// contains sentences, otherwise the widest columns of texts if the table is too wide.
func (p printer) rows(t *table, upTo detail) []string {
	shown, widths, sentences := p.columns(t, upTo)
	write := func(cells []cell, color string) []string {
		var b strings.Builder
		columns := 0
		for k, i := range shown {
			text := cut(cells[i].Text, widths[k])
			if sentences && k == len(shown)-1 {
				return p.hung(b.String()+"  ", columns+2, cells[i].Text)
			}
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(text))
			columns += 2 + widths[k]
			_, class, _ := strings.Cut(cells[i].Class, " ")
			switch {
			case t.Head[i].Class == "":
				b.WriteString("  " + pad + text)
			case k == len(shown)-1:
				b.WriteString("  " + text)
			default:
				b.WriteString("  " + p.paint(statusColor(class), text+pad))
			}
		}
		return []string{p.paint(color, strings.TrimRight(b.String(), " "))}
	}
	head := make([]cell, len(t.Head))
	for i := range head {
		head[i].Text = t.Head[i].Text
	}
	lines := write(head, bold)[:1]
	if strings.TrimSpace(lines[0]) == "" {
		lines[0] = ""
	}
	for _, r := range t.Rows {
		for _, cells := range broken(r.Cells, shown, widths) {
			lines = append(lines, write(cells, "")...)
		}
	}
	return lines
}

// columns returns the indexes and the widths of the columns that are shown, and whether the last of
// them contains sentences.
func (p printer) columns(t *table, upTo detail) (shown, widths []int, sentences bool) {
	sum := 0
	for i, c := range t.Head {
		if c.detail > upTo || t.empty(i) {
			continue
		}
		shown, widths = append(shown, i), append(widths, t.width(i))
		sum, sentences = sum+2+widths[len(widths)-1], c.cells == "w"
	}
	free, least := len(shown), shortestTexts // columns that may be narrowed, and their least width
	if sentences {                           // the last one is broken into lines
		free, least = free-1, shortestNames
		sum -= max(0, widths[free]-shortestTexts)
	}
	for ; sum > p.opts.width(); sum-- {
		widest := -1
		for k, i := range shown[:free] {
			if t.Head[i].Class != "" && widths[k] > least && (widest < 0 || widths[k] > widths[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return shown, widths, sentences
}

// broken returns the cells of a row as several rows, if the texts of shown cells are wider than
// their columns.
func broken(cells []cell, shown, widths []int) [][]cell {
	rows := [][]cell{slices.Clone(cells)}
	for k, i := range shown {
		if utf8.RuneCountInString(cells[i].Text) <= widths[k] {
			continue
		}
		for n, text := range say.Wrap(cells[i].Text, widths[k]) {
			if n == len(rows) {
				rows = append(rows, make([]cell, len(cells)))
			}
			rows[n][i] = cell{Text: text, Class: cells[i].Class}
		}
	}
	return rows
}

// cut shortens a name in its middle, because the middle of host names is least significant.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most/2-1]) + ".." + string(runes[len(runes)-most+most/2+1:])
}
