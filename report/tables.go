package report

import (
	"fmt"
	"strings"

	"weir/analysis"
	"weir/figure"
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

func stepSection(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{ID: "steps", Title: "Steps", Note: "What the hold time of each step gave; intervals are of the mean, 95%; first byte is the median.",
		Head: heads(name, "throughput", "interval", things(f), "each client", "p50", "p99", "p99.9", "max", "first byte", "errors", "server CPU", "client CPU", "steady", "<")}
	rates := f.Measure == analysis.Rate
	if rates { // nothing is moved
		s.Head = append(heads(name, things(f), "interval"), s.Head[4:]...)
	}
	for i := range f.Curve {
		x := &f.Curve[i]
		interval := "-"
		low, high, show := x.ThroughputLow, x.ThroughputHigh, unit.Bits
		each := unit.Bits(x.PerClient)
		if rates {
			low, high = x.OperationsLow, x.OperationsHigh
			show, each = unit.Count, unit.Count(x.PerClientRate)+"/s"
		}
		if low != nil && high != nil {
			interval = strings.TrimSuffix(show(*low), after(show(*high))) + " to " + show(*high)
		}
		q := took(x.Latency)
		first := "-"
		if x.FirstByte != nil {
			first = unit.Seconds(x.FirstByte.P50)
		}
		steady := "-"
		if x.Steady != nil {
			steady = map[bool]string{true: "yes", false: "no"}[*x.Steady]
		}
		mark := remark(f, x)
		gave := []string{unit.Bits(x.Throughput), interval, unit.Count(x.Operations)}
		if rates {
			gave = []string{unit.Count(x.Operations), interval}
		}
		s.row(isBest(f, x), append(append([]string{loadCell(f, x)}, gave...), each,
			q[0], q[1], q[2], q[3], first,
			failures(x), share(x.ServerCPU), share(x.ClientCPU), steady, mark)...)
	}
	return s
}

// after returns the unit of a text with its space, " Gbit/s".
func after(text string) string {
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		return text[i:]
	}
	return text
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
		Head: heads("<name", "throughput", "operations/s", "moved", "done", "failed", "p50", "p99", "max", "<")}
	for _, p := range parts {
		q := took(p.Latency)
		s.row(false, serverName(p.Name), unit.Bits(p.Throughput), unit.Count(p.Operations), unit.Bytes(float64(p.Moved)), unit.Count(float64(p.Done)),
			unit.Count(float64(p.Errors)), q[0], q[1], q[3], classes(p.ErrorsBy))
	}
	return s
}

func checkSection(f *analysis.Findings) section {
	s := section{ID: "checks", Title: "Checks", Note: "One check that fails makes the result invalid, one that warns suspect. docs/methods.md tells what each of them catches.",
		Head: heads("<check", "<status", "<detail")}
	for _, c := range f.Validity.Checks {
		s.row(false, c.Name, c.Status, c.Detail)
		last := s.Rows[len(s.Rows)-1].Cells
		last[1].Class = "l " + figure.Class(c.Status)
		last[2].Class = "w"
	}
	return s
}

func hostSection(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{Title: "Hosts, step by step", Head: heads(name, "<host", "<role", "cores", "CPU busy", "I/O wait", "steal", "busiest core",
		"server cores", "client cores", "server memory", "client memory", "disk busy", "disk read/s", "disk write/s", "net received", "net sent", "retransmits/s")}
	for i := range f.Curve {
		for _, h := range f.Curve[i].Hosts {
			if h.Service != nil && h.Cores == 0 {
				continue // see serverSection
			}
			s.row(false, at(f, &f.Curve[i]), h.Host, h.Role, unit.Count(float64(h.Cores)), orDash(h.CPU, unit.Percent), orDash(h.IOWait, unit.Percent),
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
	s := section{Title: "What the servers say of themselves, step by step", Head: heads(name, "<server", "<kind", "CPU cores", "CPU share",
		"logins/s", "refused/s", "redirects/s", "errors/s", "operations/s", "received", "sent", "connections", "threads", "queue")}
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

func phaseSection(f *analysis.Findings) section {
	s := section{Title: "Phases", Head: heads("step", "<phase", "seconds", "clients", "throughput", "each client", "errors")}
	for _, p := range f.Phases {
		s.row(false, fmt.Sprint(p.Step), p.Phase, unit.Significant(p.Seconds), unit.Significant(p.Clients), unit.Bits(p.Throughput), unit.Bits(p.PerClient), unit.Count(float64(p.Errors)))
	}
	return s
}

func eventSection(series *analysis.Series) section {
	s := section{Title: "Events", Head: heads("<time", "<event", "step", "<class", "<text")}
	for i, e := range series.Events {
		if i >= mostEvents {
			s.Title = fmt.Sprintf("Events (the first %d of %d)", mostEvents, len(series.Events))
			break
		}
		class := ""
		if e.Class != 0 {
			class = e.Class.String()
		}
		s.row(false, clock(e.Time), e.Kind, fmt.Sprint(e.Step), class, cutText(e.Text, mostErrorText))
		s.Rows[len(s.Rows)-1].Cells[4].Class = "w"
	}
	return s
}
