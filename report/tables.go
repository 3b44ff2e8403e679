package report

import (
	"fmt"

	"weir/analysis"
	"weir/internal/unit"
)

// Bounds of how much a page shows.
const (
	mostRows   = 400
	mostEvents = 100
)

func orDash(p *float64, text func(float64) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}

// took writes p50, p99, p99.9 and the longest of latencies; of none, that
// nothing is known.
func took(q *analysis.Quantiles) [4]string {
	if q == nil {
		return [4]string{"-", "-", "-", "-"}
	}
	return [4]string{unit.Seconds(q.P50), unit.Seconds(q.P99), unit.Seconds(q.P999), unit.Seconds(q.Max)}
}

func partSection(id, title string, parts []analysis.Part) section {
	s := section{ID: id, Title: title, Note: "Over the hold times of all steps.",
		table: table{Head: heads("<name", "throughput", "operations/s", "moved", "done", "failed", "p50", "p99", "max", "<")}}
	for _, p := range parts {
		q := took(p.Latency)
		s.row(false, serverName(p.Name), unit.Bits(p.Throughput), unit.Count(p.Operations), unit.Bytes(float64(p.Moved)), unit.Count(float64(p.Done)),
			unit.Count(float64(p.Errors)), q[0], q[1], q[3], classes(p.ErrorsBy))
	}
	return s
}

func checkSection(f *analysis.Findings) section {
	s := section{ID: "checks", Title: "Checks", Note: "A check that warns has evidence that the numbers may be wrong, or too little data: the result is suspect. One that fails makes it invalid. docs/methods.md tells what each of them catches.",
		table: table{Head: heads("<check", "<status", "~detail")}}
	for i := range f.Validity.Checks {
		c := &f.Validity.Checks[i]
		if f.Validity.Noted(c) {
			continue
		}
		s.row(false, c.Name, c.Status, c.Text())
		s.paint(1, "l "+c.Status)
	}
	return s
}

// noteSection lists what could not be checked.
func noteSection(f *analysis.Findings) section {
	s := section{ID: "notes", Title: "What could not be checked", Note: "This says nothing against the result, and nothing for it.", table: table{Head: heads("<check", "~not checked", "~to check it")}}
	for _, n := range f.Validity.Notes {
		s.row(false, n.Check, n.Unchecked, n.Remedy)
	}
	return s
}

func hostSection(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{Title: "Hosts, step by step", table: table{Head: heads(name, "<host", "<role", "cores", "CPU busy", "I/O wait", "steal", "busiest core",
		"server cores", "client cores", "server memory", "client memory", "disk busy", "disk read/s", "disk write/s", "net received", "net sent", "retransmits/s")}}
	for i := range f.Curve {
		for _, h := range f.Curve[i].Hosts {
			if h.Service != nil && h.Cores == 0 {
				continue // see serverSection
			}
			s.row(false, at(f, &f.Curve[i]), h.Host, string(h.Role), unit.Count(float64(h.Cores)), orDash(h.CPU, unit.Percent), orDash(h.IOWait, unit.Percent),
				orDash(h.Steal, unit.Percent), orDash(h.BusiestCore, unit.Percent), orDash(h.ServerCores, unit.Significant), orDash(h.ClientCores, unit.Significant),
				unit.Bytes(float64(h.ServerRSS)), unit.Bytes(float64(h.ClientRSS)), orDash(h.DiskBusy, unit.Percent),
				unit.Bytes(h.DiskRead), unit.Bytes(h.DiskWrite), unit.Bits(h.NetReceived), unit.Bits(h.NetSent), unit.Count(h.Retransmits))
		}
	}
	return s
}

// serverSection shows what the servers of the service say of themselves.
func serverSection(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{Title: "What the servers say of themselves, step by step", table: table{Head: heads(name, "<server", "<kind", "CPU cores", "CPU share",
		"logins/s", "refused/s", "redirects/s", "errors/s", "operations/s", "received", "sent", "connections", "threads", "queue")}}
	for i := range f.Curve {
		for _, h := range f.Curve[i].Hosts {
			v := h.Service
			if v == nil {
				continue
			}
			s.row(false, at(f, &f.Curve[i]), h.Host, v.Kind, unit.Significant(v.Cores), orDash(v.Share, unit.Percent),
				unit.Count(v.Logins), unit.Count(v.Refused), unit.Count(v.Redirects), unit.Count(v.Errors), orDash(v.Operations, unit.Count),
				orDash(v.Received, unit.Bits), orDash(v.Sent, unit.Bits), unit.Significant(v.Connections), unit.Significant(v.Threads), unit.Count(float64(v.Queue)))
		}
	}
	return s
}

func eventSection(series *analysis.Series) section {
	s := section{Title: "Events", table: table{Head: heads("<time", "<event", "step", "<class", "~text")}}
	for i, e := range series.Events {
		if i >= mostEvents {
			s.Title = fmt.Sprintf("Events (the first %d of %d)", mostEvents, len(series.Events))
			break
		}
		class := ""
		if e.Class != 0 {
			class = e.Class.String()
		}
		s.row(false, clock(e.Time), string(e.Kind), fmt.Sprint(e.Step), class, cutText(e.Text, mostErrorText))
	}
	return s
}
