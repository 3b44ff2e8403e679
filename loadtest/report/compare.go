package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
)

// Comparison writes the results of c: the compared groups, the verdicts, and a table for each
// metric of each pair.
func Comparison(w io.Writer, c *compare.Comparison, opts Options) error {
	opts.Verbose = true // its tables need the room
	p := newPrinter(w, opts)
	for _, g := range c.Groups {
		p.hanging("  ", groupText(&g))
	}
	p.line("")
	outcomes := outcomeSection(c)
	p.section(&outcomes)
	for i, v := range ownVerdicts(c) {
		if i == 0 {
			p.headline(c.Status, say.Plain(v))
			continue
		}
		for _, line := range say.Wrap(say.Plain(v), p.opts.width()) {
			p.line(p.paint(bold, line))
		}
	}
	if c.Effects == nil {
		p.how(c)
	}
	p.line("")
	for _, s := range effectSections(c) {
		p.section(&s)
	}
	if brevity(c) {
		p.overview(c)
	}
	for i := range c.Pairs {
		if brevity(c) {
			break
		}
		tables, same := shiftSections(c, &c.Pairs[i])
		for _, s := range tables {
			p.section(&s)
		}
		for _, text := range same {
			p.line(text)
		}
	}
	if slices.ContainsFunc(c.Pairs, func(p compare.Pair) bool { return p.Overall.P != nil }) {
		p.line(p.paint(faint, "  p is corrected for all figures of a pair (Holm), intervals are not"))
	}
	for _, warning := range c.Warnings {
		p.hanging("  note  ", say.Plain(warning))
	}
	return p.w.Flush()
}

// ownVerdicts returns the verdicts to show at the top: all verdicts, or all except the verdicts of
// pairs if pairs are not shown one by one.
func ownVerdicts(c *compare.Comparison) []string {
	if brevity(c) {
		return c.Verdicts[:len(c.Verdicts)-len(c.Pairs)]
	}
	return c.Verdicts
}

// mostPairs is the largest number of pairs that a text shows step by step.
const mostPairs = 3

// brevity reports whether there are too many pairs to show each of them, or the effects of factors
// replace them.
func brevity(c *compare.Comparison) bool { return len(c.Pairs) > mostPairs || c.Effects != nil }

func (p printer) how(c *compare.Comparison) {
	for _, how := range methods(c) {
		p.hanging("  how: ", say.Plain(how))
	}
}

// methods returns the methods of judging the pairs, each method once.
func methods(c *compare.Comparison) []string {
	var all []string
	for i := range c.Pairs {
		if how := c.Pairs[i].Method; !slices.Contains(all, how) {
			all = append(all, how)
		}
	}
	return all
}

// overview writes one line for each of many pairs.
func (p printer) overview(c *compare.Comparison) {
	m := compare.MetricOf(c.Metrics[0])
	first := &c.Pairs[0]
	s := section{Title: "All against " + brief(first.A),
		table: table{Head: heads("group", "runs", m.Title, "shift", "95% interval", "p", "<result")}}
	s.row(false, brief(first.A), fmt.Sprint(first.RunsA), m.Format(first.Overall.A), "", "", "", "")
	for i := range c.Pairs {
		row := shiftRow("", &c.Pairs[i].Overall, m, false)
		s.row(false, append([]string{brief(c.Pairs[i].B), fmt.Sprint(c.Pairs[i].RunsB)}, row[2:]...)...)
	}
	p.line(p.paint(bold, s.Title))
	p.table(&s.table, inText)
	p.how(c)
	p.line("  --html and --json have them step by step")
	p.line("")
}

// groupText returns the number of runs of a group, and their validity.
func groupText(g *compare.Group) string {
	count := map[string]int{}
	for _, r := range g.Runs {
		count[r.Status]++
	}
	var words []string
	for _, status := range []string{analysis.Valid, analysis.Suspect, analysis.Invalid} {
		if n := count[status]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, status))
		}
	}
	text := fmt.Sprintf("%s: %d %s (%s)", say.Plain(g.Name), len(g.Runs), say.Either(len(g.Runs), "run", "runs"), strings.Join(words, ", "))
	for _, key := range slices.Sorted(maps.Keys(g.Levels)) {
		text += fmt.Sprintf(", %s %s", say.Plain(key), say.Plain(g.Levels[key]))
	}
	if len(g.Lost) > 0 {
		text += fmt.Sprintf(", %d missing", len(g.Lost))
	}
	return text
}

