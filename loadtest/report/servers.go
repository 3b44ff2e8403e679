package report

import (
	"cmp"
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

const whereNote = "Each from the start of the operation: to the end of the login (of new sessions), to the redirector's answer, " +
	"to the first byte, to the end. A slow redirector shows in redirect, a slow data server in what comes after it. Waits are those that " +
	"the service requested, failed operations included; reopened are files whose data server was lost."

// whereSection is the table of the parts of the latency. It has no rows if the service neither
// redirects clients to other servers nor makes them wait.
func whereSection(f *analysis.Findings) section {
	s := section{ID: "where", Title: "Where the time goes", Note: whereNote,
		table: table{Head: heads(f.Load(), "login p50", ".p99", "redirect p50", "p99", "first byte p50", "p99", "whole p50", "p99", "waits",
			"each", ".of the latency", ".Retry-After", ".of the time", "reopened")}}
	if find(f, func(x *analysis.Step) bool {
		return x.Redirect != nil || x.Waits > 0 || x.RetryAfter > 0 || x.Reopened > 0
	}) == nil {
		return s
	}
	for _, x := range steps(f) {
		cells := []string{loadCell(f, x)}
		for _, q := range []*analysis.Quantiles{x.Login, x.Redirect, x.FirstByte, x.Latency} {
			cells = append(cells, took(q)[0], took(q)[1])
		}
		s.row(false, append(append(cells, waitCells(x)...), whole(x.Reopened))...)
	}
	return s
}

// waitCells returns the number of waits that the service requested, the mean wait, its share of the
// latency, and the pauses after Retry-After with their share of the clients' time.
func waitCells(s *analysis.Step) []string {
	cells := []string{whole(s.Waits), "-", "-", "-", "-"}
	if s.Waits > 0 {
		cells[1] = unit.Seconds(s.Waited / float64(s.Waits))
		if q := s.Latency; q != nil {
			cells[2] = unit.Percent(s.Waited / (q.Mean * float64(q.Count)))
		}
	}
	if s.RetryAfter > 0 {
		cells[3], cells[4] = unit.Seconds(s.RetryAfter), unit.Percent(s.AskedShare)
	}
	return cells
}

const connectionsNote = "Connect and first byte count from the start of the operation, the TLS handshake from the transport connection. " +
	"Connect and handshake are of new sessions only; a kept session has neither."

// connectionsSection is the table of the costs of new sessions. It has no rows if no TLS handshake
// was measured and few operations began a session.
func connectionsSection(f *analysis.Findings) section {
	s := section{ID: "connections", Title: "Connections", Note: connectionsNote,
		table: table{Head: heads(f.Load(), "sessions/s", "connect p50", ".p99", "TLS handshake p50", ".mean", "p99", "first byte p50",
			".p99", "resumed")}}
	if find(f, func(x *analysis.Step) bool {
		return x.Handshake != nil || x.Connect != nil && 10*x.Connect.Count > x.Done
	}) == nil {
		return s
	}
	for _, x := range steps(f) {
		c, h, b := took(x.Connect), took(x.Handshake), took(x.FirstByte)
		mean, resumed := "-", "-"
		if x.Handshake != nil {
			mean, resumed = unit.Seconds(x.Handshake.Mean), unit.Percent(float64(x.Resumed)/float64(max(x.Handshakes, 1)))
		}
		s.row(false, loadCell(f, x), unit.Count(x.SessionRate), c[0], c[1], h[0], mean, h[1], b[0], b[1], resumed)
	}
	return s
}

func serverName(name string) string { return cmp.Or(name, "(the target itself)") }

// serverChapter describes the distribution of the load over the data servers. If more is known
// about them as backends and no operation failed, a text contains only the chapter on backends.
func serverChapter(f *analysis.Findings, series *analysis.Series, plots []figure.Figure) chapter {
	c := chapter{ID: "servers", Title: "Data servers", Charts: drawings(plots)}
	s := reference(f)
	if s != nil {
		c.Lead = imbalance(f, s)
	}
	if s != nil && len(f.Servers) > 1 {
		failed := slices.ContainsFunc(s.Servers, func(x analysis.Share) bool { return x.Errors > 0 })
		c.PageOnly = balanced(f) && !failed
		c.Parts = append(c.Parts, partSection("whole", "All steps together", f.Servers), serverSteps(f))
	}
	own := serverSection(f)
	own.PageOnly = true
	c.Parts = append(c.Parts, filled(pauseSection(f, series), own)...)
	return c
}

// pauseSection lists the longest pause of each data server: three or more intervals without
// throughput between two intervals with throughput.
func pauseSection(f *analysis.Findings, series *analysis.Series) section {
	s := section{ID: "pauses", Title: "Pauses of data servers", Note: "Times since the start of the run; the longest pause of each server.",
		table: table{Head: heads("<server", "from", "to")}}
	if series == nil {
		return s
	}
	for i := range series.Servers {
		x := &series.Servers[i]
		longest, from, to, last := 2, 0, 0, -1
		for k := range x.Points {
			if p := &x.Points[k]; f.Measure == analysis.Rate && p.Operations <= 0 || f.Measure != analysis.Rate && p.Throughput <= 0 {
				continue
			}
			if gap := k - last - 1; last >= 0 && gap > longest {
				longest, from, to = gap, last, k
			}
			last = k
		}
		if to > 0 {
			s.row(false, serverName(x.Name), unit.Seconds(x.Points[from].At), unit.Seconds(x.Points[to].At))
		}
	}
	return s
}

// serverSteps is the table of the work of each data server in each step.
func serverSteps(f *analysis.Findings) section {
	s := section{ID: "shares", Title: "Data servers, step by step",
		Note: "Shares of each step's throughput and operations. Failures of a server that could not even be reached are its own; " +
			"those of the target itself are the redirector's.",
		table: table{Head: heads(f.Load(), "<server", "throughput", "share", "operations/s", "share", "failed", "<error classes")}}
	for _, step := range steps(f) {
		for _, x := range step.Servers {
			s.row(false, at(f, step), serverName(x.Name), unit.Bits(x.Throughput), unit.Percent(x.ThroughputShare),
				unit.Count(x.Operations), unit.Percent(x.OperationsShare), whole(x.Errors), classes(x.ErrorsBy))
		}
	}
	return s
}

// serverSection shows the figures that the servers of the service report about themselves.
func serverSection(f *analysis.Findings) section {
	s := section{Title: "What the servers report about themselves, step by step",
		table: table{Head: heads(f.Load(), "<server", "<kind", "CPU cores", "CPU share",
			"logins/s", "refused/s", "redirects/s", "errors/s", "operations/s", "received", "sent", "connections", "threads", "queue")}}
	for _, step := range steps(f) {
		for _, h := range step.Hosts {
			v := h.Service
			if v == nil {
				continue
			}
			s.row(false, at(f, step), h.Host, v.Kind, unit.Significant(v.Cores), orDash(v.Share, unit.Percent),
				unit.Count(v.Logins), unit.Count(v.Refused), unit.Count(v.Redirects), unit.Count(v.Errors), orDash(v.Operations, unit.Count),
				orDash(v.Received, unit.Bits), orDash(v.Sent, unit.Bits), unit.Significant(v.Connections), unit.Significant(v.Threads),
				whole(int64(v.Queue)))
		}
	}
	return s
}

// shareOf returns the share by which servers are compared.
func shareOf(f *analysis.Findings, x *analysis.Share) float64 {
	if f.Measure == analysis.Rate {
		return x.OperationsShare
	}
	return x.ThroughputShare
}

// working lists the data servers of a step with a share of the work, the server with the largest
// share first. The target itself is included only if its share is above 0.
func working(f *analysis.Findings, s *analysis.Step) []analysis.Share {
	all := slices.DeleteFunc(slices.Clone(s.Servers), func(x analysis.Share) bool { return x.Name == "" && shareOf(f, &x) == 0 })
	slices.SortStableFunc(all, func(a, b analysis.Share) int { return cmp.Compare(shareOf(f, &b), shareOf(f, &a)) })
	return all
}

// imbalance labels the shares of the data servers of a step, "" for fewer than two servers.
func imbalance(f *analysis.Findings, s *analysis.Step) string {
	all := working(f, s)
	n := len(all)
	if n < 2 {
		return ""
	}
	even, word := 1/float64(n), "very uneven"
	most, least := shareOf(f, &all[0]), shareOf(f, &all[n-1])
	switch {
	case most <= 1.1*even && least >= 0.9*even:
		word = "even within 10%"
	case most <= 1.5*even && least >= 0.5*even:
		word = "uneven"
	}
	text := fmt.Sprintf("Shares of %s, %s: largest %s (%s), smallest %s (%s), even %s: %s", say.Plural(n, "data server"), at(f, s),
		unit.Percent(most), say.Plain(serverName(all[0].Name)), unit.Percent(least), say.Plain(serverName(all[n-1].Name)),
		unit.Percent(even), word)
	idle := len(slices.DeleteFunc(all, func(x analysis.Share) bool { return shareOf(f, &x) >= 0.1*even }))
	if idle > 0 {
		text += fmt.Sprintf("; %d below a tenth of an even share", idle)
	}
	return text
}
