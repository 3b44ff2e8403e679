package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/figure"
	"weir/internal/say"
	"weir/internal/unit"
)

// jobCharts plots what jobs did against how many there were; none in runs
// without jobs. The first two are the figures of the RHUL report of 2009.
func jobCharts(f *analysis.Findings) []figure.Figure {
	if !f.OfJobs() {
		return nil
	}
	var all []figure.Figure
	for _, c := range []*figure.Figure{clusterChart(f), cpuEfficiencyChart(f), wallChart(f), siteChart(f), lostChart(f), eventChart(f), usedChart(f), scratchChart(f)} {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// ranged makes a line of a mean with its interval.
func ranged(f *analysis.Findings, name string, color int, of, low, high func(*analysis.Step) *float64, text func(float64) string) figure.Line {
	l := series(f, name, color, func(s *analysis.Step) (float64, bool) { return known(of(s)) }, text)
	i := 0
	for k := range f.Curve {
		if s := &f.Curve[k]; of(s) != nil {
			l.Points[i].Low, l.Points[i].High = low(s), high(s)
			i++
		}
	}
	return l
}

func clusterChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "cluster", Title: "Cluster throughput against load", X: stepAxis(f)}
	c.Lines = []figure.Line{ranged(f, "measured", 0, func(s *analysis.Step) *float64 { return s.ClusterThroughput },
		func(s *analysis.Step) *float64 { return s.ClusterThroughputLow }, func(s *analysis.Step) *float64 { return s.ClusterThroughputHigh }, unit.Significant)}
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = clusterAxis(c.Lines)
	c.Desc = "Running jobs times their CPU efficiency: as many jobs as would do the same work without ever waiting. " +
		say.Capital(summit(f, &c.Lines[0], func(x float64) string { return unit.Significant(x) + " jobs' worth" })) + "." + bars
	return &c
}

const bars = " Bars are 95% intervals of the mean."

func clusterAxis(lines []figure.Line) figure.Axis {
	a := figure.LinearAxis("jobs x efficiency", figure.Scale{Factor: 1}, highest(lines))
	a.Name = "cluster throughput"
	return a
}

func lostChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "lostjobs", Title: "Jobs that did not come to their end against load", X: stepAxis(f)}
	var said []string
	for i, l := range []figure.Line{
		series(f, "crashed", 1, func(s *analysis.Step) (float64, bool) { return known(s.CrashRatio) }, unit.Percent),
		series(f, "failed", 2, func(s *analysis.Step) (float64, bool) { return known(s.JobFailureRatio) }, unit.Percent),
	} {
		if highest([]figure.Line{l}) > 0 {
			c.Lines = append(c.Lines, l)
			said = append(said, summit(f, &c.Lines[len(c.Lines)-1], unit.Percent))
		} else if i == 0 {
			said = append(said, "none crashed")
		}
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.Y = figure.LinearAxis("% of jobs", figure.Percent(), highest(c.Lines))
	c.Y.Name = "lost jobs"
	c.Desc = "Share of the jobs that ended which crashed, as a request was not answered in time, or failed otherwise: " + strings.Join(said, "; ") + "."
	return &c
}

func eventChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "events", Title: "Events against load", X: stepAxis(f)}
	c.Lines = []figure.Line{ranged(f, "measured", 0, func(s *analysis.Step) *float64 { return &s.EventRate },
		func(s *analysis.Step) *float64 { return s.EventRateLow }, func(s *analysis.Step) *float64 { return s.EventRateHigh }, perSecond)}
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = scaled(c.Lines, decimal(" events/s"))
	c.Y.Name = "events"
	c.Desc = "Events that all jobs were through with each second: " + summit(f, &c.Lines[0], perSecond) + "." + bars
	return &c
}

// usedChart shows what was moved beside what of it jobs worked on; nil where
// that is the same.
func usedChart(f *analysis.Findings) *figure.Figure {
	const same = 0.01
	c := figure.Figure{ID: "used", Title: "Payload moved and used against load", X: stepAxis(f)}
	each := func(n func(*analysis.Step) int64) func(*analysis.Step) (float64, bool) {
		return func(s *analysis.Step) (float64, bool) {
			return float64(n(s)) / max(s.Hold, 1e-9), s.Jobs != nil
		}
	}
	c.Lines = []figure.Line{
		series(f, "moved", 0, each(func(s *analysis.Step) int64 { return s.Moved }), unit.Bits),
		series(f, "used", 2, each(func(s *analysis.Step) int64 { return s.Used }), unit.Bits),
	}
	apart, staged, least, most := false, false, 1.0, 0.0
	for i := range f.Curve {
		if r := f.Curve[i].UsedRatio; r != nil {
			apart = apart || *r < 1-same || *r > 1+same
			least, most = min(least, *r), max(most, *r)
		}
		staged = staged || f.Curve[i].Staged > 0
	}
	if highest(c.Lines[:1]) <= 0 || !apart && !staged {
		return nil
	}
	c.Y = bitsAxis(c.Lines)
	c.Y.Name = "payload"
	what := "read"
	if staged {
		what = "copied to the scratch disk"
	}
	c.Desc = fmt.Sprintf("Payload that was %s, and what of it jobs worked on: %s of it.", what, fromTo(least, most))
	return &c
}

func fromTo(least, most float64) string {
	if a, b := unit.Percent(least), unit.Percent(most); a != b {
		return a + " to " + b
	}
	return unit.Percent(most)
}

func scratchChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "scratch", Title: "Scratch disk against load", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "busy", 0, func(s *analysis.Step) (float64, bool) {
		if s.Scratch == nil {
			return 0, false
		}
		return known(s.Scratch.Busy)
	}, unit.Percent)}
	if highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = figure.LinearAxis("% of the time", figure.Percent(), 1)
	c.Y.Name = "disk busy"
	name, written := "", 0.0
	for i := range f.Curve {
		if d := f.Curve[i].Scratch; d != nil {
			name, written = d.Disk+" of "+d.Host, max(written, d.Write)
		}
	}
	c.Desc = fmt.Sprintf("How much of the time the disk with the copies of files, %s, was busy: %s. It was written with at most %s/s.",
		say.Plain(name), summit(f, &c.Lines[0], unit.Percent), unit.Bytes(written))
	return &c
}
