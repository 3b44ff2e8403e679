package report

import (
	"fmt"

	"weir/analysis"
	"weir/figure"
	"weir/internal/unit"
)

// paperCharts are those that papers show and the report says otherwise.
func paperCharts(f *analysis.Findings) []figure.Figure {
	var all []figure.Figure
	if f.OfJobs() {
		return all // they are among those of jobs
	}
	if c := wallChart(f); c != nil {
		all = append(all, *c)
	}
	if c := cpuEfficiencyChart(f); c != nil {
		all = append(all, *c)
	}
	return all
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
	if f.OfJobs() {
		c.Title = "CPU efficiency of jobs against load"
		c.Lines[0] = ranged(f, "measured", 0, func(s *analysis.Step) *float64 { return s.CPUEfficiency },
			func(s *analysis.Step) *float64 { return s.CPUEfficiencyLow }, func(s *analysis.Step) *float64 { return s.CPUEfficiencyHigh }, unit.Percent)
		c.Desc = "Time for which jobs computed as a share of the time for which they ran: " + summit(f, &c.Lines[0], unit.Percent) + "." + bars
		most = max(1, most)
	}
	c.Y = figure.LinearAxis("%", figure.Percent(), most)
	c.Y.Name = "CPU efficiency"
	return &c
}
