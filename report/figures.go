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
			nameAxes(f, &group[i])
		}
	}
	return p
}

// All returns the figures in the order in which they are shown.
func (p Plots) All() []figure.Figure {
	return append(append(append([]figure.Figure{}, p.Load...), p.Time...), p.Distributions...)
}

// nameAxes says what axes show that are labeled with a unit only.
func nameAxes(f *analysis.Findings, c *figure.Figure) {
	if c.Y.Name != "" {
		return
	}
	yield := "throughput"
	if f.Measure == analysis.Rate {
		yield = "operations"
	}
	c.Y.Name = map[string]string{
		"curve": yield, "client": yield + " per client", "latency": "latency", "firstbyte": "time to first byte", "redirect": "time to redirect",
		"errors": "failed", "cpu": "CPU", "time": yield, "ratetime": "rate", "latencytime": "latency",
		"cputime": "CPU", "disk": "disk traffic", "net": "network traffic",
	}[c.ID]
	if c.Y.Name == "" && len(c.Columns) > 0 {
		c.Y.Name = "count"
	}
}
