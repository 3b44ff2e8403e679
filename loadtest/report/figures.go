package report

import (
	"slices"

	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// Plots are the figures of one run, grouped by their x axis. Every renderer draws these figures:
// the report, the live page, and the figures for papers.
type Plots struct {
	Matrix        []figure.Figure // links of a data challenge; empty in other runs
	Challenge     []figure.Figure // rates of these links against time
	Jobs          []figure.Figure // figures of jobs, each step at its load; empty in runs without jobs
	Load          []figure.Figure // each step at its load, the curve first
	Limits        []figure.Figure // use of resources by the steps, against load
	Time          []figure.Figure // each second of the run
	Distributions []figure.Figure // durations of operations
	Papers        []figure.Figure // each step at its load as well: usual in papers; the report has tables instead
	Backends      []figure.Figure // servers that share the load, stacked and beside each other
	Servers       []figure.Figure // data servers beside each other
	Links         []figure.Figure // emulated links, against load and time
	Parts         []figure.Figure // the four parts of the steps, if workers are jobs of a batch system
	Hosts         []figure.Figure // the busiest hosts beside each other

	OtherSteps []figure.Figure // durations of operations in the steps that Distributions leaves out
	EachHost   []HostPlots     // every host by itself, the busiest first
}

// HostPlots are the figures of one host.
type HostPlots struct {
	Host, Role string
	Words      string // its usage: mean and maximum
	Figures    []figure.Figure
}

// Figures makes the figures of f, and of its seconds if s is not nil. Figures without known values
// are left out. Each figure bears the stamp of validity. The arguments are not changed.
func Figures(f *analysis.Findings, s *analysis.Series) Plots {
	f = inOrder(f)
	p := Plots{Matrix: those(matrixChart(f)), Challenge: challengeCharts(f, s), Jobs: jobCharts(f), Load: curveCharts(f),
		Time: timeCharts(f, s), Distributions: distributionCharts(f, s),
		Papers:   paperCharts(f),
		Backends: backendCharts(f, s), Servers: serverCharts(f, s), Links: linkCharts(f, s), Parts: partCharts(f),
		Limits: those(resourceChart(f))}
	if s != nil {
		p.Hosts, p.EachHost = hostCharts(f, s), eachHost(f, s)
		p.OtherSteps = append(jobHistograms(f, s, false), histograms(f, s, false)...)
	}
	groups := [][]figure.Figure{p.Matrix, p.Challenge, p.Jobs, p.Load, p.Limits, p.Time, p.Distributions, p.Backends, p.Servers,
		p.Links, p.Hosts, p.Parts,
		p.OtherSteps, p.Papers}
	for _, h := range p.EachHost {
		groups = append(groups, h.Figures)
	}
	for _, group := range groups {
		for i := range group {
			group[i].Stamp = f.Validity.Status
		}
	}
	return p
}

// All returns the figures in the order in which they are shown, without Papers, and without
// OtherSteps and EachHost, which may contain hundreds of figures.
func (p Plots) All() []figure.Figure {
	return slices.Concat(p.Matrix, p.Challenge, p.Jobs, p.Load, p.Limits, p.Parts, p.Time, p.Distributions, p.Backends,
		p.Servers, p.Links, p.Hosts)
}
