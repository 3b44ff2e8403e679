package report

import (
	"fmt"

	"weir/analysis"
	"weir/analysis/compare"
	"weir/internal/unit"
	"weir/report/figure"
)

// jobQuantities are what jobs did, in the order in which the RHUL report of 2009
// compares files that are read directly with files that are staged; none in runs
// without jobs.
func jobQuantities(f *analysis.Findings) []quantity {
	if !f.OfJobs() {
		return nil
	}
	of := func(what func(*analysis.Step) *float64) func(*analysis.Findings, *analysis.Step) (float64, bool) {
		return func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return known(what(s)) }
	}
	own := func(low, high func(*analysis.Step) *float64) func(*analysis.Findings, *analysis.Step) (_, _ *float64) {
		return func(_ *analysis.Findings, s *analysis.Step) (_, _ *float64) { return low(s), high(s) }
	}
	return []quantity{
		{id: "cluster", title: "Cluster throughput against load", name: "cluster throughput", desc: "Running jobs times their CPU efficiency: as many jobs as would do the same work without ever waiting",
			of: of(func(s *analysis.Step) *float64 { return s.ClusterThroughput }), axis: clusterAxis, show: func(x float64) string { return unit.Significant(x) + " jobs' worth" },
			own: own(func(s *analysis.Step) *float64 { return s.ClusterThroughputLow }, func(s *analysis.Step) *float64 { return s.ClusterThroughputHigh })},
		{id: "cpuefficiency", title: "CPU efficiency of jobs against load", name: "CPU efficiency", desc: "Time for which jobs computed as a share of the time for which they ran",
			of: of(func(s *analysis.Step) *float64 { return s.CPUEfficiency }), axis: percentAxis("%", 1), show: unit.Percent,
			own: own(func(s *analysis.Step) *float64 { return s.CPUEfficiencyLow }, func(s *analysis.Step) *float64 { return s.CPUEfficiencyHigh })},
		{id: "walltime", title: "Mean wall clock time against load", name: "mean wall clock time", desc: "Mean time of jobs from their begin to their end; estimated from their events where none ended",
			of: func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return wallClock(s) }, axis: wallAxis, show: unit.Seconds},
		{id: "lostjobs", title: "Jobs that did not come to their end against load", name: "lost jobs", desc: "Share of the jobs that ended which crashed or failed",
			of: func(_ *analysis.Findings, s *analysis.Step) (float64, bool) {
				crashed, ok := known(s.CrashRatio)
				failed, _ := known(s.JobFailureRatio)
				return crashed + failed, ok
			}, axis: percentAxis("% of jobs", 0), show: unit.Percent},
		{id: "events", title: "Events against load", name: "events", desc: "Events that all jobs were through with each second",
			of:   func(_ *analysis.Findings, s *analysis.Step) (float64, bool) { return s.EventRate, s.Jobs != nil },
			axis: func(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" events/s")) }, show: perSecond,
			own: own(func(s *analysis.Step) *float64 { return s.EventRateLow }, func(s *analysis.Step) *float64 { return s.EventRateHigh })},
		{id: "used", title: "Payload that jobs used against load", name: "used payload", desc: "What jobs worked on, as a share of the payload that was moved for them",
			of: of(func(s *analysis.Step) *float64 { return s.UsedRatio }), axis: percentAxis("% of what was moved", 1), show: unit.Percent},
	}
}

// outcomeSection tells what became of the jobs of each group; without rows where
// no group has any.
func outcomeSection(c *compare.Comparison) section {
	t := section{ID: "outcomes", Title: "What became of the jobs", Stamp: c.Status, Caption: "Jobs of all steps and runs of each group, by how they ended",
		Note:  "Of all steps and runs of a group: jobs that ended while load was held. Lost are those that crashed or failed.",
		table: table{Head: heads("<group", "<ended", "<crashed", "<failed", "<lost", "<best cluster throughput", "<with")}}
	for i := range c.Groups {
		var all analysis.JobCounts
		best, at, any := 0.0, "", false
		for _, r := range c.Groups[i].Runs {
			if r.Found == nil {
				continue
			}
			for k := range r.Found.Curve {
				s := &r.Found.Curve[k]
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
		t.row(false, c.Groups[i].Name, unit.Count(float64(all.Ended())), unit.Count(float64(all.Crashed)), unit.Count(float64(all.Failed)), lost, top, at)
	}
	return t
}
