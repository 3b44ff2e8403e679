package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// loadOf is the load of a step: clients or jobs, arrivals per second in the open model, and the number
// of the stage in a data challenge.
func loadOf(f *analysis.Findings, s *analysis.Step) float64 {
	if f.Challenge != nil {
		return float64(s.Step)
	}
	if f.Open() {
		return s.Rate
	}
	return float64(s.Clients)
}

// loadCell writes a step's load without its unit.
func loadCell(f *analysis.Findings, s *analysis.Step) string {
	return strconv.FormatFloat(loadOf(f, s), 'g', 6, 64)
}

// at writes a step's load: "64 clients"; "stage 2" of a data challenge.
func at(f *analysis.Findings, s *analysis.Step) string {
	if f.Challenge != nil {
		return fmt.Sprintf("stage %d", s.Step)
	}
	if x := loadOf(f, s); x != 1 || f.Open() {
		if x != math.Trunc(x) {
			return unit.Significant(x) + " " + f.Load()
		}
		return fmt.Sprintf("%g %s", x, f.Load())
	}
	return "1 " + strings.TrimSuffix(f.Load(), "s")
}

// clients writes a number of clients, or an arrival rate.
func clients(f *analysis.Findings, x float64) string {
	if f.Open() {
		return unit.Significant(x) + " " + f.Load()
	}
	if math.Round(x) == 1 {
		return "1 " + strings.TrimSuffix(f.Load(), "s")
	}
	return strconv.FormatFloat(math.Round(x), 'f', 0, 64) + " " + f.Load()
}

// where writes a number of clients, in the open model the load of a step.
func where(f *analysis.Findings, step, n int) string {
	if s := stepOf(f, step); s != nil && f.Open() {
		return at(f, s)
	}
	return clients(f, float64(n))
}

// steps returns the steps of the curve.
func steps(f *analysis.Findings) []*analysis.Step {
	all := make([]*analysis.Step, len(f.Curve))
	for i := range f.Curve {
		all[i] = &f.Curve[i]
	}
	return all
}

// find returns the first step for which is returns true, nil if there is no such step.
func find(f *analysis.Findings, is func(*analysis.Step) bool) *analysis.Step {
	if i := slices.IndexFunc(steps(f), is); i >= 0 {
		return &f.Curve[i]
	}
	return nil
}

// stepOf returns the step with that number, nil if it is not in the curve.
func stepOf(f *analysis.Findings, number int) *analysis.Step {
	return find(f, func(s *analysis.Step) bool { return s.Step == number })
}

// bestStep returns the step of the optimum.
func bestStep(f *analysis.Findings) *analysis.Step {
	return find(f, func(s *analysis.Step) bool { return isBest(f, s) })
}

func isBest(f *analysis.Findings, s *analysis.Step) bool {
	return f.Optimum != nil && s.Step == f.Optimum.Step
}

// reference returns the best step, or the last step if the best step is unknown.
func reference(f *analysis.Findings) *analysis.Step {
	if n := len(f.Curve); n > 0 {
		return cmp.Or(bestStep(f), &f.Curve[n-1])
	}
	return nil
}

// lightest returns the first of the steps with the least load. The curve must not be empty.
func lightest(f *analysis.Findings) *analysis.Step {
	return slices.MinFunc(steps(f), func(a, b *analysis.Step) int { return cmp.Compare(loadOf(f, a), loadOf(f, b)) })
}

// inOrder returns f with its steps sorted by load if the load changes its direction more than once
// after a rise: a table or a line that moves up and down is unreadable. Otherwise it returns f.
func inOrder(f *analysis.Findings) *analysis.Findings {
	turns, down := 0, false
	for i := 1; i < len(f.Curve); i++ {
		before, now := loadOf(f, &f.Curve[i-1]), loadOf(f, &f.Curve[i])
		if now != before && now < before != down {
			turns, down = turns+1, now < before
		}
	}
	if turns < 2 {
		return f
	}
	sorted := *f
	sorted.Curve = slices.Clone(f.Curve)
	slices.SortStableFunc(sorted.Curve, func(a, b analysis.Step) int { return cmp.Compare(loadOf(f, &a), loadOf(f, &b)) })
	return &sorted
}

