package report

import (
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// sites returns the names of all sites at which jobs ran, in their order; it is empty if sites are
// not distinguished.
func sites(f *analysis.Findings) []string {
	var names []string
	for i := range f.Curve {
		for k := range f.Curve[i].Sites {
			if name := f.Curve[i].Sites[k].Site; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// shownSites returns as many sites as fit on one plot, or into the head of a table in a terminal.
func shownSites(f *analysis.Findings) (names []string, more string) {
	names = sites(f)
	if left := len(names) - mostLinks; left > 0 {
		return names[:mostLinks], "Not shown: " + say.Plural(left, "site")
	}
	return names, ""
}

// siteChart plots the mean wall clock time of the jobs at each site against all jobs, as in the
// Objectivity note of 1999; it returns nil if sites are not distinguished.
func siteChart(f *analysis.Findings) *figure.Figure {
	names, more := shownSites(f)
	var lines []figure.Line
	for i, name := range names {
		lines = append(lines, series(f, say.Plain(name), i, func(s *analysis.Step) (float64, bool) {
			if at := s.Site(name); at != nil {
				t, _, ok := at.MeanJob()
				return t, ok
			}
			return 0, false
		}, unit.Seconds))
	}
	c := against(f, "sitewalltime", "Mean wall clock time at each site against load", "mean wall clock time", wallAxis, lines...)
	if c != nil {
		c.Desc = more
	}
	return c
}

// siteSection is the table of the jobs at each site, step by step.
func siteSection(f *analysis.Findings) section {
	s := section{ID: "sitetable", Title: "Jobs at each site, step by step", PageOnly: true,
		Note: "A site is the far end of a link; its jobs are described as in the table of jobs. " +
			"Busy is the share of the time in which the link's wire to the site was sending.",
		table: table{Head: heads(f.Load(), "<site", "running", "done", "crashed", "failed", "mean time", "p50", "p90",
			"CPU efficiency", "interval", "events/s", "throughput", "link busy")}}
	for _, x := range steps(f) {
		for k := range x.Sites {
			at := &x.Sites[k]
			if at.Jobs == nil {
				continue
			}
			q := jobTook(at.JobSeconds, unit.Seconds)
			s.row(false, loadCell(f, x), at.Site, unit.Significant(at.RunningJobs), whole(at.Jobs.Done),
				lostText(at.Jobs.Crashed, &at.JobFigures), lostText(at.Jobs.Failed, &at.JobFigures), jobTime(&at.JobFigures, unit.Seconds), q[0], q[1],
				orDash(at.CPUEfficiency, unit.Percent), span(at.CPUEfficiencyLow, at.CPUEfficiencyHigh, unit.Percent),
				unit.Count(at.EventRate), unit.Bits(at.Throughput), orDash(linkBusy(x, at.Site), unit.Percent))
		}
	}
	return s
}

// linkBusy returns the share of time in which the wire to a site was busy; nil if the wire has no
// limit, or was not monitored.
func linkBusy(s *analysis.Step, site string) *float64 {
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Link != nil && h.Host == "link "+site {
			return h.Link.ToClients.Busy
		}
	}
	return nil
}

// siteTimes is the table of the mean wall clock time at each site, and of the number of lost jobs.
func siteTimes(f *analysis.Findings) section {
	names, more := shownSites(f)
	if len(names) == 0 {
		return section{}
	}
	longest := 0.0
	for i := range f.Curve {
		for k := range f.Curve[i].Sites {
			t, _, _ := f.Curve[i].Sites[k].MeanJob()
			longest = max(longest, t)
		}
	}
	by := figure.Seconds(longest)
	columns := []string{f.Load()}
	for _, n := range names {
		columns = append(columns, brief(n)+" "+by.Unit)
	}
	s := section{Title: "Mean wall clock time of a job at each site", table: table{Head: heads(columns...)}}
	lost := false
	for _, x := range steps(f) {
		cells := []string{loadCell(f, x)}
		for _, n := range names {
			cell, missing := siteCell(x.Site(n), by)
			lost = lost || missing
			cells = append(cells, cell)
		}
		s.row(false, cells...)
	}
	if lost {
		s.Title += ", and how many crashed or failed there"
	}
	if more != "" {
		s.Points = []string{more}
	}
	return s
}

// siteCell formats the mean time of a job at a site, with a ~ if it is an estimate, and the number
// of lost jobs.
func siteCell(at *analysis.SiteFigure, by figure.Scale) (text string, lost bool) {
	if at == nil || at.Jobs == nil {
		return "-", false
	}
	text = jobTime(&at.JobFigures, by.Text)
	if n := at.Jobs.Crashed + at.Jobs.Failed; n > 0 {
		return fmt.Sprintf("%s (%s lost)", text, whole(n)), true
	}
	return text, false
}
