package table

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/table/header"
)

// A Column is a column of a table and its meaning.
type Column struct {
	Name      string    `json:"name"`
	Number    int       `json:"number"`              // from 1
	Quantity  string    `json:"quantity,omitempty"`  // such as latency; "": the name is not understood
	Statistic string    `json:"statistic,omitempty"` // mean, p95, ...; "": not stated
	Unit      string    `json:"unit,omitempty"`      // as written
	Scope     string    `json:"scope,omitempty"`     // client or item; "": a total
	Used      bool      `json:"used"`
	Fact      fact.Fact `json:"fact"` // use of the column, or the reason against it

	reading header.Reading
	kind    Kind // valid if the reading is usable, or the column was chosen
	chosen  bool
}

// usable returns the kind of a column with a reading, or the reason why it is not used.
func usable(r header.Reading) (k Kind, reason string) {
	k, known := map[header.Quantity]Kind{
		header.Clients: Clients, header.Throughput: Throughput, header.Rate: Rate, header.Latency: Latency, header.Errors: Errors,
		header.ErrorRatio: ErrorRatio, header.SuccessRatio: ErrorRatio, header.Done: Done, header.Time: Time, header.Step: Step,
	}[r.Quantity]
	mean := r.Statistic == "" || r.Statistic == header.Mean && k != Errors && k != Done
	switch {
	case r.Quantity == "":
		return k, "unknown"
	case r.Quantity == header.Ambiguous || r.Quantity == header.Span && r.Scope == "":
		return k, "ambiguous"
	case r.Scope == header.PerClient || r.Scope == header.PerItem && k != Latency:
		return k, "quotient"
	case !known:
		return k, "other"
	case !mean:
		return k, "statistic"
	}
	return k, ""
}

// recognize determines the columns of the kinds that were not chosen by options, from their names.
func (t *Table) recognize(head line, rows []line, places map[Kind]int, o Options) error {
	candidates := map[Kind][]int{}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.chosen {
			continue
		}
		kind, reason := usable(c.reading)
		if kind == Errors && unitsInCells(ErrorRatio, rows, i) {
			kind = ErrorRatio
		}
		c.kind = kind
		switch {
		case reason != "":
			c.refuse(why(c.reading, reason))
		case kind == Time && daysOnly(rows, i):
			c.refuse(fact.New("column.not_used.days"))
		case o.Columns[kind] != "":
			c.refuse(fact.New("column.not_used.second", "other", t.Columns[places[kind]].Name))
		default:
			candidates[kind] = append(candidates[kind], i)
		}
	}
	var undecided error
	for k := range kinds {
		if len(candidates[k]) == 0 {
			continue
		}
		place, err := t.best(k, candidates[k], head, rows, o)
		switch {
		case err != nil && k == Clients:
			return err
		case err != nil && undecided == nil:
			undecided = err
		case err == nil && place >= 0:
			places[k] = place
		}
	}
	t.dropWeakRate(places)
	if has(places, Throughput) || has(places, Rate) || has(places, Latency) {
		return nil
	}
	return undecided
}

func has(places map[Kind]int, k Kind) bool {
	_, ok := places[k]
	return ok
}

