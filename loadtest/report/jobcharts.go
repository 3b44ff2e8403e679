package report

import (
	"fmt"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report/figure"
)

// jobCharts plots the figures of jobs against the number of jobs; it returns nothing for runs
// without jobs. The first two are the figures of the RHUL report of 2009.
func jobCharts(f *analysis.Findings) []figure.Figure {
	if !f.OfJobs() {
		return nil
	}
	of := func(id string) *figure.Figure {
		all := jobQuantities(f)
		return all[slices.IndexFunc(all, func(q quantity) bool { return q.id == id })].against(f)
	}
	return those(of("cluster"), of("cpuefficiency"), wallChart(f), siteChart(f), lostChart(f), of("events"), usedChart(f), scratchChart(f))
}

// jobQuantities returns the quantities of jobs, in the order in which the RHUL report of 2009
// compares files that are read directly with files that are staged; it returns nothing for runs
// without jobs.
func jobQuantities(f *analysis.Findings) []quantity {
	if !f.OfJobs() {
		return nil
	}
	type step = *analysis.Step
	of := func(what func(step) *float64) func(*analysis.Findings, step) (float64, bool) {
		return func(_ *analysis.Findings, s step) (float64, bool) { return known(what(s)) }
	}
	return []quantity{
		{id: "cluster", title: "Cluster throughput", name: "cluster throughput",
			desc: "Running jobs times their CPU efficiency",
			of:   of(func(s step) *float64 { return s.ClusterThroughput }),
			own:  func(s step) (_, _ *float64) { return s.ClusterThroughputLow, s.ClusterThroughputHigh },
			axis: func(lines []figure.Line) figure.Axis {
				return figure.LinearAxis("jobs x efficiency", figure.Scale{Factor: 1}, highest(lines))
			},
			show: func(x float64) string { return unit.Significant(x) + " jobs' worth" }},
		{id: "cpuefficiency", title: "CPU efficiency of jobs", name: "CPU efficiency",
			desc: "CPU time of jobs as a share of their wall clock time",
			of:   of(func(s step) *float64 { return s.CPUEfficiency }), axis: percentAxis("%", 1), show: unit.Percent,
			own: func(s step) (_, _ *float64) { return s.CPUEfficiencyLow, s.CPUEfficiencyHigh }},
		{id: "walltime", title: "Mean wall clock time", name: "mean wall clock time",
			desc: estimatedTime,
			of:   func(_ *analysis.Findings, s step) (float64, bool) { return wallClock(s) }, axis: wallAxis, show: unit.Seconds},
		{id: "lostjobs", title: "Jobs that did not complete", name: "lost jobs",
			desc: "Crashed and failed jobs as a share of those that ended",
			of: func(_ *analysis.Findings, s step) (float64, bool) {
				crashed, ok := known(s.CrashRatio)
				failed, _ := known(s.JobFailureRatio)
				return crashed + failed, ok
			}, axis: percentAxis("% of jobs", 0), show: unit.Percent},
		{id: "events", title: "Events", name: "events", desc: "Events processed by all jobs",
			of:   func(_ *analysis.Findings, s step) (float64, bool) { return s.EventRate, s.Jobs != nil },
			axis: func(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" events/s")) }, show: perSecond,
			own: func(s step) (_, _ *float64) { return s.EventRateLow, s.EventRateHigh }},
		{id: "used", title: "Payload that jobs used", name: "used payload",
			desc: "Payload that jobs processed as a share of the payload moved",
			of:   of(func(s step) *float64 { return s.UsedRatio }), axis: percentAxis("% of what was moved", 1), show: unit.Percent},
	}
}

func lostChart(f *analysis.Findings) *figure.Figure {
	crashed := series(f, "crashed", 1, func(s *analysis.Step) (float64, bool) { return known(s.CrashRatio) }, unit.Percent)
	failed := series(f, "failed", 2, func(s *analysis.Step) (float64, bool) { return known(s.JobFailureRatio) }, unit.Percent)
	var lines []figure.Line
	if highest([]figure.Line{crashed}) > 0 {
		lines = append(lines, crashed)
	}
	if highest([]figure.Line{failed}) > 0 {
		lines = append(lines, failed)
	}
	return against(f, "lostjobs", "Jobs that did not complete against load", "lost jobs", percentAxis("% of jobs", 0), lines...)
}

