package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// curveSection is the table that shows the curve: of transfers, jobs, points or steps.
func curveSection(f *analysis.Findings) section {
	switch {
	case f.Transfers != nil:
		return caseSection(f.Transfers)
	case f.Source == analysis.FromTable:
		return pointSection(f)
	case f.OfJobs():
		return jobSection(f)
	}
	return stepSection(f)
}

// stepSection is the table of steps, with the results of the measurement time of each step.
func stepSection(f *analysis.Findings) section {
	s := section{ID: "steps", Title: "Steps", Note: "What the measurement time of each step gave; intervals are of the mean, 95%; " +
		"maximum is of windows of a twentieth of the time, at least 1 s; first byte is the median."}
	fields := slices.Concat(yieldFields(f), latencyFields(f), []field[*analysis.Step]{
		{"!errors", failures},
		{"server CPU", func(s *analysis.Step) string { return orDash(s.ServerCPU, share) }},
		{".server CPU each", func(s *analysis.Step) string { return orDash(s.ServerEach, unit.Seconds) }},
		{"client CPU", func(s *analysis.Step) string { return orDash(s.ClientCPU, share) }},
		{".steady", steadiness},
		{"!<note", func(s *analysis.Step) string { return remark(f, s) }},
	})
	tabulate(&s, steps(f), func(x *analysis.Step) bool { return isBest(f, x) }, fields)
	return s
}

// share writes a share in whole percent.
func share(x float64) string { return strconv.FormatFloat(100*x, 'f', 0, 64) + "%" }

func steadiness(s *analysis.Step) string {
	if s.Steady == nil {
		return "-"
	}
	return map[bool]string{true: "yes", false: "no"}[*s.Steady]
}

// yieldFields are the load, the measure by which steps are compared with its interval, the number
// of operations that ended, and the yield of each client.
func yieldFields(f *analysis.Findings) []field[*analysis.Step] {
	var most, fastest, each float64
	y := yieldOf(f)
	for _, s := range steps(f) {
		most, fastest, each = max(most, y.of(s)), max(fastest, s.Operations), max(each, y.each(s))
	}
	by, byEach, count := y.scale(most), y.scale(each), figure.Scale{Factor: 1, Unit: things(f)}
	if fastest >= 1e5 {
		count = figure.Decimal(fastest, " "+things(f))
	}
	operations := func(s *analysis.Step) string { return count.Text(s.Operations) }
	all := []field[*analysis.Step]{
		{"!" + f.Load(), func(s *analysis.Step) string { return loadCell(f, s) }},
		{"!" + strings.TrimSpace(by.Unit), func(s *analysis.Step) string { return by.Text(y.of(s)) }},
		{"95% interval", func(s *analysis.Step) string { low, high := y.ends(s); return span(low, high, by.Text) }},
	}
	if f.Measure == analysis.Rate {
		all[1].text, all[1].head = operations, "!"+strings.TrimSpace(count.Unit)
	} else {
		all = append(all, field[*analysis.Step]{"!" + strings.TrimSpace(count.Unit), operations})
	}
	all = append(all, field[*analysis.Step]{".maximum", func(s *analysis.Step) string {
		if f.Measure == analysis.Rate && s.Peak != nil {
			return count.Text(s.Peak.Operations) + " after " + unit.Seconds(s.Peak.After)
		}
		return peakText(s, by.Text)
	}})
	return append(all, field[*analysis.Step]{"." + strings.TrimSpace(byEach.Unit) + " each",
		func(s *analysis.Step) string { return byEach.Text(y.each(s)) }})
}

// peakText is the highest throughput of a step, and its time.
func peakText(s *analysis.Step, text func(float64) string) string {
	if s.Peak == nil {
		return "-"
	}
	return text(s.Peak.Throughput) + " after " + unit.Seconds(s.Peak.After)
}

// latencyFields are the latencies of operations.
func latencyFields(f *analysis.Findings) []field[*analysis.Step] {
	slowest := 0.0
	for _, s := range steps(f) {
		if s.Latency != nil {
			slowest = max(slowest, s.Latency.P50)
		}
	}
	by := figure.Seconds(slowest)
	column := func(head string, of func(*analysis.Step) *analysis.Quantiles, which func(*analysis.Quantiles) float64) field[*analysis.Step] {
		return field[*analysis.Step]{head + " " + by.Unit, func(s *analysis.Step) string {
			if of(s) == nil {
				return "-"
			}
			return by.Text(which(of(s)))
		}}
	}
	p50 := func(q *analysis.Quantiles) float64 { return q.P50 }
	latency := func(s *analysis.Step) *analysis.Quantiles { return s.Latency }
	return []field[*analysis.Step]{
		column("!p50", latency, p50),
		column(".p95", latency, func(q *analysis.Quantiles) float64 { return q.P95 }),
		column("!p99", latency, func(q *analysis.Quantiles) float64 { return q.P99 }),
		column(".p99.9", latency, func(q *analysis.Quantiles) float64 { return q.P999 }),
		column(".max", latency, func(q *analysis.Quantiles) float64 { return q.Max }),
		column(".first byte", func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte }, p50),
	}
}

