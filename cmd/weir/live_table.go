package main

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/screen"
	"weir/internal/unit"
	"weir/measure"
	"weir/workload"
)

// A column of the live table. Those of the lowest rank are left out last where
// the terminal is narrow.
type column struct {
	head  string
	width int // with the blank before it
	rank  int
	cell  func(l *live, t *measure.Window) string
}

// usualColumns are those of a terminal of 80 columns, and of a file.
const usualColumns = 80

// liveColumns are those that fit. The last two of the usual ones are shares of
// the machines' CPU.
func (l *live) liveColumns(columns int) []column {
	all := usualTable()
	if kind := l.course.plan.Work.Kind; kind == workload.JobWork || kind == workload.CommandJobWork {
		all = jobTable()
	}
	for rank := 7; rank > 0; rank-- {
		width := 0
		for _, c := range all {
			width += c.width
		}
		if width <= columns-3 { // what moves is kept off the edge
			break
		}
		all = slices.DeleteFunc(all, func(c column) bool { return c.rank == rank })
	}
	return all
}

// usualTable is of runs whose clients run no jobs.
func usualTable() []column {
	return []column{
		{"step", 5, 0, func(_ *live, t *measure.Window) string { return fmt.Sprint(t.Step) }},
		{"clients", 8, 0, func(_ *live, t *measure.Window) string { return fmt.Sprintf("%.0f", t.Clients) }},
		{"throughput", 12, 0, func(_ *live, t *measure.Window) string { return unit.Bits(t.Throughput()) }},
		{"moved", 9, 7, func(_ *live, t *measure.Window) string { return unit.Bytes(float64(t.Moved)) }},
		{"rate", 9, 2, func(_ *live, t *measure.Window) string { return perSecond(t.Rate()) }},
		{"p50", 9, 3, func(_ *live, t *measure.Window) string { return quantile(t, .5) }},
		{"p95", 9, 6, func(_ *live, t *measure.Window) string { return quantile(t, .95) }},
		{"p99", 9, 1, func(_ *live, t *measure.Window) string { return quantile(t, .99) }},
		{"errors", 7, 1, func(l *live, _ *measure.Window) string { return failures(l.failed.Count()) }},
		{"CPU server", 11, 4, func(l *live, _ *measure.Window) string { return l.busy.text(serverSide) }},
		{"client", 7, 5, func(l *live, _ *measure.Window) string { return l.busy.text(clientSide) }},
	}
}

// jobTable is of runs whose clients run jobs.
func jobTable() []column {
	return []column{
		{"step", 5, 0, func(_ *live, t *measure.Window) string { return fmt.Sprint(t.Step) }},
		{"jobs", 7, 0, func(_ *live, t *measure.Window) string { return unit.Significant(t.JobSeconds / max(t.Seconds, 1e-9)) }},
		{"efficiency", 11, 1, func(_ *live, t *measure.Window) string {
			if e := t.Efficiency(); e >= 0 {
				return unit.Percent(e)
			}
			return "-"
		}},
		{"events", 10, 2, func(_ *live, t *measure.Window) string { return perSecond(float64(t.Events) / max(t.Seconds, 1e-9)) }},
		{"throughput", 12, 0, func(_ *live, t *measure.Window) string { return unit.Bits(t.Throughput()) }},
		{"p99", 9, 6, func(_ *live, t *measure.Window) string { return quantile(t, .99) }},
		{"done", 7, 1, func(_ *live, t *measure.Window) string { return fmt.Sprint(t.Ended) }},
		{"lost", 6, 0, func(l *live, _ *measure.Window) string { return failures(l.failed.Lost()) }},
		{"CPU server", 11, 4, func(l *live, _ *measure.Window) string { return l.busy.text(serverSide) }},
		{"client", 7, 5, func(l *live, _ *measure.Window) string { return l.busy.text(clientSide) }},
	}
}

// failures is a number of failures that fits a narrow column.
func failures(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return unit.Count(float64(n))
}

// header is the table's first line.
func header(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%*s", c.width, c.head)
	}
	return b.String()
}

// row is one line of the table.
func (l *live) row(columns []column, t *measure.Window) string {
	var b strings.Builder
	for _, c := range columns {
		text := fmt.Sprintf("%*s", c.width, c.cell(l, t))
		if c.head == "errors" && l.failed.Count() > 0 || c.head == "lost" && l.failed.Lost() > 0 {
			text = l.look.Paint(screen.Red, text)
		}
		b.WriteString(text)
	}
	return b.String()
}

// stays writes a line of the table that stays, below the header for these columns.
func (l *live) stays(text func(columns []column) string) {
	wide := usualColumns
	if l.screen.Moves() {
		wide = l.screen.Columns()
	}
	columns := l.liveColumns(wide)
	if head := header(columns); head != l.head {
		l.head = head
		l.print("%s\n", l.look.Paint(screen.Faint, head))
	}
	l.print("%s\n", text(columns))
}
