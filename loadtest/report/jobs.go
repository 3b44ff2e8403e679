package report

import (
	"fmt"
	"slices"

	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report/figure"
)

// jobChapter describes a run of jobs; it is empty for other runs.
func jobChapter(f *analysis.Findings, s *analysis.Series, plots Plots) chapter {
	if !f.OfJobs() {
		return chapter{}
	}
	c := chapter{ID: "jobs", Title: "Jobs", Charts: drawings(plots.Jobs),
		Parts: filled(outputSection(f), siteSection(f), scratchSection(f))}
	if s != nil && s.About.Scratch != nil {
		c.Note = scratchNote(f, s.About.Scratch)
	} else if all := scratches(f); len(all) > 0 {
		c.Note = scratchNote(f, all[0])
		if len(all) > 1 {
			c.Note += ". Other machines: see the table of workers"
		}
	}
	return c
}

// scratches returns the scratch disks of the workers' jobs, each disk once.
func scratches(f *analysis.Findings) (all []*measure.Scratch) {
	for i := range f.Workers {
		at := f.Workers[i].Scratch
		if at != nil && !slices.ContainsFunc(all, func(x *measure.Scratch) bool {
			return x.Device == at.Device && x.Filesystem == at.Filesystem
		}) {
			all = append(all, at)
		}
	}
	return all
}

// outputSection shows the files that jobs wrote. It has no rows if jobs wrote no files.
func outputSection(f *analysis.Findings) section {
	s := section{ID: "outputtable", Title: "Output of jobs, step by step", PageOnly: true,
		Note: "Files that jobs wrote to the target, with scratch disk where they are staged. Writes are operations of their own; they are part " +
			"of a job's wall clock time.",
		table: table{Head: heads(f.Load(), "files", "written", "written/s", "mean time of a file", "share of the jobs' time")}}
	for _, x := range steps(f) {
		if x.Outputs > 0 {
			s.row(false, loadCell(f, x), whole(x.Outputs), amount(x.Output), unit.Bytes(float64(x.Output)/x.Duration)+"/s",
				orDash(x.OutputSeconds, unit.Seconds), orDash(x.OutputShare, unit.Percent))
		}
	}
	return s
}

// scratchSection shows the scratch disk of each machine. It has no rows if no copy is on a disk
// that was monitored.
func scratchSection(f *analysis.Findings) section {
	s := section{ID: "scratchtable", Title: "Scratch disks, step by step", PageOnly: true,
		Note: "Disks that jobs copy files to, on each machine with jobs. Busy is the share of the time in which the disk had a request in " +
			"service; iowait is that of the machine's cores, which wait for all of its disks.",
		table: table{Head: heads(f.Load(), "<machine", "<disk", "busy", "iowait", "requests in service", "read/s", "written/s")}}
	for _, x := range steps(f) {
		for i := range x.ScratchDisks {
			d := &x.ScratchDisks[i]
			s.row(false, loadCell(f, x), d.Host, d.Disk, orDash(d.Busy, unit.Percent), orDash(d.IOWait, unit.Percent),
				orDash(d.Queue, unit.Significant), unit.Bytes(d.Read), unit.Bytes(d.Write))
		}
	}
	return s
}

// jobCards are the figures of a run of jobs that readers look for first.
func jobCards(f *analysis.Findings, best *analysis.Step) []card {
	var all []card
	top := best
	for _, s := range steps(f) {
		if s.ClusterThroughput != nil && top.ClusterThroughput != nil && *s.ClusterThroughput > *top.ClusterThroughput {
			top = s
		}
	}
	if top.ClusterThroughput != nil {
		all = append(all, card{"Cluster throughput", unit.Significant(*top.ClusterThroughput), "jobs' worth of CPU, best with " + at(f, top)},
			card{"CPU efficiency", unit.Percent(*top.CPUEfficiency), "of the jobs' time"})
	}
	if t, estimated, ok := best.MeanJob(); ok {
		note := "on average, with " + at(f, best)
		if single, _, known := lightest(f).MeanJob(); known && single > 0 {
			note += ", " + unit.Significant(t/single) + " x single"
		}
		all = append(all, card{"A job takes", map[bool]string{true: "~"}[estimated] + unit.Seconds(t), note})
	}
	var ended, crashed, failed int64
	for _, s := range steps(f) {
		if j := s.Jobs; j != nil {
			ended, crashed, failed = ended+j.Ended(), crashed+j.Crashed, failed+j.Failed
		}
	}
	return append(all, card{"Lost jobs", whole(crashed + failed),
		fmt.Sprintf("of %s that ended; %s crashed, %s failed", whole(ended), whole(crashed), whole(failed))})
}

