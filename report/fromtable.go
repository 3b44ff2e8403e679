package report

import (
	"strconv"

	"weir/analysis"
	"weir/internal/unit"
)

// mostQuarters is how many subintervals a terminal shows.
const mostQuarters = 40

// fromTable writes the points, and the quarters of steps if there are any.
func (p printer) fromTable(f *analysis.Findings) {
	points := pointSection(f)
	p.table(&points.table)
	p.line("")
	if n := len(f.Subintervals); n == 0 || n > mostQuarters {
		return
	}
	t := table{Head: heads("step", "part", "clients", "throughput", "each client", "<")}
	for _, x := range f.Subintervals {
		gives, each := unit.Bits(x.Throughput), unit.Bits(x.PerClient)
		if f.Measure == analysis.Rate {
			gives, each = perSecond(x.Operations), "-"
		}
		t.row(false, strconv.Itoa(x.Step), strconv.Itoa(x.Number), strconv.FormatFloat(x.Clients, 'g', 6, 64), gives, each, x.Name)
	}
	p.line("Steps in four equal parts")
	p.table(&t)
	p.line("")
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
