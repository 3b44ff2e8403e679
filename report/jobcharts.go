package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// jobCharts plots what jobs did against how many there were; none in runs
// without jobs. The first two are the figures of the RHUL report of 2009.
func jobCharts(f *analysis.Findings) []figure.Figure {
	if !f.OfJobs() {
		return nil
	}
	what := map[string]*quantity{}
	for _, q := range jobQuantities(f) {
		what[q.id] = &q
	}
	return those(what["cluster"].against(f), what["cpuefficiency"].against(f), wallChart(f), siteChart(f), lostChart(f), what["events"].against(f), usedChart(f), scratchChart(f))
}

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

// paperCharts are those that papers show and the report says otherwise.
func paperCharts(f *analysis.Findings) []figure.Figure {
	if f.OfJobs() {
		return nil // they are among those of jobs
	}
	return those(wallChart(f), cpuEfficiencyChart(f))
}

// wallClock is how long a job took on average, or a task, or an operation where
// neither is known.
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

// wallAxis is linear: a time that grows with the load is a straight line on it.
func wallAxis(lines []figure.Line) figure.Axis {
	return scaled(lines, figure.Seconds)
}

func wallChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "walltime", Title: "Mean wall clock time against load", X: stepAxis(f)}
	c.Lines = append([]figure.Line{series(f, "mean", 0, wallClock, unit.Seconds)}, jobQuantiles(f)...)
	l := &c.Lines[0]
	if len(l.Points) == 0 || highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = wallAxis(c.Lines)
	c.Y.Name = "mean wall clock time"
	what := "an operation"
	for i := range f.Curve {
		switch {
		case f.Curve[i].Jobs != nil:
			what = "a job"
		case f.Curve[i].TaskSeconds != nil && what != "a job":
			what = "a task"
		}
	}
	first, last := l.Points[0], l.Points[len(l.Points)-1]
	c.Desc = fmt.Sprintf("How long %s took on average from its start to its end: %s with %s", what, unit.Seconds(first.Y), clients(f, first.X))
	if last.X != first.X {
		c.Desc += fmt.Sprintf(", %s with %s", unit.Seconds(last.Y), clients(f, last.X))
	}
	c.Desc += "."
	if first.Y > 0 && last.Y > first.Y {
		c.Desc += fmt.Sprintf(" That is %s times as long.", unit.Significant(last.Y/first.Y))
	}
	if f.OfJobs() {
		c.Desc += jobTimeWords(f)
	}
	return &c
}

// jobQuantiles are the median and the 90% quantile of jobs that ended.
func jobQuantiles(f *analysis.Findings) []figure.Line {
	var all []figure.Line
	for i, q := range []struct {
		name string
		of   func(*analysis.Quantiles) float64
	}{{"p50", func(q *analysis.Quantiles) float64 { return q.P50 }}, {"p90", func(q *analysis.Quantiles) float64 { return q.P90 }}} {
		l := series(f, q.name, i+1, func(s *analysis.Step) (float64, bool) {
			if s.JobSeconds == nil {
				return 0, false
			}
			return q.of(s.JobSeconds), true
		}, unit.Seconds)
		l.Dash = true
		if len(l.Points) > 0 {
			all = append(all, l)
		}
	}
	return all
}

// jobTimeWords says which jobs were timed, and where that is an estimate.
func jobTimeWords(f *analysis.Findings) string {
	var guessed []string
	for i := range f.Curve {
		if _, estimated, _ := f.Curve[i].MeanJob(); estimated {
			guessed = append(guessed, at(f, &f.Curve[i]))
		}
	}
	text := " Of jobs that came to their end; half of them took longer than p50, one in ten longer than p90."
	if len(guessed) > 0 {
		text += " With " + listed(guessed) + " none ended while the load was held: there the mean is estimated from the events that jobs were through with."
	}
	return text
}

// cpuEfficiency is the CPU time of jobs as a share of their wall clock time; of
// external client programs, that of each while it was there.
func cpuEfficiency(s *analysis.Step) (float64, bool) {
	if s.CPUEfficiency != nil {
		return *s.CPUEfficiency, true
	}
	if s.ExternalCores <= 0 || s.ActiveClients <= 0 {
		return 0, false
	}
	return s.ExternalCores / s.ActiveClients, true
}

func cpuEfficiencyChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "cpuefficiency", Title: "CPU efficiency of clients against load", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "clients", 0, cpuEfficiency, unit.Percent)}
	most := highest(c.Lines)
	if most <= 0 {
		return nil
	}
	c.Desc = fmt.Sprintf("CPU time of the client programs as a share of the time for which they ran, at most %s.", unit.Percent(most))
	c.Y = figure.LinearAxis("%", figure.Percent(), most)
	c.Y.Name = "CPU efficiency"
	return &c
}
