package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
)

// A column of the live table. If the terminal is narrow, columns of the highest rank are left out
// first.
type column struct {
	head  string
	width int // with the blank before it
	rank  int
	cell  func(v *View, w *measure.Window) string
}

// columnsOf returns the columns of a run, for clients that run jobs or others.
func columnsOf(jobs bool) []column {
	step := column{"step", 5, 0, func(_ *View, w *measure.Window) string { return fmt.Sprint(w.Step) }}
	throughput := column{"throughput", 12, 0, func(_ *View, w *measure.Window) string { return unit.Bits(w.Throughput()) }}
	quantile := func(head string, rank int, q float64) column {
		return column{head, 9, rank, func(_ *View, w *measure.Window) string {
			if w.Done == 0 {
				return "-"
			}
			return unit.Seconds(w.Latency.Quantile(q))
		}}
	}
	server := column{"CPU server", 11, 4, func(v *View, _ *measure.Window) string { return v.cpu.text(serverSide) }}
	client := column{"client", 7, 5, func(v *View, _ *measure.Window) string { return v.cpu.text(clientSide) }}
	if jobs {
		return []column{
			step,
			{"jobs", 7, 0, func(_ *View, w *measure.Window) string { return unit.Significant(w.JobSeconds / max(w.Seconds, 1e-9)) }},
			{"efficiency", 11, 1, func(_ *View, w *measure.Window) string {
				if e := w.Efficiency(); e >= 0 {
					return unit.Percent(e)
				}
				return "-"
			}},
			{"events", 10, 2, func(_ *View, w *measure.Window) string { return perSecond(float64(w.Events) / max(w.Seconds, 1e-9)) }},
			throughput,
			quantile("p99", 6, .99),
			{"done", 7, 1, func(_ *View, w *measure.Window) string { return fmt.Sprint(w.Ended) }},
			{"lost", 6, 0, func(v *View, w *measure.Window) string { _, lost := v.failed(w); return narrow(lost) }},
			server, client,
		}
	}
	return []column{
		step,
		{"clients", 8, 0, func(_ *View, w *measure.Window) string { return fmt.Sprintf("%.0f", w.Clients) }},
		throughput,
		{"moved", 9, 7, func(_ *View, w *measure.Window) string { return unit.Bytes(float64(w.Moved)) }},
		{"rate", 9, 2, func(_ *View, w *measure.Window) string { return perSecond(w.Rate()) }},
		quantile("p50", 3, .5), quantile("p95", 6, .95), quantile("p99", 1, .99),
		{"errors", 7, 1, func(v *View, w *measure.Window) string { operations, _ := v.failed(w); return narrow(operations) }},
		server, client,
	}
}

// failed returns the operations and the jobs that failed: of a step that has ended those of its
// measurement time, as in the report, and of the step under way those so far.
func (v *View) failed(w *measure.Window) (operations, jobs int64) {
	if w == &v.step {
		return w.Bad(), w.Lost()
	}
	return v.failures.Count(), v.failures.Lost()
}

// columns returns the columns that fit into a terminal of the given width.
func (v *View) columns(wide int) []column {
	all := columnsOf(slices.Contains([]workload.Kind{workload.JobWork, workload.CommandJobWork}, v.Plan.Work.Kind))
	for rank := 7; rank > 0; rank-- {
		width := 0
		for _, c := range all {
			width += c.width
		}
		if width <= wide-3 { // rows that move keep off the edge
			break
		}
		all = slices.DeleteFunc(all, func(c column) bool { return c.rank == rank })
	}
	return all
}

func perSecond(x float64) string { return unit.Count(x) + "/s" }

// narrow writes a number that fits a narrow column.
func narrow(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return unit.Count(float64(n))
}

func headerOf(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%*s", c.width, c.head)
	}
	return b.String()
}

// row returns one line of the table.
func (v *View) row(columns []column, w *measure.Window) string {
	var b strings.Builder
	operations, jobs := v.failed(w)
	for _, c := range columns {
		text := fmt.Sprintf("%*s", c.width, c.cell(v, w))
		if c.head == "errors" && operations > 0 || c.head == "lost" && jobs > 0 {
			text = v.look.Paint(screen.Red, text)
		}
		b.WriteString(text)
	}
	return b.String()
}

// tableLine writes a permanent line of the table, below the header of its columns.
func (v *View) tableLine(text func(columns []column) string) {
	columns := v.columns(v.screen.Columns())
	if header := headerOf(columns); header != v.header {
		v.header = header
		v.print("%s\n", v.look.Paint(screen.Faint, header))
	}
	v.print("%s\n", text(columns))
}

// rows returns the rows that move.
func (v *View) rows(columns int) (rows []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, wide := time.Now(), columns-3
	if v.workers != nil {
		rows = append(rows, " "+v.workers())
	}
	if v.task.What != "" || !v.loading {
		return append(rows, v.preparation(now).Row(wide, v.look))
	}
	if v.second.Seconds > 0 && !idle(&v.second) {
		shown := v.columns(columns)
		if header := headerOf(shown); v.header != header {
			rows = append(rows, v.look.Paint(screen.Faint, header))
		}
		rows = append(rows, v.row(shown, &v.second))
		if worse := v.worse(); worse != "" {
			rows = append(rows, " "+v.look.Paint(screen.Red, worse))
		}
	}
	if spark := v.spark(wide); spark != "" {
		rows = append(rows, spark)
	}
	if v.best != "" {
		rows = append(rows, " "+v.best)
	}
	return append(rows, v.position.progress(now).Row(wide, v.look))
}

// idle reports whether no client was active in w, as while a search waits for the servers.
func idle(w *measure.Window) bool {
	return w.Clients <= 0.5 && w.Done == 0 && w.Bad() == 0 && w.JobSeconds <= 0
}

// spark draws the throughput of the last seconds.
func (v *View) spark(columns int) string {
	const head, tail = " throughput ", " last %d s, up to %s"
	room := columns - len(head) - len(fmt.Sprintf(tail, maxHistory, "99.9 Gbit/s"))
	if !v.look.Blocks || len(v.history) < 2 || room < 5 {
		return ""
	}
	values := v.history[max(len(v.history)-room, 0):]
	highest := slices.Max(values)
	if highest == 0 {
		return "" // operations without payload
	}
	return head + v.look.Paint(screen.Cyan, screen.Spark(values, len(values))) + fmt.Sprintf(tail, len(values), unit.Bits(highest))
}

func (v *View) preparation(now time.Time) screen.Progress {
	p := v.task.Progress(now)
	p.Where = cmp.Or(p.Where, "preparing")
	p.Where = v.position.run() + p.Where
	return p
}