// usedChart shows the amount of data that was moved beside the amount that jobs used; it returns
// nil if the two amounts are equal.
func usedChart(f *analysis.Findings) *figure.Figure {
	const same = 0.01
	each := func(n func(*analysis.Step) int64) func(*analysis.Step) (float64, bool) {
		return func(s *analysis.Step) (float64, bool) { return float64(n(s)) / max(s.Duration, 1e-9), s.Jobs != nil }
	}
	moved := series(f, "moved", 0, each(func(s *analysis.Step) int64 { return s.Moved }), unit.Bits)
	used := series(f, "used", 2, each(func(s *analysis.Step) int64 { return s.Used }), unit.Bits)
	apart, staged := false, false
	for _, s := range steps(f) {
		if r := s.UsedRatio; r != nil {
			apart = apart || *r < 1-same || *r > 1+same
		}
		staged = staged || s.Staged > 0
	}
	if highest([]figure.Line{moved}) <= 0 || !apart && !staged {
		return nil
	}
	if staged {
		moved.Name = "copied to scratch"
	}
	return against(f, "used", "Payload moved and used against load", "payload", bitsAxis, moved, used)
}

func scratchChart(f *analysis.Findings) *figure.Figure {
	return against(f, "scratch", "Scratch disk against load", "disk busy", percentAxis("% of the time", 1),
		series(f, "busy", 0, func(s *analysis.Step) (float64, bool) {
			if s.Scratch == nil {
				return 0, false
			}
			return known(s.Scratch.Busy)
		}, unit.Percent))
}

// jobTimeCharts plots the figures of jobs against time; it returns nothing for runs without jobs.
func jobTimeCharts(f *analysis.Findings, s *analysis.Series) []figure.Figure {
	if !f.OfJobs() {
		return nil
	}
	running := figure.Figure{ID: "jobtime", Title: "Running jobs against time", Desc: inShade, Lines: []figure.Line{
		timeLine(s, "running", 0, func(p *analysis.Point) float64 { return p.Jobs }),
		timeLine(s, "computing", 2, func(p *analysis.Point) float64 { return p.Computing })}}
	if highest(running.Lines[1:]) == 0 {
		running.Lines = running.Lines[:1]
	}
	running.Y = figure.LinearAxis("jobs", figure.Decimal(0, ""), highest(running.Lines))
	events := figure.Figure{ID: "eventtime", Title: "Events against time",
		Lines: []figure.Line{timeLine(s, "events", 0, func(p *analysis.Point) float64 { return p.Events })}}
	events.Y = scaled(events.Lines, decimal(" events/s"))
	ended := figure.Figure{ID: "endedtime", Title: "Jobs that ended against time", Lines: []figure.Line{
		timeLine(s, "came to their end", 0, func(p *analysis.Point) float64 { return p.JobsDone }),
		timeLine(s, "crashed or failed", 1, func(p *analysis.Point) float64 { return p.JobsLost })}}
	ended.Y = scaled(ended.Lines, decimal(" jobs/s"))
	return []figure.Figure{running, events, ended}
}

// jobHistograms returns histograms of the duration of jobs: in the best step and the last step if
// shown is true, else in all other steps.
func jobHistograms(f *analysis.Findings, s *analysis.Series, shown bool) []figure.Figure {
	var all []figure.Figure
	for _, d := range chosenDistributions(f, s.JobTimes, shown) {
		all = append(all, distributionChart(d.of, fmt.Sprintf("jobs%d", d.of.Step), "Job wall clock time with "+at(f, d.step), "job"))
	}
	return all
}

// paperCharts returns the charts that are usual in papers and that the report shows in another
// form.
func paperCharts(f *analysis.Findings) []figure.Figure {
	if f.OfJobs() {
		return nil // they are among the charts of jobs
	}
	return those(wallChart(f), cpuEfficiencyChart(f))
}

