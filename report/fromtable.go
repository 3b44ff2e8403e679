package report

import (
	"strconv"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

// pointTable is the table of the points of a curve that was read from a table:
// what each gave, and what each client got of it. Columns that the table does
// not tell are left out.
func pointTable(f *analysis.Findings) table {
	rate := f.Measure == analysis.Rate
	var most, each float64
	var timed, spread, errors bool
	for i := range f.Curve {
		s := &f.Curve[i]
		most, each = max(most, s.Throughput), max(each, s.PerClient)
		if rate {
			most, each = max(most, s.Operations), max(each, s.PerClientRate)
		}
		timed = timed || s.Latency != nil
		spread = spread || s.ThroughputLow != nil || s.OperationsLow != nil
		errors = errors || s.ErrorRatio > 0
	}
	byMost, byEach := figure.Bits(most), figure.Bits(each)
	if rate {
		byMost, byEach = figure.Decimal(most, "/s"), figure.Decimal(each, "/s")
		if each < 0.1 {
			byEach = figure.Scale{Factor: 60, Unit: "/min"}
		}
		if most < 0.1 {
			byMost = figure.Scale{Factor: 60, Unit: "/min"}
		}
	}
	t := table{head: []string{"clients", byMost.Unit, "95% interval", byEach.Unit + " each", "latency", "errors", ""}}
	for i := range f.Curve {
		s := &f.Curve[i]
		row := []string{strconv.FormatFloat(s.ActiveClients, 'g', 6, 64), byMost.Text(s.Throughput), span(byMost, s.ThroughputLow, s.ThroughputHigh), byEach.Text(s.PerClient), "-", unit.Percent(s.ErrorRatio), remark(f, s)}
		if rate {
			row[1], row[2], row[3] = byMost.Text(s.Operations), span(byMost, s.OperationsLow, s.OperationsHigh), byEach.Text(s.PerClientRate)
		}
		if s.Latency != nil {
			row[4] = unit.Seconds(s.Latency.Mean)
		}
		t.rows = append(t.rows, row)
	}
	return t.without(map[int]bool{2: !spread, 4: !timed, 5: !errors})
}

// without leaves columns out.
func (t table) without(columns map[int]bool) table {
	keep := func(cells []string) (out []string) {
		for i, c := range cells {
			if !columns[i] {
				out = append(out, c)
			}
		}
		return out
	}
	out := table{head: keep(t.head), left: t.left}
	for _, row := range t.rows {
		out.rows = append(out.rows, keep(row))
	}
	return out
}

// mostQuarters is how many subintervals a terminal shows.
const mostQuarters = 40

// fromTable writes the points, and the quarters of steps if there are any.
func (p printer) fromTable(f *analysis.Findings) {
	p.table(pointTable(f))
	p.line("")
	if n := len(f.Subintervals); n == 0 || n > mostQuarters {
		return
	}
	t := table{head: []string{"step", "part", "clients", "throughput", "each client", ""}}
	for _, x := range f.Subintervals {
		row := []string{strconv.Itoa(x.Step), strconv.Itoa(x.Number), strconv.FormatFloat(x.Clients, 'g', 6, 64), unit.Bits(x.Throughput), unit.Bits(x.PerClient), x.Name}
		if f.Measure == analysis.Rate {
			row[3], row[4] = unit.Count(x.Operations)+"/s", "-"
		}
		t.rows = append(t.rows, row)
	}
	p.line("Steps in four equal parts")
	p.table(t)
	p.line("")
}

// models writes all models: which of them is the best is a matter of a few
// points, and others may want to be compared with an older figure.
func (p printer) models(f *analysis.Findings) {
	all := models(f)
	if len(all) == 0 {
		return
	}
	t := table{head: []string{"model", "weight", "R2", "maximum in the tested range"}}
	for _, m := range all {
		t.rows = append(t.rows, []string{m.Name, unit.Percent(m.Weight), r2(m.R2), maximum(f, m)})
	}
	p.table(t)
	p.line("")
}

// pointSection is the table of points for a page.
func pointSection(f *analysis.Findings) section {
	s := section{ID: "steps", Title: "Points", Note: "What the table says, and what each client got of it."}
	s.fill(pointTable(f))
	for i := range s.Rows {
		s.Rows[i].Best = isBest(f, &f.Curve[i])
	}
	return s
}

// tableCards are the figures on top of the page of a table.
func tableCards(f *analysis.Findings, best *analysis.Step) []card {
	all := []card{{"Best", yieldText(f, best.Throughput, best.Operations), "with " + at(f, best)}}
	all = append(all, rangeCard(f)...)
	if c, ok := kneeCard(f); ok {
		all = append(all, c)
	}
	if best.Latency != nil {
		all = append(all, card{"Latency there", unit.Seconds(best.Latency.Mean), "mean"})
	}
	return all
}
