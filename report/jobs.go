package report

import (
	"fmt"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// jobChapter is what a run of jobs is about; empty in others.
func jobChapter(f *analysis.Findings, s *analysis.Series, plots Plots) chapter {
	if !f.OfJobs() {
		return chapter{}
	}
	c := chapter{ID: "jobs", Title: "Jobs", Mini: f.Validity.Status, Lead: jobLead(f), Charts: drawings(plots.Jobs)}
	c.Parts = filled(jobSection(f, onPage), siteSection(f))
	if s != nil && s.About.Scratch != nil {
		c.Note = scratchNote(f, s)
	}
	return c
}

// jobLead says how jobs went from the lightest load to the heaviest.
func jobLead(f *analysis.Findings) string {
	var said []string
	for _, s := range []*analysis.Step{lightest(f), reference(f), &f.Curve[len(f.Curve)-1]} {
		if s == nil || len(said) > 0 && strings.HasPrefix(said[len(said)-1], "With "+at(f, s)+" ") {
			continue
		}
		if text := jobWords(s); text != "" {
			said = append(said, fmt.Sprintf("With %s %s.", at(f, s), text))
		}
	}
	return strings.Join(said, " ") + siteWords(f, &f.Curve[len(f.Curve)-1])
}

// jobWords says what a step gave its jobs, "" where nothing is known of it.
func jobWords(s *analysis.Step) string {
	if s.Jobs == nil {
		return ""
	}
	var said []string
	if t, estimated, ok := s.MeanJob(); ok {
		said = append(said, "a job takes "+unit.Seconds(t)+map[bool]string{true: " by estimate"}[estimated])
	}
	if s.CPUEfficiency != nil {
		said = append(said, "the CPU efficiency is "+unit.Percent(*s.CPUEfficiency), "the cluster throughput "+unit.Significant(*s.ClusterThroughput))
	}
	if n := s.Jobs.Ended(); n > 0 && s.Jobs.Crashed+s.Jobs.Failed > 0 {
		said = append(said, fmt.Sprintf("%s of %s crashed and %s failed", unit.Count(float64(s.Jobs.Crashed)), say.Plural(int(n), "job"), unit.Count(float64(s.Jobs.Failed))))
	}
	return listed(said)
}

// jobCards are the figures that people ask for first of a run of jobs.
func jobCards(f *analysis.Findings, best *analysis.Step) []card {
	var all []card
	top := best
	for i := range f.Curve {
		if s := &f.Curve[i]; s.ClusterThroughput != nil && top.ClusterThroughput != nil && *s.ClusterThroughput > *top.ClusterThroughput {
			top = s
		}
	}
	if top.ClusterThroughput != nil {
		all = append(all, card{"Best cluster throughput", unit.Significant(*top.ClusterThroughput), "jobs' worth of CPU, with " + at(f, top)},
			card{"CPU efficiency there", unit.Percent(*top.CPUEfficiency), "of the jobs' time"})
	}
	if f.Measure == analysis.Rate {
		all = append(all, card{"Best rate", unit.Count(best.Operations) + " jobs/s", "with " + at(f, best)})
	} else {
		all = append(all, card{"Best throughput", unit.Bits(best.Throughput), "with " + at(f, best)})
	}
	if t, estimated, ok := best.MeanJob(); ok {
		note := "on average, with " + at(f, best)
		if single, _, known := lightest(f).MeanJob(); known && single > 0 {
			note += ", " + unit.Significant(t/single) + " x single"
		}
		all = append(all, card{"A job takes", map[bool]string{true: "~"}[estimated] + unit.Seconds(t), note})
	}
	all = append(all, rangeCard(f)...)
	if c, ok := kneeCard(f); ok {
		all = append(all, c)
	}
	if c, ok := limitCard(f); ok {
		all = append(all, c)
	}
	var ended, crashed, failed int64
	for i := range f.Curve {
		if j := f.Curve[i].Jobs; j != nil {
			ended, crashed, failed = ended+j.Ended(), crashed+j.Crashed, failed+j.Failed
		}
	}
	return append(all, card{"Lost jobs", unit.Count(float64(crashed + failed)), fmt.Sprintf("of %s that ended; %s crashed, %s failed", unit.Count(float64(ended)), unit.Count(float64(crashed)), unit.Count(float64(failed)))})
}

// scratchNote says where copies of files lie.
func scratchNote(f *analysis.Findings, s *analysis.Series) string {
	x := s.About.Scratch
	text := "Jobs copy files to " + say.Plain(x.Folder)
	if x.Filesystem != "" {
		text += ", a file system of type " + say.Plain(x.Filesystem)
	}
	switch {
	case x.Device != "":
		text += " on " + say.Plain(x.Device)
	case x.Filesystem == "tmpfs":
		text += ", which is in memory: no disk takes part"
	}
	text += "."
	for i := range f.Curve {
		if f.Curve[i].Scratch != nil {
			return text
		}
	}
	if x.Device != "" {
		text += " It is none of the disks that were watched, so its load is not known."
	}
	return text
}

const jobNote = "Jobs that ended while the load was held. Wall clock time is of those that came to their end (~: estimated, as none did); x single is how many times as long " +
	"the mean is as at the lightest load. The CPU of machines is all that was busy there; intervals are of the mean, 95%."

// jobSection has the columns of the tables of the Objectivity note of 1999:
// CPU of both sides, throughput, wall clock time and crashes against jobs. It has
// no rows for runs without jobs.
func jobSection(f *analysis.Findings, m medium) section {
	s := section{ID: "jobtable", Title: "Jobs, step by step", Note: jobNote}
	if m == onTerminal {
		s.Title = "Jobs"
	}
	if !f.OfJobs() {
		return s
	}
	type step = *analysis.Step
	longest := 0.0
	for i := range f.Curve {
		t, _, _ := f.Curve[i].MeanJob()
		longest = max(longest, t)
	}
	by := figure.Seconds(longest)
	single, _, _ := lightest(f).MeanJob()
	took := func(which int) func(step) string { return func(x step) string { return jobTook(x.JobSeconds)[which] } }
	pointer := func(of func(step) *float64, text func(float64) string) func(step) string {
		return func(x step) string { return orDash(of(x), text) }
	}
	fields := []field[step]{
		{f.Load(), "jobs", func(x step) string { return loadCell(f, x) }, nil},
		{"CPU efficiency", "efficiency", pointer(func(x step) *float64 { return x.CPUEfficiency }, unit.Percent), nil},
		{"interval", "95% interval", func(x step) string { return span(x.CPUEfficiencyLow, x.CPUEfficiencyHigh, unit.Percent) }, nil},
		{"cluster throughput", "cluster", pointer(func(x step) *float64 { return x.ClusterThroughput }, unit.Significant), nil},
		{"interval", absent, func(x step) string { return span(x.ClusterThroughputLow, x.ClusterThroughputHigh, unit.Significant) }, nil},
		{"mean time", "mean " + by.Unit, func(x step) string { return jobTime(&x.JobFigures, unit.Seconds) }, func(x step) string { return jobTime(&x.JobFigures, by.Text) }},
		{"x single", absent, func(x step) string { return timesText(x, single) }, nil},
		{"p50", absent, took(0), nil},
		{"p90", "p90 " + by.Unit, took(1), func(x step) string {
			if x.JobSeconds == nil {
				return "-"
			}
			return by.Text(x.JobSeconds.P90)
		}},
		{"longest", absent, took(2), nil},
		{"events/s", "events/s", func(x step) string { return unit.Count(x.EventRate) }, nil},
		{"done", "done", func(x step) string { return unit.Count(float64(x.Jobs.Done)) }, nil},
		{"crashed", "crashed", func(x step) string { return lostText(x.Jobs.Crashed, &x.JobFigures) }, func(x step) string { return unit.Count(float64(x.Jobs.Crashed)) }},
		{"failed", "failed", func(x step) string { return lostText(x.Jobs.Failed, &x.JobFigures) }, func(x step) string { return unit.Count(float64(x.Jobs.Failed)) }},
		{"throughput", absent, func(x step) string { return unit.Bits(x.Throughput) }, nil},
		{"moved", absent, func(x step) string { return unit.Bytes(float64(x.Moved)) }, nil},
		{"used", absent, pointer(func(x step) *float64 { return x.UsedRatio }, unit.Percent), nil},
		{"server machines' CPU", absent, func(x step) string { return machineCPU(x, "server") }, nil},
		{"client machines' CPU", absent, func(x step) string { return machineCPU(x, "client") }, nil},
		{absent, "<", func(x step) string { return remark(f, x) }, nil},
	}
	known := slices.DeleteFunc(steps(f), func(x step) bool { return x.Jobs == nil })
	tabulate(&s, m, known, func(x step) bool { return isBest(f, x) }, fields...)
	return s
}

func jobTook(q *analysis.Quantiles) [3]string {
	if q == nil {
		return [3]string{"-", "-", "-"}
	}
	return [3]string{unit.Seconds(q.P50), unit.Seconds(q.P90), unit.Seconds(q.Max)}
}

// jobTime is the mean wall clock time, with a ~ where it is an estimate.
func jobTime(s *analysis.JobFigures, text func(float64) string) string {
	t, estimated, ok := s.MeanJob()
	if !ok {
		return "-"
	}
	return map[bool]string{true: "~"}[estimated] + text(t)
}

func timesText(s *analysis.Step, single float64) string {
	t, _, ok := s.MeanJob()
	if !ok || single <= 0 {
		return "-"
	}
	return unit.Significant(t / single)
}

func lostText(n int64, s *analysis.JobFigures) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", unit.Count(float64(n)), unit.Percent(float64(n)/float64(s.Jobs.Ended())))
}

// machineCPU is how busy the machines of one side were, all programs together;
// "-" where none was watched.
func machineCPU(s *analysis.Step, role string) string {
	busy, cores := 0.0, 0.0
	for i := range s.Hosts {
		if h := &s.Hosts[i]; (string(h.Role) == role || h.Role == "both") && h.CPU != nil && h.Cores > 0 {
			busy, cores = busy+*h.CPU*float64(h.Cores), cores+float64(h.Cores)
		}
	}
	if cores == 0 {
		return "-"
	}
	return unit.Percent(busy / cores)
}