// wallClock returns the mean duration of a job, or of a task, or of an operation if the other two
// are unknown.
func wallClock(s *analysis.Step) (float64, bool) {
	if t, _, ok := s.MeanJob(); ok || s.Jobs != nil {
		return t, ok
	}
	if s.TaskSeconds != nil {
		return *s.TaskSeconds, true
	}
	if s.Latency == nil {
		return 0, false
	}
	return s.Latency.Mean, true
}

// wallAxis is linear: a duration that grows with the load is a straight line on it.
func wallAxis(lines []figure.Line) figure.Axis { return scaled(lines, figure.Seconds) }

func wallChart(f *analysis.Findings) *figure.Figure {
	lines := []figure.Line{series(f, "mean", 0, wallClock, unit.Seconds)}
	for i, name := range []string{"p50", "p90"} {
		l := quantileLine(f, name, i+1, func(s *analysis.Step) *analysis.Quantiles { return s.JobSeconds })
		l.Dash = true
		lines = append(lines, l)
	}
	if len(lines[0].Points) == 0 {
		return nil
	}
	c := against(f, "walltime", "Mean wall clock time against load", "mean wall clock time", wallAxis, lines...)
	if c == nil {
		return nil
	}
	switch {
	case find(f, func(s *analysis.Step) bool { return s.Jobs != nil }) != nil:
		c.Desc = estimatedTime
	case find(f, func(s *analysis.Step) bool { return s.TaskSeconds != nil }) != nil:
		c.Desc = "Of tasks"
	default:
		c.Desc = "Of operations"
	}
	return c
}

// estimatedTime describes the mean wall clock time of jobs.
const estimatedTime = "Of completed jobs; without any, estimated from their events"

// cpuEfficiency returns the CPU time of jobs as a share of their wall clock time; for external
// client programs, the CPU time of each program as a share of its run time.
func cpuEfficiency(s *analysis.Step) (float64, bool) {
	if s.CPUEfficiency != nil {
		return *s.CPUEfficiency, true
	}
	if s.ExternalCores <= 0 || s.ActiveClients <= 0 {
		return 0, false
	}
	return s.ExternalCores / s.ActiveClients, true
}

// clientEfficiency describes the CPU efficiency of client programs.
const clientEfficiency = "CPU time of client programs as a share of their run time"

func cpuEfficiencyChart(f *analysis.Findings) *figure.Figure {
	c := against(f, "cpuefficiency", "CPU efficiency of clients against load", "CPU efficiency", percentAxis("%", 0),
		series(f, "clients", 0, cpuEfficiency, unit.Percent))
	if c != nil {
		c.Desc = clientEfficiency
	}
	return c
}

// outcomeSection lists the outcomes of the jobs of each group; it has no rows if no group has jobs.
func outcomeSection(c *compare.Comparison) section {
	t := section{ID: "outcomes", Title: "What became of the jobs", Caption: "Jobs of all steps and runs of each group, by how they ended",
		Note:  "Of all steps and runs of a group: jobs that ended while load was held. Lost are those that crashed or failed.",
		table: table{Head: heads("<group", "<ended", "<crashed", "<failed", "<lost", "<best cluster throughput", "<with")}}
	for i := range c.Groups {
		var all analysis.JobCounts
		best, at, any := 0.0, "", false
		for _, r := range c.Groups[i].Runs {
			if r.Found == nil {
				continue
			}
			for _, s := range steps(r.Found) {
				if s.Jobs == nil {
					continue
				}
				any = true
				all.Done, all.Crashed, all.Failed = all.Done+s.Jobs.Done, all.Crashed+s.Jobs.Crashed, all.Failed+s.Jobs.Failed
				if x := s.ClusterThroughput; x != nil && *x > best {
					best, at = *x, fmt.Sprintf("%d jobs", s.Clients)
				}
			}
		}
		if !any {
			continue
		}
		lost, top := "-", "-"
		if n := all.Ended(); n > 0 {
			lost = unit.Percent(float64(all.Crashed+all.Failed) / float64(n))
		}
		if best > 0 {
			top = unit.Significant(best)
		}
		t.row(false, c.Groups[i].Name, whole(all.Ended()), whole(all.Crashed), whole(all.Failed), lost, top, at)
	}
	return t
}
