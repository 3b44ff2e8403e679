package limits

import (
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
)

// Largest differences at which the sources of the backends' figures agree.
const (
	backendsOK   = 0.02 // of the bytes of all backends together
	backendsEach = 0.05 // of the bytes of each backend
)

// clientBytes returns the bytes that clients moved with each backend, by its index and the stretch
// of time.
func (bs *Backends) clientBytes() map[int]map[int64]float64 {
	moved := map[int]map[int64]float64{}
	for name, counts := range bs.run.Service.Of {
		if name == "" || name == measure.Others {
			continue
		}
		place := bs.place(name)
		if moved[place] == nil {
			moved[place] = map[int64]float64{}
		}
		for k, c := range counts {
			moved[place][k] += float64(c.Moved)
		}
	}
	return moved
}

// Unnamed returns a warning of data servers that are not backends in the plan although the plan has
// backends.
func (bs *Backends) Unnamed(b *Balance) []fact.Fact {
	if b == nil || bs.declared == 0 {
		return nil
	}
	var names []string
	for _, x := range b.Backends[bs.declared:] {
		names = append(names, x.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return []fact.Fact{fact.New("warning.unnamed_servers", "servers", len(names), "names", fact.List(names))}
}

// ofRun returns the bytes of a backend over the whole run by a source; false if the source has no
// bytes of it, or lacks some of them.
func (bs *Backends) ofRun(source string, place int) (float64, bool) {
	s := bs.steps[0][place]
	if bs.lacks[sourceOf{source, place}] {
		return 0, false
	}
	if s == nil {
		return 0, source == ByLog && place < bs.declared && bs.hosts[place].TransferLog != ""
	}
	switch source {
	case ByLog:
		return s.logged, s.hasLog || place < bs.declared && bs.hosts[place].TransferLog != ""
	case ByInterface:
		return s.wire, s.hasWire
	case ByItself:
		return s.reported, s.hasReport
	}
	return s.late, bs.balancer != "" && s.sessions.Weight > 0
}

// Compare compares the clients' measurements of each backend with its log, its interface, its own
// report and the balancer, over the whole run. It returns facts for each source that reports bytes.
// agree is false if a source does not agree.
func (bs *Backends) Compare(b *Balance) (found []fact.Fact, agree bool) {
	clients := map[int]float64{}
	for place, counts := range bs.clientBytes() {
		for _, bytes := range counts {
			clients[place] += bytes
		}
	}
	agree = true
	for _, source := range []string{ByLog, ByInterface, ByItself, ByBalancer} {
		one, agrees := bs.compare(b, source, clients)
		found, agree = append(found, one...), agree && agrees
	}
	return found, agree
}

// compare compares a source with the clients: backend by backend if the clients distinguish data
// servers, otherwise by the sum of all backends.
func (bs *Backends) compare(b *Balance, source string, clients map[int]float64) (found []fact.Fact, agrees bool) {
	var there, seen, all float64
	worst, who, reported := 0.0, "", 0
	for _, n := range clients {
		all += n
	}
	apart := all >= leastReported*float64(bs.run.Moved)
	for i := range b.Backends {
		n, ok := bs.ofRun(source, b.Backends[i].place)
		if !ok {
			continue
		}
		reported++
		there += n
		own := clients[b.Backends[i].place]
		seen += own
		if off := stats.Ratio(n-own, own); apart && own >= hosts.LeastSeen && math.Abs(off) > math.Abs(worst) {
			worst, who = off, b.Backends[i].Name
		}
	}
	if !apart {
		seen = float64(bs.run.Moved)
	}
	name := map[string]string{ByLog: "transfer logs", ByInterface: "interfaces", ByItself: "server reports",
		ByBalancer: "the balancer"}[source]
	switch {
	case reported == 0 || seen < hosts.LeastSeen || there == 0 && source != ByLog || !apart && reported < len(b.Backends):
		return nil, true
	case source != ByLog && there < leastReported*seen && source != ByInterface:
		return []fact.Fact{fact.New("check.backends.another_path", "source", name, "there", there, "clients", seen)}, true
	}
	off := stats.Ratio(there-seen, seen)
	found = append(found, fact.New("check.backends.compared", "clients", seen, "source", name, "backends", reported, "there", there,
		"difference", off))
	if who != "" {
		found = append(found, fact.New("check.backends.most", "difference", worst, "backend", who))
	}
	switch {
	case bs.agrees(source, off, backendsOK) && bs.agrees(source, worst, backendsEach):
		return found, true
	case off > 0:
		return append(found, fact.New("check.backends.other_clients")), false
	}
	return append(found, fact.New("check.backends.other_servers")), false
}

// agrees reports whether a source may differ so much: all sources except the log also count headers
// and requests, and they count until the last sample, which may be late and so matters in short
// runs.
func (bs *Backends) agrees(source string, off, bound float64) bool {
	if source == ByLog {
		return math.Abs(off) <= bound
	}
	held := bs.whole[0]
	bound = 2*bound + stats.Ratio(hosts.MostLateLook/2, held.To.Sub(held.From).Seconds())
	return off >= -bound && off <= bound+bs.run.Overhead()-1
}