// quantileSection is the table of the latencies of operations, step by step. It is empty if only
// their mean is known.
func quantileSection(f *analysis.Findings) section {
	s := section{ID: "quantiles", Title: "Latency of operations", Note: "Of operations that succeeded in the measurement time of a step."}
	var slowest float64
	for _, x := range steps(f) {
		if x.Latency != nil {
			slowest = max(slowest, x.Latency.P50)
		}
	}
	if slowest <= 0 {
		return s
	}
	by := figure.Seconds(slowest)
	fields := []field[*analysis.Step]{{f.Load(), func(x *analysis.Step) string { return loadCell(f, x) }}}
	for _, c := range []struct {
		head string
		of   func(*analysis.Quantiles) float64
	}{
		{"mean", func(q *analysis.Quantiles) float64 { return q.Mean }}, {"p50", func(q *analysis.Quantiles) float64 { return q.P50 }},
		{"p90", func(q *analysis.Quantiles) float64 { return q.P90 }}, {"p95", func(q *analysis.Quantiles) float64 { return q.P95 }},
		{"p99", func(q *analysis.Quantiles) float64 { return q.P99 }}, {"p99.9", func(q *analysis.Quantiles) float64 { return q.P999 }},
		{"max", func(q *analysis.Quantiles) float64 { return q.Max }},
	} {
		fields = append(fields, field[*analysis.Step]{c.head + " " + by.Unit, func(x *analysis.Step) string {
			if x.Latency == nil {
				return "-"
			}
			return by.Text(c.of(x.Latency))
		}})
	}
	tabulate(&s, steps(f), func(x *analysis.Step) bool { return isBest(f, x) }, fields)
	return s
}

// pointSection is the table of the points of a curve that was read from a table: the yield of each
// point and of each client. Columns without data in that table are left out.
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
	add := func(known bool, head string, text func(*analysis.Step) string) {
		if known {
			fields = append(fields, field[*analysis.Step]{"!" + head, text})
		}
	}
	add(true, f.Load(), func(s *analysis.Step) string {
		if f.Open() {
			return strconv.FormatFloat(s.Rate, 'g', 6, 64)
		}
		return strconv.FormatFloat(s.ActiveClients, 'g', 6, 64)
	})
	add(true, byMost.Unit, func(s *analysis.Step) string { return byMost.Text(y.of(s)) })
	add(spread, "95% interval", func(s *analysis.Step) string { low, high := y.ends(s); return span(low, high, byMost.Text) })
	add(!f.Open(), byEach.Unit+" each", func(s *analysis.Step) string { return byEach.Text(y.each(s)) })
	add(timed, "latency", func(s *analysis.Step) string {
		if s.Latency == nil {
			return "-"
		}
		return unit.Seconds(s.Latency.Mean)
	})
	add(errors, "errors", func(s *analysis.Step) string { return unit.Percent(s.ErrorRatio) })
	add(true, "<note", func(s *analysis.Step) string { return remark(f, s) })
	s := section{ID: "steps", Title: "Points", Note: "What the table says, and what each client got of it."}
	tabulate(&s, steps(f), func(x *analysis.Step) bool { return isBest(f, x) }, fields)
	return s
}

func failures(s *analysis.Step) string {
	if s.Bad() == 0 {
		return "0"
	}
	percent := strconv.FormatFloat(100*s.ErrorRatio, 'f', 1, 64) + "%"
	if s.ErrorRatio < 0.001 {
		percent = "<0.1%"
	}
	return fmt.Sprintf("%s (%s)", whole(s.Bad()), percent)
}

// remark marks the best step, the steps that cannot be distinguished from it, and the step next to
// the knee.
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

func partSection(id, title string, parts []analysis.Part) section {
	s := section{ID: id, Title: title, Note: "Over the measurement times of all steps.",
		table: table{Head: heads("<name", "throughput", "operations/s", "moved", "done", "failed", "p50", "p99", ".max", ".<note")}}
	for _, p := range parts {
		q, remarks := took(p.Latency), classes(p.ErrorsBy)
		if p.Wrong > 0 {
			remarks = strings.TrimPrefix(remarks+", ", ", ") + whole(p.Wrong) + " of those done had a wrong payload"
		}
		s.row(false, serverName(p.Name), unit.Bits(p.Throughput), unit.Count(p.Operations), amount(p.Moved), whole(p.Done),
			whole(p.Errors), q[0], q[1], q[3], remarks)
	}
	return s
}
