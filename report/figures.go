package report

import (
	"weir/analysis"
	"weir/figure"
)

// Plots are the figures of one run, by what lies on their x axis. Every
// renderer draws these: the report, the live page, and those for papers.
type Plots struct {
	Load          []figure.Figure // each step at its load, the curve first
	Time          []figure.Figure // each second of the run
	Distributions []figure.Figure // how long operations took
}

// Figures makes the figures of f, and of its seconds where s is not nil. Those
// that nothing is known for are left out. Each bears the stamp of validity.
// Neither argument is changed.
func Figures(f *analysis.Findings, s *analysis.Series) Plots {
	f = inOrder(f)
	p := Plots{Load: curveCharts(f), Time: timeCharts(f, s), Distributions: distributionCharts(f, s)}
	for _, group := range [][]figure.Figure{p.Load, p.Time, p.Distributions} {
		for i := range group {
			group[i].Stamp = f.Validity.Status
		}
	}
	return p
}

// All returns the figures in the order in which they are shown.
func (p Plots) All() []figure.Figure {
	return append(append(append([]figure.Figure{}, p.Load...), p.Time...), p.Distributions...)
}
