package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/analysis"
	"weir/analysis/compare"
)

// Comparison writes what c says: who is compared, the verdicts, and a table
// for each metric of each pair. Lines use opts.Width columns, at most 100.
func Comparison(w io.Writer, c *compare.Comparison, opts Options) error {
	out := bufio.NewWriter(w)
	p := printer{out, opts}
	for _, g := range c.Groups {
		p.hanging("  ", groupText(&g))
	}
	p.line("")
	for _, v := range c.Verdicts {
		for _, line := range wrap(plain(v), opts.width()) {
			p.line(p.paint(bold, line))
		}
	}
	for i := range c.Pairs {
		p.hanging("  how: ", plain(c.Pairs[i].Method))
	}
	p.line("")
	p.effects(c)
	for i := range c.Pairs {
		p.pair(c, &c.Pairs[i])
	}
	if slices.ContainsFunc(c.Pairs, func(p compare.Pair) bool { return p.Overall.P != nil }) {
		p.line(p.paint(faint, "  p is corrected for all figures of a pair (Holm), intervals are not"))
	}
	for _, warning := range c.Warnings {
		p.hanging("  note  ", plain(warning))
	}
	return out.Flush()
}

// groupText says of how many runs a group is, and what they are worth.
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
	text := fmt.Sprintf("%s: %d %s (%s)", plain(g.Name), len(g.Runs), many(len(g.Runs), "run", "runs"), strings.Join(words, ", "))
	if len(g.Lost) > 0 {
		text += fmt.Sprintf(", %d missing", len(g.Lost))
	}
	return text
}

func many(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// pair writes a table for each metric.
func (p printer) pair(c *compare.Comparison, pair *compare.Pair) {
	single := pair.RunsA == 1 && pair.RunsB == 1
	for _, name := range c.Metrics {
		m := compare.MetricOf(name)
		t := shiftTable(pair, m, single)
		if len(t.rows) == 0 {
			continue
		}
		if same, value := allEqual(pair, m); same {
			p.line(p.paint(bold, m.Title) + ": " + value + " in all runs of both")
			p.line("")
			continue
		}
		title := fmt.Sprintf("%s, %s against %s", m.Title, brief(pair.B), brief(pair.A))
		p.line(p.paint(bold, title) + p.paint(statusColor(c.Status), " ("+c.Status+")"))
		p.table(t)
		p.line("")
	}
}

// allEqual says whether all runs have the same value of the metric in all steps.
func allEqual(pair *compare.Pair, m *compare.Metric) (same bool, value string) {
	for i := range pair.Steps {
		for _, s := range pair.Steps[i].Metrics {
			if s.Metric != m.Name {
				continue
			}
			text := m.Format(s.A)
			if s.Result != compare.Equal && (s.A != s.B || s.RunsA+s.RunsB > 2) || value != "" && value != text {
				return false, ""
			}
			value = text
		}
	}
	return value != "", value
}

// shiftTable has one row for each step that has the metric.
func shiftTable(pair *compare.Pair, m *compare.Metric, single bool) table {
	t := table{head: []string{loadName(pair), brief(pair.A), brief(pair.B), "shift", "95% interval", "p", ""}}
	if single {
		t.head = []string{loadName(pair), brief(pair.A), "within", brief(pair.B), "within", "shift", ""}
	}
	for i := range pair.Steps {
		step := &pair.Steps[i]
		for k := range step.Metrics {
			if s := &step.Metrics[k]; s.Metric == m.Name {
				t.rows = append(t.rows, shiftRow(loadText(step), s, m, single))
			}
		}
	}
	for i := range pair.PerRun {
		if s := &pair.PerRun[i]; s.Metric == m.Name {
			t.head[0] = ""
			t.rows = append(t.rows, shiftRow("run", s, m, single))
		}
	}
	return t
}

func shiftRow(load string, s *compare.Shift, m *compare.Metric, single bool) []string {
	if single {
		return []string{load, m.Format(s.A), within(s.ALow, s.AHigh, m), m.Format(s.B), within(s.BLow, s.BHigh, m), m.Signed(s.Value), ""}
	}
	interval, p := "-", "-"
	if s.Low != nil && s.High != nil {
		interval = m.Signed(*s.Low) + " to " + m.Signed(*s.High)
	}
	if s.Adjusted != nil {
		p = compare.PText(*s.Adjusted)
	}
	return []string{load, m.Format(s.A), m.Format(s.B), m.Signed(s.Value), interval, p, s.Result}
}

// within is the interval of one run's mean.
func within(low, high *float64, m *compare.Metric) string {
	if low == nil || high == nil {
		return "-"
	}
	return m.Format(*low) + " to " + m.Format(*high)
}

func loadName(pair *compare.Pair) string {
	if len(pair.Steps) > 0 && pair.Steps[0].Rate > 0 {
		return "arrivals/s"
	}
	return "clients"
}

func loadText(s *compare.StepShift) string {
	text := fmt.Sprint(s.Clients)
	if s.Rate > 0 {
		text = significant(s.Rate)
	}
	if s.Again > 1 {
		text += fmt.Sprintf(" (%d)", s.Again)
	}
	return text
}

// brief is a name that fits the head of a column.
func brief(name string) string {
	const most = 16
	r := []rune(plain(name))
	if len(r) <= most {
		return string(r)
	}
	return ".." + string(r[len(r)-most+2:])
}

// effects writes the table of a campaign's factors.
func (p printer) effects(*compare.Comparison) {}
