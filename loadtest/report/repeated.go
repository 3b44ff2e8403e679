package report

import (
	"fmt"
	"io"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/report/figure"
)

// Repeated writes the combined results of repetitions: the verdict, and a table for each metric
// with its interval from run to run.
func Repeated(w io.Writer, r *compare.Repeated, opts Options) error {
	opts.Verbose = true // its tables need the room
	p := newPrinter(w, opts)
	p.headline(r.Status, say.Plain(r.Verdict))
	p.line("")
	for _, s := range repeatedSections(r) {
		p.section(&s)
	}
	for _, warning := range r.Warnings {
		p.hanging("  note  ", say.Plain(warning))
	}
	return p.w.Flush()
}

// repeatedSections returns one table for each metric of steps, and one table of the metrics that
// have a single value for each run.
func repeatedSections(r *compare.Repeated) []section {
	empty := func(title, first string) section {
		return section{Title: title, Open: true, table: table{Head: heads(first, "mean", "95% interval", "scatter", "within", "<runs")}}
	}
	var all []section
	runs := empty("Each run as a whole", "<metric")
	for _, name := range r.Metrics {
		m := compare.MetricOf(name)
		if m == nil {
			continue
		}
		s, none := empty(say.Capital(m.Title), r.Load), m.Plain
		for i := range r.Steps {
			if a := r.Steps[i].Metric(name); a != nil {
				none = none && a.Mean == 0
				s.row(false, acrossRow(stepName(&r.Steps[i], r.Load), a, m)...)
			}
		}
		for i := range r.PerRun {
			if r.PerRun[i].Metric == name {
				runs.row(false, acrossRow(m.Title, &r.PerRun[i], m)...)
			}
		}
		if !none { // no errors need no table
			all = append(all, s)
		}
	}
	return filled(append(all, runs)...)
}

func acrossRow(name string, a *compare.Across, m *compare.Metric) []string {
	inside := "-"
	if a.Within != nil {
		inside = "+-" + unit.Percent(*a.Within)
	}
	return []string{name, m.Format(a.Mean), span(a.Low, a.High, m.Format), orDash(a.Scatter, unit.Percent), inside, fmt.Sprint(len(a.Values))}
}

func stepName(s *compare.RepeatedStep, of string) string {
	return loadText(&compare.StepShift{Clients: s.Clients, Rate: s.Rate, Again: s.Again}, of)
}

type runLink struct{ Link, Text, Status string }

// RepeatedHTML writes r as one file that needs no other files, with a link to each run's report.
// title names the campaign; link returns the path of the report of a run directory, relative to the
// file.
func RepeatedHTML(w io.Writer, r *compare.Repeated, title string, link func(dir string) string) error {
	p := newPage(title, r.Status, fmt.Sprintf("the least valid of %s", say.Plural(len(r.Runs), "run")))
	p.Verdicts, p.Warnings = plain([]string{r.Verdict}), plain(r.Warnings)
	p.Footer = "Intervals are those of the mean over the runs (Student's t): they tell how far the mean of many more such runs may lie. " +
		"\"Scatter\" is the standard deviation from run to run, \"within\" half of the 95% interval inside of one run, on average: " +
		"where the first is much larger, one run's interval promises too much."
	p.Chapters = kept(chapter{ID: "load", Title: "Against load", Open: true, Charts: repeatedFigures(r)},
		chapter{ID: "metrics", Title: "Over all runs", Open: true, Parts: repeatedSections(r)})
	for _, run := range r.Runs {
		p.Runs = append(p.Runs, runLink{link(run.Dir), say.Plain(run.Dir), run.Status})
	}
	return writePage(w, p)
}

// repeatedFigures plots the first metric against load: the mean with its interval, and each run
// separately.
func repeatedFigures(r *compare.Repeated) []drawing {
	if len(r.Metrics) == 0 || len(r.Steps) == 0 {
		return nil
	}
	m := compare.MetricOf(r.Metrics[0])
	if m == nil || m.PerRun() {
		return nil
	}
	c := figure.Figure{ID: "repeated", Title: say.Capital(m.Title) + " against load", Stamp: r.Status}
	mean := figure.Line{Name: "mean", Dots: true}
	var each []figure.Line // one line for each point, since runs are not joined
	var places []float64
	for i := range r.Steps {
		s := &r.Steps[i]
		a, x := s.Metric(m.Name), float64(s.Clients)
		if s.Rate > 0 {
			x = s.Rate
		}
		if r.Load == analysis.Stages {
			x = float64(s.Again)
		}
		if a == nil {
			continue
		}
		name := stepName(s, r.Load)
		places = append(places, x)
		mean.Points = append(mean.Points, figure.Point{X: x, Y: a.Mean, Low: a.Low, High: a.High, Note: name + ": mean " + m.Format(a.Mean)})
		for _, v := range a.Values {
			each = append(each, figure.Line{Color: 1, Dots: true, Points: []figure.Point{{X: x, Y: v, Note: name + ": " + m.Format(v)}}})
		}
	}
	if len(places) == 0 {
		return nil
	}
	c.Lines = append(each, mean)
	most := highest(c.Lines)
	c.X, c.Y = figure.LoadAxis(r.Load, r.Load, places), axisOf(m, most)
	c.Desc = fmt.Sprintf("Mean of %d runs; bars: 95%% interval over runs; points: runs", len(r.Runs))
	return []drawing{{Title: c.Title, Desc: c.Desc, Data: &c, Bare: true}}
}

// axisOf returns the axis of a metric's values.
func axisOf(m *compare.Metric, most float64) figure.Axis {
	switch m.Name {
	case "throughput":
		return scaledTo(most, figure.Bits)
	case "error_ratio", "cpu_efficiency", "crash_ratio", "job_failure_ratio":
		return figure.LinearAxis("%", figure.Percent(), most)
	case "rate", "events_rate":
		return scaledTo(most, decimal("/s"))
	case "cluster_throughput":
		return scaledTo(most, decimal(" jobs"))
	}
	return scaledTo(most, figure.Seconds)
}
