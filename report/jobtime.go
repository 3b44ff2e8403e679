package report

import (
	"fmt"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

// jobTimeCharts plots what jobs did against time; none in runs without jobs.
func jobTimeCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if s == nil || !f.OfJobs() {
		return nil
	}
	running := figure.Figure{ID: "jobtime", Title: "Running jobs against time",
		Lines: []figure.Line{timeLine(s, "running", 0, false, func(p *analysis.Point) float64 { return p.Jobs })}}
	running.Lines = append(running.Lines, timeLine(s, "computing", 2, false, func(p *analysis.Point) float64 { return p.Computing }))
	if highest(running.Lines[1:]) == 0 {
		running.Lines = running.Lines[:1]
	}
	running.Y = figure.LinearAxis("jobs", figure.Decimal(0, ""), highest(running.Lines))
	running.Desc = "Jobs that were running, and how many of them computed, mean of each second: the second over the first is the CPU efficiency, the second alone the cluster throughput. " +
		course("The number of jobs", running.Lines[0].Points, unit.Significant) + inShade
	events := figure.Figure{ID: "eventtime", Title: "Events against time",
		Lines: []figure.Line{timeLine(s, "events", 0, false, func(p *analysis.Point) float64 { return p.Events })}}
	events.Y = scaled(events.Lines, decimal(" events/s"))
	events.Desc = "Events that all jobs were through with each second. " + course("Their number", events.Lines[0].Points, perSecond)
	ended := figure.Figure{ID: "endedtime", Title: "Jobs that ended against time", Lines: []figure.Line{
		timeLine(s, "came to their end", 0, false, func(p *analysis.Point) float64 { return p.JobsDone }),
		timeLine(s, "crashed or failed", 1, false, func(p *analysis.Point) float64 { return p.JobsLost })}}
	ended.Y = scaled(ended.Lines, decimal(" jobs/s"))
	ended.Desc = "Jobs that came to their end each second, and those that crashed or failed. Lost: " + bursts(ended.Lines[1].Points) + "."
	return []figure.Figure{running, events, ended}
}

// jobHistograms are how long jobs took: in the best step and the last one, or
// in all others.
func jobHistograms(f *analysis.Findings, s *analysis.Series, shown bool) []figure.Figure {
	var all []figure.Figure
	for _, d := range chosenDistributions(f, s.JobTimes, shown) {
		c := distributionChart(d.of, fmt.Sprintf("jobs%d", d.of.Step), "Job wall clock time with "+at(f, d.step), "job")
		all = append(all, c)
	}
	return all
}
