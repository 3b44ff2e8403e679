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
	q := s.JobSeconds
	if q == nil && s.TaskSeconds != nil {
		return *s.TaskSeconds, true
	}
	if q == nil {
		q = s.Latency
	}
	if q == nil {
		return 0, false
	}
	return q.Mean, true
}

// wallAxis is linear: a time that grows with the load is a straight line on it.
func wallAxis(lines []figure.Line) figure.Axis {
	return scaled(lines, figure.Seconds)
}

func wallChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "walltime", Title: "Mean wall clock time against load", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "mean", 0, wallClock, unit.Seconds)}
	l := &c.Lines[0]
	if len(l.Points) == 0 || highest(c.Lines) <= 0 {
		return nil
	}
	c.Y = wallAxis(c.Lines)
	c.Y.Name = "mean wall clock time"
	what := "an operation"
	for i := range f.Curve {
		switch {
		case f.Curve[i].JobSeconds != nil:
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
	return &c
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
	c.Y = figure.LinearAxis("%", figure.Percent(), most)
	c.Y.Name = "CPU efficiency"
	c.Desc = fmt.Sprintf("CPU time of the client programs as a share of the time for which they ran, at most %s.", unit.Percent(most))
	return &c
}