// things returns the name of the things that are counted per second: files if whole files are
// moved, requests of jobs, or jobs if each job is a program.
func things(f *analysis.Findings) string {
	files := !slices.ContainsFunc(f.Kinds, func(k analysis.Part) bool { return k.Name != "read" && k.Name != "write" && k.Name != "copy" })
	switch {
	case f.OfJobs() && f.Measure == analysis.Rate:
		return "jobs/s"
	case f.OfJobs():
		return "requests/s"
	case f.Measure == analysis.Rate || !files:
		return "ops/s"
	}
	return "files/s"
}

// A yield is the measure by which steps are compared: throughput, or operations if no data is
// moved.
type yield struct {
	name  string                 // in lower case
	text  func(x float64) string // with its unit
	scale func(most float64) figure.Scale
	of    func(*analysis.Step) float64              // of all clients
	each  func(*analysis.Step) float64              // of one client
	ends  func(*analysis.Step) (low, high *float64) // of the 95% interval of of; nil: unknown
}

// axis is the axis of lines of yields, from zero.
func (y *yield) axis(lines []figure.Line) figure.Axis { return scaled(lines, y.scale) }

func yieldOf(f *analysis.Findings) yield {
	if f.Measure != analysis.Rate {
		return yield{
			name: "throughput", text: unit.Bits, scale: figure.Bits,
			of: func(s *analysis.Step) float64 { return s.Throughput }, each: func(s *analysis.Step) float64 { return s.PerClient },
			ends: func(s *analysis.Step) (low, high *float64) { return s.ThroughputLow, s.ThroughputHigh },
		}
	}
	y := yield{
		name: "operations", text: func(x float64) string { return unit.Count(x) + " " + things(f) }, scale: decimal(" " + things(f)),
		of: func(s *analysis.Step) float64 { return s.Operations }, each: func(s *analysis.Step) float64 { return s.PerClientRate },
		ends: func(s *analysis.Step) (low, high *float64) { return s.OperationsLow, s.OperationsHigh },
	}
	if f.OfJobs() {
		y.name = "jobs"
	}
	return y
}

// yieldText formats the measure by which steps are compared, with its unit.
func yieldText(f *analysis.Findings, throughput, operations float64) string {
	if f.Measure == analysis.Rate {
		return unit.Count(operations) + " " + things(f)
	}
	return unit.Bits(throughput)
}

// perSecond formats a rate whose subject is named elsewhere.
func perSecond(x float64) string { return unit.Count(x) + "/s" }

// whole writes a count with three digits.
func whole[N int | int64](n N) string { return unit.Count(float64(n)) }

// amount writes an amount of data.
func amount(n int64) string { return unit.Bytes(float64(n)) }

// known returns the value of p, and whether p is not nil.
func known(p *float64) (x float64, ok bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}

// orDash formats the value of p, or returns a dash if p is nil.
func orDash(p *float64, text func(float64) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}

// span writes an interval, with a common unit only once.
func span(low, high *float64, text func(float64) string) string {
	if low == nil || high == nil {
		return "-"
	}
	from, to := text(*low), text(*high)
	if number, unit, ok := strings.Cut(from, " "); ok && strings.HasSuffix(to, " "+unit) {
		from = number
	}
	return from + " to " + to
}

// took formats p50, p99, p99.9 and the maximum of latencies; without latencies, it returns dashes.
func took(q *analysis.Quantiles) [4]string {
	if q == nil {
		return [4]string{"-", "-", "-", "-"}
	}
	return [4]string{unit.Seconds(q.P50), unit.Seconds(q.P99), unit.Seconds(q.P999), unit.Seconds(q.Max)}
}

// counted writes "1 operation", "20.6 k operations".
func counted(n int64, what string) string {
	return whole(n) + " " + say.Either(int(min(n, 2)), what, what+"s")
}

// sums returns the number of operations of all steps that ended, and the number of them that failed
// or had a wrong payload.
func sums(f *analysis.Findings) (ended, failed int64) {
	for _, s := range steps(f) {
		ended, failed = ended+s.Done+s.Errors, failed+s.Bad()
	}
	return ended, failed
}
