package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/analysis"
	"weir/internal/unit"
	"weir/report/figure"
)

// stepSection is the table of steps: what the hold time of each gave.
func stepSection(f *analysis.Findings, m medium) section {
	s := section{ID: "steps", Title: "Steps", Note: "What the hold time of each step gave; intervals are of the mean, 95%; first byte is the median."}
	fields := slices.Concat(yieldFields(f), latencyFields(f), []field[*analysis.Step]{
		{"errors", "errors", failures, nil},
		{"server CPU", "server CPU", func(s *analysis.Step) string { return share(s.ServerCPU) }, nil},
		{"client CPU", "client CPU", func(s *analysis.Step) string { return share(s.ClientCPU) }, nil},
		{"steady", absent, func(s *analysis.Step) string {
			if s.Steady == nil {
				return "-"
			}
			return map[bool]string{true: "yes", false: "no"}[*s.Steady]
		}, nil},
		{"<", "<", func(s *analysis.Step) string { return remark(f, s) }, nil},
	})
	tabulate(&s, m, steps(f), func(x *analysis.Step) bool { return isBest(f, x) }, fields...)
	return s
}

// steps are those of the curve.
func steps(f *analysis.Findings) []*analysis.Step {
	all := make([]*analysis.Step, len(f.Curve))
	for i := range f.Curve {
		all[i] = &f.Curve[i]
	}
	return all
}

// yieldFields are the load, what steps are compared by with its interval, how
// many operations ended, and what each client got.
func yieldFields(f *analysis.Findings) []field[*analysis.Step] {
	var most, fastest float64
	for i := range f.Curve {
		most, fastest = max(most, f.Curve[i].Throughput), max(fastest, f.Curve[i].Operations)
	}
	name, y := f.Load(), yieldOf(f)
	byBits, byCount, show := figure.Bits(most), figure.Scale{Factor: 1, Unit: things(f)}, unit.Bits
	if fastest >= 1e5 {
		byCount = figure.Decimal(fastest, " "+things(f))
	}
	operations := func(s *analysis.Step) float64 { return s.Operations }
	count := field[*analysis.Step]{things(f), byCount.Unit, with(operations, unit.Count), with(operations, byCount.Text)}
	yield := field[*analysis.Step]{"throughput", byBits.Unit, with(y.of, unit.Bits), with(y.of, byBits.Text)}
	by, each := byBits, field[*analysis.Step]{"each client", absent, with(y.each, unit.Bits), nil}
	if f.Measure == analysis.Rate { // nothing is moved
		yield, by, show, each.text = count, byCount, unit.Count, with(y.each, perSecond)
	}
	interval := field[*analysis.Step]{"interval", "95% interval", func(s *analysis.Step) string {
		low, high := y.ends(s)
		if low == nil || high == nil {
			return "-"
		}
		return strings.TrimSuffix(show(*low), after(show(*high))) + " to " + show(*high)
	}, func(s *analysis.Step) string {
		low, high := y.ends(s)
		return span(low, high, by.Text)
	}}
	all := []field[*analysis.Step]{{name, name, func(s *analysis.Step) string { return loadCell(f, s) }, nil}, yield, interval}
	if f.Measure != analysis.Rate {
		all = append(all, count)
	}
	return append(all, each)
}

// with makes the cells of a column of numbers.
func with[T any](of func(T) float64, text func(float64) string) func(T) string {
	return func(x T) string { return text(of(x)) }
}

// latencyFields are how long operations took.
func latencyFields(f *analysis.Findings) []field[*analysis.Step] {
	slowest := 0.0
	for i := range f.Curve {
		if q := f.Curve[i].Latency; q != nil {
			slowest = max(slowest, q.P50)
		}
	}
	by := figure.Seconds(slowest)
	column := func(page, terminal string, of func(*analysis.Step) *analysis.Quantiles, which func(*analysis.Quantiles) float64) field[*analysis.Step] {
		cells := func(text func(float64) string) func(*analysis.Step) string {
			return func(s *analysis.Step) string {
				if of(s) == nil {
					return "-"
				}
				return text(which(of(s)))
			}
		}
		return field[*analysis.Step]{page, terminal, cells(unit.Seconds), cells(by.Text)}
	}
	p50 := func(q *analysis.Quantiles) float64 { return q.P50 }
	whole := func(s *analysis.Step) *analysis.Quantiles { return s.Latency }
	return []field[*analysis.Step]{
		column("p50", "p50 "+by.Unit, whole, p50),
		column("p99", "p99 "+by.Unit, whole, func(q *analysis.Quantiles) float64 { return q.P99 }),
		column("p99.9", absent, whole, func(q *analysis.Quantiles) float64 { return q.P999 }),
		column("max", absent, whole, func(q *analysis.Quantiles) float64 { return q.Max }),
		column("first byte", absent, func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte }, p50),
	}
}

