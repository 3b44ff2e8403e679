package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/shape"
	given "weir/loadtest/analysis/table"
)

// steps returns the rows of each step; of the whole table without such a column.
func (r *reader) steps() [][]int {
	all := make([][]int, max(1, len(r.Steps)))
	for i := range r.Len() {
		at := 0
		if v := r.Value(given.Step, i); v.Known {
			at = int(v.X) - 1
		}
		all[at] = append(all[at], i)
	}
	return all
}

// spans returns how many seconds each row represents: to the next row of its step, the last one as long as the one
// before; nil without times. A step of one row represents one second.
func (r *reader) spans() []float64 {
	if !r.Has(given.Time) {
		return nil
	}
	out := make([]float64, r.Len())
	for _, rows := range r.steps() {
		for j, i := range rows {
			switch {
			case j+1 < len(rows):
				out[i] = r.Value(given.Time, rows[j+1]).X - r.Value(given.Time, i).X
			case j > 0:
				out[i] = out[rows[j-1]]
			default:
				out[i] = 1
			}
		}
	}
	return out
}

// pieces are where rows of one step lie in it.
func (r *reader) pieces(rows []int) []piece {
	lengths := make([]float64, len(rows))
	for j, i := range rows {
		lengths[j] = r.seconds[i]
	}
	return pieces(lengths)
}

// subintervals cuts each step into four parts of equal length. A row that two of them share counts for both, each
// with its part.
func (r *reader) subintervals() []Subinterval {
	all := []Subinterval{}
	for n, rows := range r.steps() {
		var w [quarters]window
		for j, p := range r.pieces(rows) {
			i := rows[j]
			p.shares(func(q int, share float64) {
				seconds := r.seconds[i] * share
				w[q].seconds += seconds
				w[q].clients += seconds * r.Value(given.Clients, i).X
				w[q].moved += seconds * known0(r.Value(given.Throughput, i))
				w[q].done += seconds * known0(r.Value(given.Rate, i))
			})
		}
		for q := range w {
			all = append(all, w[q].subinterval(n+1, q))
		}
	}
	return all
}

func known0(v given.Value) float64 {
	if !v.Known {
		return 0
	}
	return v.X
}

// quarters makes the points of steps, of their two middle quarters or of each quarter for itself. The spread is that
// of the rows whose middle lies in it.
func (r *reader) quarters(subs []Subinterval, points string) []Step {
	all := []Step{}
	for n, rows := range r.steps() {
		cut := r.pieces(rows)
		within := func(from, to float64) (in []int) {
			for j, p := range cut {
				if middle := (p.from + p.to) / 2; middle >= from && middle < to {
					in = append(in, rows[j])
				}
			}
			return in
		}
		mine := subs[quarters*n : quarters*n+quarters]
		if points == PointsOfSteps {
			all = append(all, r.pointOf(n+1, within(1, 3), mine[1:3]))
			continue
		}
		for q := range quarters {
			all = append(all, r.pointOf(quarters*n+q+1, within(float64(q), float64(q+1)), mine[q:q+1]))
		}
	}
	return all
}

// pointOf makes a point of some quarters of a step; rows are those in them.
func (r *reader) pointOf(number int, rows []int, of []Subinterval) Step {
	s := r.point(number, rows)
	s.Duration, s.ActiveClients, s.Throughput = 0, 0, 0
	operations := 0.0
	for _, x := range of {
		s.Duration += x.Seconds
		s.ActiveClients += x.Clients * x.Seconds
		s.Throughput += x.Throughput * x.Seconds
		operations += x.Operations * x.Seconds
	}
	s.ActiveClients, s.Throughput = ratio(s.ActiveClients, s.Duration), ratio(s.Throughput, s.Duration)
	if r.Has(given.Rate) {
		s.Operations = ratio(operations, s.Duration)
	}
	s.Clients = int(math.Round(s.ActiveClients))
	s.PerClient, s.PerClientRate = ratio(s.Throughput, s.ActiveClients), ratio(s.Operations, s.ActiveClients)
	return s
}

// validity checks what a table can be checked for. That is too little to call it valid.
func (r *reader) validity(f *Findings) Validity {
	checks := []Check{r.checkRows(f), r.checkErrors(f), r.checkLittle(f)}
	for _, name := range []string{"clock", "verification", "both ends agree", "generator", "steadiness", "quiet machines", "monitoring"} {
		checks = append(checks, Check{Name: name, Status: Skipped, Detail: "a table has no data for it"})
	}
	return judged(Unchecked, checks)
}

func (r *reader) checkRows(f *Findings) Check {
	var loads []float64
	for i := range f.Curve {
		loads = append(loads, f.Curve[i].ActiveClients)
	}
	slices.SortFunc(loads, cmp.Compare[float64])
	different := len(slices.Compact(loads))
	c := Check{Name: "data", Status: OK, Detail: fmt.Sprintf("%s make %s at %s",
		say.Plural(r.Len(), "row"), say.Plural(len(f.Curve), "point"), say.Plural(different, "different load"))}
	if different < shape.LeastLoads {
		c.note(fmt.Sprintf("whether the curve has a knee, which needs %d different loads", shape.LeastLoads), "measure more loads")
	}
	return c
}

func (r *reader) checkErrors(f *Findings) Check {
	c := Check{Name: "errors", Status: OK}
	var worst *Step
	for s := range each(f.Curve) {
		if s.errorRatioGiven && (worst == nil || s.ErrorRatio > worst.ErrorRatio) {
			worst = s
		}
	}
	if worst == nil {
		return c.skip("the table has no error ratio")
	}
	c.Detail = fmt.Sprintf("at most %s of the operations failed, at %s", unit.Percent(worst.ErrorRatio), f.at(worst))
	if worst.ErrorRatio > 0.01 {
		c.Status = Warn
	}
	return c
}

// impossible is the share of the clients' time above which operations took more of it than there was.
const impossible = 1.05

// checkLittle asks whether operations took more time than the clients had: with pauses they take less, so only that
// shows a mistake, such as a wrong unit.
func (r *reader) checkLittle(f *Findings) Check {
	c := Check{Name: "Little's law", Status: OK}
	var over []string
	known := 0
	for s := range each(f.Curve) {
		if s.Little != nil {
			known++
			if *s.Little > impossible {
				over = append(over, fmt.Sprintf("%s %.3g", f.at(s), *s.Little))
			}
		}
	}
	switch {
	case known == 0:
		c.Status, c.Detail = Skipped, "it needs a rate and a latency"
	case len(over) > 0:
		c.Status = Warn
		c.Detail = "rate x latency exceeds the number of clients: " + strings.Join(head(over, 4), ", ") + "; check the units"
	default:
		c.Detail = fmt.Sprintf("rate x latency does not exceed the number of clients at all %d points", known)
	}
	return c
}
