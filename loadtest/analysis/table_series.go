package analysis

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	given "weir/loadtest/analysis/table"
	"weir/loadtest/analysis/validity"
)

// steps returns the rows of each step, or of the whole table if it has no column of steps.
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

// spans returns the number of seconds that each row represents: the time to the next row of its
// step; the last row has the length of the row before. A step of one row represents one second.
// spans returns nil for a table without times.
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

// pieces returns the places of rows within their step.
func (r *reader) pieces(rows []int) []steps.Piece {
	lengths := make([]float64, len(rows))
	for j, i := range rows {
		lengths[j] = r.seconds[i]
	}
	return steps.Pieces(lengths)
}

// subintervals cuts each step into four parts of equal length. A row that lies in two parts counts
// for each of them with its share.
func (r *reader) subintervals() []steps.Subinterval {
	all := []steps.Subinterval{}
	for n, rows := range r.steps() {
		var w [steps.Quarters]steps.Stretch
		for j, p := range r.pieces(rows) {
			i := rows[j]
			p.Shares(func(q int, share float64) {
				seconds := r.seconds[i] * share
				w[q].Seconds += seconds
				w[q].Clients += seconds * r.Value(given.Clients, i).X
				w[q].Moved += seconds * known0(r.Value(given.Throughput, i))
				w[q].Done += seconds * known0(r.Value(given.Rate, i))
			})
		}
		for q := range w {
			all = append(all, w[q].Subinterval(n+1, q))
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

// quarters makes the points of steps, from their two middle quarters or from each quarter. The
// spread is computed from the rows whose middle lies in these quarters.
func (r *reader) quarters(subs []steps.Subinterval, points string) []*steps.Working {
	var all []*steps.Working
	for n, rows := range r.steps() {
		cut := r.pieces(rows)
		within := func(from, to float64) (in []int) {
			for j, p := range cut {
				if middle := (p.From + p.To) / 2; middle >= from && middle < to {
					in = append(in, rows[j])
				}
			}
			return in
		}
		mine := subs[steps.Quarters*n : steps.Quarters*n+steps.Quarters]
		if points == PointsOfSteps {
			all = append(all, r.pointOf(n+1, within(1, 3), mine[1:3]))
			continue
		}
		for q := range steps.Quarters {
			all = append(all, r.pointOf(steps.Quarters*n+q+1, within(float64(q), float64(q+1)), mine[q:q+1]))
		}
	}
	return all
}

// pointOf makes a point from some quarters of a step; rows are the rows in these quarters.
func (r *reader) pointOf(number int, rows []int, of []steps.Subinterval) *steps.Working {
	s := r.point(number, rows)
	s.Duration, s.ActiveClients, s.Throughput = 0, 0, 0
	operations := 0.0
	for _, x := range of {
		s.Duration += x.Seconds
		s.ActiveClients += x.Clients * x.Seconds
		s.Throughput += x.Throughput * x.Seconds
		operations += x.Operations * x.Seconds
	}
	s.ActiveClients, s.Throughput = stats.Ratio(s.ActiveClients, s.Duration), stats.Ratio(s.Throughput, s.Duration)
	if r.Has(given.Rate) {
		s.Operations = stats.Ratio(operations, s.Duration)
	}
	s.Clients = int(math.Round(s.ActiveClients))
	s.PerClient, s.PerClientRate = stats.Ratio(s.Throughput, s.ActiveClients), stats.Ratio(s.Operations, s.ActiveClients)
	return s
}

// validity runs the checks for which a table has data. They are too few to call the table valid.
func (r *reader) validity(curve *steps.Curve) validity.Validity {
	checks := []validity.Check{r.checkRows(curve), r.checkErrors(curve), r.checkLittle(curve)}
	for _, name := range []string{"clock", "verification", "both ends agree", "generator", "steadiness", "quiet machines", "monitoring"} {
		c := validity.Check{Name: name}
		checks = append(checks, c.Skip(fact.New("check.table.no_data")))
	}
	return validity.Judged(validity.Unchecked, checks)
}

func (r *reader) checkRows(curve *steps.Curve) validity.Check {
	var loads []float64
	for i := range curve.Steps {
		loads = append(loads, curve.Steps[i].ActiveClients)
	}
	slices.SortFunc(loads, cmp.Compare[float64])
	different := len(slices.Compact(loads))
	c := validity.Check{Name: "data", Status: validity.OK}
	c.Add(fact.New("check.table.points", "rows", r.Len(), "points", len(curve.Steps), "loads", different))
	if different < shape.LeastLoads {
		c.Note(fact.New("check.table.few_loads", "least", shape.LeastLoads), fact.New("remedy.more_loads"))
	}
	return c
}

func (r *reader) checkErrors(curve *steps.Curve) validity.Check {
	c := validity.Check{Name: "errors", Status: validity.OK}
	var worst *steps.Working
	for _, s := range curve.Steps {
		if s.ErrorRatioGiven && (worst == nil || s.ErrorRatio > worst.ErrorRatio) {
			worst = s
		}
	}
	if worst == nil {
		return c.Skip(fact.New("check.table.no_error_ratio"))
	}
	c.Add(fact.New("check.table.errors", "share", worst.ErrorRatio, "load", curve.At(worst)))
	if worst.ErrorRatio > 0.01 {
		c.Status = validity.Warn
	}
	return c
}

// impossible is the ratio of the time of operations to the time of the clients above which the data
// is certainly wrong.
const impossible = 1.05

// checkLittle checks whether operations took more time than the clients had. With pauses they take
// less, so only an excess shows a mistake, such as a wrong unit.
func (r *reader) checkLittle(curve *steps.Curve) validity.Check {
	c := validity.Check{Name: "Little's law", Status: validity.OK}
	var over []fact.Fact
	known := 0
	for _, s := range curve.Steps {
		if s.Little != nil {
			known++
			if *s.Little > impossible {
				over = append(over, fact.New("check.table.too_much_time", "load", curve.At(s), "times", *s.Little))
			}
		}
	}
	switch {
	case known == 0:
		return c.Skip(fact.New("check.table.no_rate_or_latency"))
	case len(over) > 0:
		c.Status = validity.Warn
		c.AddSome(over)
		c.Add(fact.New("check.table.units"))
	default:
		c.Add(fact.New("check.table.time", "points", known))
	}
	return c
}

// unaccounted is the share of the clients' time beyond which a table gets a note if operations
// account for no more than the rest.
const unaccounted = 0.1

// warnIdle adds a note about the point at which operations account for the smallest share of the
// clients' time: the clients paused, or the columns do not belong together.
func (r *reader) warnIdle(f *Findings) {
	var worst *steps.Figures
	for i := range f.Curve {
		if s := &f.Curve[i]; s.Little != nil && (worst == nil || *s.Little < *worst.Little) {
			worst = s
		}
	}
	if worst == nil || *worst.Little >= 1-unaccounted {
		return
	}
	f.addFact("warning.time_unaccounted", "clients", worst.ActiveClients, "latency", worst.Latency.Mean, "rate", worst.Operations,
		"possible", worst.ActiveClients/worst.Latency.Mean, "share", 1-*worst.Little)
}