// pointSection is the table of the points of a curve that was read from a table:
// what each gave, and what each client got of it. Columns that the table does
// not tell are left out.
func pointSection(f *analysis.Findings) section {
	y := yieldOf(f)
	var most, each float64
	var timed, spread, errors bool
	for _, s := range steps(f) {
		most, each = max(most, y.of(s)), max(each, y.each(s))
		timed = timed || s.Latency != nil
		spread = spread || s.ThroughputLow != nil || s.OperationsLow != nil
		errors = errors || s.ErrorRatio > 0
	}
	scale := func(most float64) figure.Scale {
		switch {
		case f.Measure != analysis.Rate:
			return figure.Bits(most)
		case most < 0.1:
			return figure.Scale{Factor: 60, Unit: "/min"}
		}
		return figure.Decimal(most, "/s")
	}
	byMost, byEach := scale(most), scale(each)
	var fields []field[*analysis.Step]
	add := func(known bool, name string, text func(*analysis.Step) string) {
		if known {
			fields = append(fields, field[*analysis.Step]{name, name, text, nil})
		}
	}
	add(true, "clients", func(s *analysis.Step) string { return strconv.FormatFloat(s.ActiveClients, 'g', 6, 64) })
	add(true, byMost.Unit, with(y.of, byMost.Text))
	add(spread, "95% interval", func(s *analysis.Step) string { low, high := y.ends(s); return span(low, high, byMost.Text) })
	add(true, byEach.Unit+" each", with(y.each, byEach.Text))
	add(timed, "latency", func(s *analysis.Step) string {
		if s.Latency == nil {
			return "-"
		}
		return unit.Seconds(s.Latency.Mean)
	})
	add(errors, "errors", func(s *analysis.Step) string { return unit.Percent(s.ErrorRatio) })
	add(true, "<", func(s *analysis.Step) string { return remark(f, s) })
	s := section{ID: "steps", Title: "Points", Note: "What the table says, and what each client got of it."}
	tabulate(&s, onPage, steps(f), func(x *analysis.Step) bool { return isBest(f, x) }, fields...)
	return s
}

// after returns the unit of a text with its space, " Gbit/s".
func after(text string) string {
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		return text[i:]
	}
	return text
}

// span writes an interval.
func span(low, high *float64, text func(float64) string) string {
	if low == nil || high == nil {
		return "-"
	}
	return text(*low) + " to " + text(*high)
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

// bestStep returns the step that the optimum is at.
func bestStep(f *analysis.Findings) *analysis.Step {
	for i := range f.Curve {
		if isBest(f, &f.Curve[i]) {
			return &f.Curve[i]
		}
	}
	return nil
}

func isBest(f *analysis.Findings, s *analysis.Step) bool {
	return f.Optimum != nil && s.Step == f.Optimum.Step
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
	if s.Excluded != "" {
		marks = append(marks, "does not count")
	}
	if s.Clients < s.Planned {
		marks = append(marks, fmt.Sprintf("of %d planned", s.Planned))
	}
	return strings.Join(marks, ", ")
}

// inOrder returns f with its steps in the order of their loads if they were held
// in any other order than up, or up and down again: a search goes to and fro, and
// nobody can read a table, or a line, that does.
func inOrder(f *analysis.Findings) *analysis.Findings {
	_, of := load(f)
	turns, down := 0, false
	for i := 1; i < len(f.Curve); i++ {
		before, now := of(&f.Curve[i-1]), of(&f.Curve[i])
		if now != before && now < before != down {
			turns, down = turns+1, now < before
		}
	}
	if turns < 2 {
		return f
	}
	sorted := *f
	sorted.Curve = slices.Clone(f.Curve)
	slices.SortStableFunc(sorted.Curve, func(a, b analysis.Step) int { return cmp.Compare(of(&a), of(&b)) })
	return &sorted
}