// scratchNote labels the scratch folder of jobs.
func scratchNote(f *analysis.Findings, x *measure.Scratch) string {
	text := "Scratch folder: " + scratchText(x)
	switch {
	case x.Device == "" && x.Filesystem == "tmpfs":
		text += " (in memory)"
	case x.Device != "" && find(f, func(s *analysis.Step) bool { return s.Scratch != nil }) == nil:
		text += " (disk not monitored)"
	}
	return text
}

const jobNote = "Jobs that ended while the load was held. Wall clock time is of those that came to their end (~: " +
	"estimated, as none did); x single is how many times as long the mean is as at the lightest load. The CPU of machines is all that " +
	"was busy there; intervals are of the mean, 95%."

// jobSection has the columns of the tables of the Objectivity note of 1999:
// CPU of both sides, throughput, wall clock time and crashes against jobs. It has
// no rows for runs without jobs.
func jobSection(f *analysis.Findings) section {
	s := section{ID: "jobtable", Title: "Jobs, step by step", Note: jobNote}
	if !f.OfJobs() {
		return s
	}
	type step = *analysis.Step
	longest, most := 0.0, 0.0
	for _, x := range steps(f) {
		t, _, _ := x.MeanJob()
		longest, most = max(longest, t), max(most, x.Throughput)
	}
	by, byMost := figure.Seconds(longest), figure.Bits(most)
	single, _, _ := lightest(f).MeanJob()
	took := func(which int) func(step) string {
		return func(x step) string { return jobTook(x.JobSeconds, by.Text)[which] }
	}
	fields := []field[step]{
		{"!" + f.Load(), func(x step) string { return loadCell(f, x) }},
		{"!efficiency", func(x step) string { return orDash(x.CPUEfficiency, unit.Percent) }},
		{"95% interval", func(x step) string { return span(x.CPUEfficiencyLow, x.CPUEfficiencyHigh, unit.Percent) }},
		{"!cluster", func(x step) string { return orDash(x.ClusterThroughput, unit.Significant) }},
		{".95% interval", func(x step) string { return span(x.ClusterThroughputLow, x.ClusterThroughputHigh, unit.Significant) }},
		{"!mean " + by.Unit, func(x step) string { return jobTime(&x.JobFigures, by.Text) }},
		{".x single", func(x step) string { return timesText(x, single) }},
		{".p50 " + by.Unit, took(0)},
		{"p90 " + by.Unit, took(1)},
		{".longest " + by.Unit, took(2)},
		{"events/s", func(x step) string { return unit.Count(x.EventRate) }},
		{"!done", func(x step) string { return whole(x.Jobs.Done) }},
		{"!crashed", func(x step) string { return lostText(x.Jobs.Crashed, &x.JobFigures) }},
		{"!failed", func(x step) string { return lostText(x.Jobs.Failed, &x.JobFigures) }},
		{"." + byMost.Unit, func(x step) string { return byMost.Text(x.Throughput) }},
		{".maximum", func(x step) string { return peakText(x, byMost.Text) }},
		{".moved", func(x step) string { return amount(x.Moved) }},
		{".used", func(x step) string { return orDash(x.UsedRatio, unit.Percent) }},
		{".server machines' CPU", func(x step) string { return machineCPU(x, "server") }},
		{".client machines' CPU", func(x step) string { return machineCPU(x, "client") }},
		{"!<note", func(x step) string { return remark(f, x) }},
	}
	timed := slices.DeleteFunc(steps(f), func(x step) bool { return x.Jobs == nil })
	tabulate(&s, timed, func(x step) bool { return isBest(f, x) }, fields)
	return s
}

func jobTook(q *analysis.Quantiles, text func(float64) string) [3]string {
	if q == nil {
		return [3]string{"-", "-", "-"}
	}
	return [3]string{text(q.P50), text(q.P90), text(q.Max)}
}

// jobTime formats the mean wall clock time, with a ~ if it is an estimate.
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
	return fmt.Sprintf("%s (%s)", whole(n), unit.Percent(float64(n)/float64(s.Jobs.Ended())))
}

// machineCPU formats the CPU use of the machines of one side, over all programs; "-" if no machine
// was monitored.
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