// shiftSections returns a table for each metric of a pair, and a sentence for each metric that is
// equal in all runs of the two groups.
func shiftSections(c *compare.Comparison, pair *compare.Pair) (tables []section, same []string) {
	for _, name := range c.Metrics {
		m := compare.MetricOf(name)
		t := shiftTable(pair, m)
		if len(t.Rows) == 0 {
			continue
		}
		if equal, value := allEqual(pair, m); equal {
			same = append(same, say.Capital(m.Title)+": "+value+" in all runs of both.")
			continue
		}
		title := fmt.Sprintf("%s, %s against %s", say.Capital(m.Title), brief(pair.B), brief(pair.A))
		tables = append(tables, section{Title: title, table: t, metric: m})
	}
	return tables, same
}

// allEqual reports whether all runs have the same value of the metric in all steps.
func allEqual(pair *compare.Pair, m *compare.Metric) (same bool, value string) {
	for i := range pair.Steps {
		for _, s := range pair.Steps[i].Metrics {
			if s.Metric != m.Name {
				continue
			}
			text := m.Format(s.A)
			if s.Result != compare.Equal || value != "" && value != text {
				return false, ""
			}
			value = text
		}
	}
	return value != "", value
}

// shiftTable has one row for each step that has the metric.
func shiftTable(pair *compare.Pair, m *compare.Metric) table {
	single := pair.RunsA == 1 && pair.RunsB == 1
	t := table{Head: heads(pair.Load, brief(pair.A), brief(pair.B), "shift", "95% interval", "p", "<result")}
	if single {
		t.Head = heads(pair.Load, brief(pair.A), "within", brief(pair.B), "within", "shift")
	}
	for i := range pair.Steps {
		step := &pair.Steps[i]
		for k := range step.Metrics {
			if s := &step.Metrics[k]; s.Metric == m.Name {
				t.row(false, shiftRow(loadText(step, pair.Load), s, m, single)...)
			}
		}
	}
	for i := range pair.PerRun {
		if s := &pair.PerRun[i]; s.Metric == m.Name {
			t.Head[0].Text = "per"
			t.row(false, shiftRow("run", s, m, single)...)
		}
	}
	return t
}

func shiftRow(load string, s *compare.Shift, m *compare.Metric, single bool) []string {
	if single {
		return []string{load, m.Format(s.A), span(s.ALow, s.AHigh, m.Format), m.Format(s.B), span(s.BLow, s.BHigh, m.Format),
			m.Signed(s.Value)}
	}
	return append([]string{load, m.Format(s.A), m.Format(s.B)}, shiftCells(s.Value, s.Low, s.High, s.Adjusted, s.Result, m)...)
}

// shiftCells formats a shift, its interval, p and the result.
func shiftCells(value float64, low, high, adjusted *float64, result string, m *compare.Metric) []string {
	return []string{m.Signed(value), span(low, high, m.Signed), orDash(adjusted, compare.PText), result}
}

// loadText writes the load of a step without its unit, or the number of a stage.
func loadText(s *compare.StepShift, unitOfLoads string) string {
	if unitOfLoads == analysis.Stages {
		return fmt.Sprint(s.Again)
	}
	text := fmt.Sprint(s.Clients)
	if s.Rate > 0 {
		text = unit.Significant(s.Rate)
	}
	if s.Again > 1 {
		text += fmt.Sprintf(" (%d)", s.Again)
	}
	return text
}

// brief shortens a name so that it fits into the head of a column.
func brief(name string) string {
	const most = 16
	r := []rune(say.Plain(name))
	if len(r) <= most {
		return string(r)
	}
	return ".." + string(r[len(r)-most+2:])
}

// mostInteractions is the number of interactions that are shown; the JSON contains all of them.
const mostInteractions = 10

// effectSections are the main effects of a campaign's factors and the interactions,
// if there are any.
func effectSections(c *compare.Comparison) []section {
	e := c.Effects
	if e == nil {
		return nil
	}
	m := compare.MetricOf(e.Metric)
	main := section{ID: "e0", Title: "Main effects on the " + m.Title, Note: say.Plain(e.Detail), Points: []string{say.Plain(e.Detail)},
		Open: true, table: table{Head: heads("<factor", "<level", "<against", "<shift", "<95% interval", "<p", "<result")}}
	for i := range e.Main {
		x := &e.Main[i]
		cells := shiftCells(x.Value, x.Low, x.High, x.Adjusted, x.Result, m)
		main.row(false, append([]string{brief(x.Factor), brief(x.Level), brief(x.Against)}, cells...)...)
	}
	both := section{ID: "e1", Title: "Interactions", Open: true,
		table: table{Head: heads("<interaction", "<with", "<shift", "<95% interval", "<p", "<result")}}
	for i := range e.Interactions[:min(len(e.Interactions), mostInteractions)] {
		x := &e.Interactions[i]
		cells := shiftCells(x.Value, x.Low, x.High, x.Adjusted, x.Result, m)
		both.row(false, append([]string{brief(x.Factor) + " " + brief(x.Level), brief(x.With.Factor) + " " + brief(x.With.Level)}, cells...)...)
	}
	return filled(main, both)
}