// best returns the best column of a kind, -1 if all lack a unit. Two columns of the same rank are an
// error, and are not used.
func (t *Table) best(k Kind, all []int, head line, rows []line, o Options) (int, error) {
	rank := map[int]int{}
	for _, i := range all {
		rank[i] = t.rank(k, i, rows, o)
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	first := all[0]
	var undecided error
	for _, i := range all {
		switch {
		case rank[i] < 0:
			t.Columns[i].refuse(fact.New("column.not_used.no_unit", "unit", exampleUnit(k)))
		case i != first && rank[i] == rank[first]:
			c := head.cells[i]
			if undecided == nil {
				undecided = t.wrong(position{head.number, c.column}, "%s and %s may both be the column for %s: choose one with --%s, "+
					"by name or by number (%d or %d)", quote(head.cells[first].text), quote(c.text), k, k, first+1, i+1)
			}
			t.Columns[i].refuse(fact.New("column.not_used.undecided", "other", t.Columns[first].Name, "option", k.String()))
			t.Columns[first].refuse(fact.New("column.not_used.undecided", "other", c.text, "option", k.String()))
		case i != first:
			t.Columns[i].refuse(fact.New("column.not_used.second", "other", t.Columns[first].Name))
		}
	}
	if rank[first] < 0 {
		return -1, nil
	}
	return first, undecided
}

// rank orders the columns of a kind: the names that weir writes, then values of all operations
// before values of some, then a stated unit. A column without the unit that it needs is below 0.
func (t *Table) rank(k Kind, i int, rows []line, o Options) int {
	r := t.Columns[i].reading
	if needsUnit(k) && r.Unit == "" && unitFor(k, o.Unit) == "" && !unitsInCells(k, rows, i) {
		return -1
	}
	rank := 8 * ownName(k, t.Columns[i].Name)
	if r.Of == "" {
		rank += 4
	}
	if !r.Part {
		rank += 2
	}
	if k == Latency && r.Statistic == header.Mean {
		rank++
	}
	return rank
}

func needsUnit(k Kind) bool { return k == Throughput || k == Rate || k == Latency }

func exampleUnit(k Kind) string {
	switch k {
	case Latency:
		return "ms"
	case Rate:
		return "/s"
	}
	return "Gbit/s"
}

// dropWeakRate leaves out the rate of an unknown thing if the table has a throughput.
func (t *Table) dropWeakRate(places map[Kind]int) {
	i, ok := places[Rate]
	if ok && has(places, Throughput) && !t.Columns[i].chosen && t.Columns[i].reading.Of != "" {
		t.Columns[i].refuse(fact.New("column.not_used.unknown", "word", t.Columns[i].reading.Of))
		delete(places, Rate)
	}
}

// ownName returns 2 for the name that curve.csv uses for the kind, 1 for the plainest possible name,
// and 0 for other names.
func ownName(k Kind, name string) int {
	switch strings.ToLower(name) {
	case [...]string{"active_clients", "throughput_bytes_per_second", "operations_per_second", "latency_mean_seconds", "errors", "error_ratio",
		"done", "time", "step"}[k]:
		return 2
	case k.String():
		return 1
	}
	return 0
}

// refuse states that a column is not used.
func (c *Column) refuse(why fact.Fact) { c.Used, c.Fact = false, why }

// why returns the fact that a column with a reading is not used.
func why(r header.Reading, reason string) fact.Fact {
	switch reason {
	case "ambiguous":
		return fact.New("column.not_used.ambiguous")
	case "quotient":
		scope := r.Scope
		if scope == header.PerItem {
			scope = "operation"
		}
		return fact.New("column.not_used.quotient", "scope", scope)
	case "other":
		return fact.New("column.not_used.other", "quantity", quantityName(r.Quantity))
	case "statistic":
		return fact.New("column.not_used.statistic", "statistic", statisticName(r.Statistic), "quantity", quantityName(r.Quantity))
	}
	return fact.New("column.not_used.unknown", "word", r.Unknown)
}

// accept records the use of a column.
func (c *Column) accept(k Kind, unit string) {
	q := quantityName(header.Quantity(k.String()))
	switch {
	case c.reading.Quantity == header.SuccessRatio:
		q = "success ratio"
	case k == Rate && c.reading.Of != "":
		q = "rate of " + c.reading.Of
	}
	if s := c.reading.Statistic; s != "" && !c.chosen {
		q = statisticName(s) + " " + q
	}
	if c.Used, c.Unit = true, unit; unit != "" {
		q += ", " + unit
	}
	if c.chosen {
		c.Fact = fact.New("column.chosen", "quantity", q, "option", k.String())
		return
	}
	c.Fact = fact.New("column.used", "quantity", q)
}

func quantityName(q header.Quantity) string {
	if name, ok := map[header.Quantity]string{
		header.Clients: "number of clients", header.ErrorRatio: "error ratio", header.SuccessRatio: "success ratio",
		header.Errors: "number of errors", header.Done: "number of successful operations", header.Operations: "number of operations",
		header.Size: "amount of data", header.ErrorRate: "rate of errors", header.Arrivals: "rate of new clients",
		header.Step: "name of the step",
		header.Span: "time per client or operation",
	}[q]; ok {
		return name
	}
	return string(q)
}

func statisticName(s string) string {
	switch s {
	case header.Error:
		return "error bar"
	case header.Stddev:
		return "standard deviation"
	case header.Min:
		return "minimum"
	case header.Max:
		return "maximum"
	case header.Sum:
		return "running total"
	}
	if p, ok := strings.CutPrefix(s, "p"); ok {
		if _, err := strconv.ParseFloat(p, 64); err == nil {
			return p + "th percentile"
		}
	}
	return s
}
