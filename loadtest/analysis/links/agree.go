package links

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/challenge"
	"weir/monitor"
)

// A Counted compares the bytes that the copies of a site moved in one direction with the counters of
// its hosts' network interfaces, less headers, over the whole challenge.
type Counted struct {
	Hosts float64 `json:"hosts_bytes"`  // of each host the interface with the most bytes, without the loopback interface
	Moved float64 `json:"copies_bytes"` // pauses included
	Off   float64 `json:"excess_ratio"` // of hosts over copies: foreign traffic, TLS and repeated packets; below 0: bytes are missing
}

// leastCovered is the share of the challenge in which each host of a site must be sampled.
const leastCovered = 0.98

// A nicSum sums the payload of an interface.
type nicSum struct{ in, out float64 }

// A netSum sums the interfaces of a host that belongs to one site alone.
type netSum struct {
	seconds float64
	nics    map[string]nicSum
}

// network adds the interfaces of a sample of a host.
func (h *hostSums) network(m *monitor.Sample) {
	sites := h.sites[m.Host]
	if len(sites) != 1 || len(m.Nets) == 0 {
		return
	}
	n := h.nets[m.Host]
	if n == nil {
		n = &netSum{nics: map[string]nicSum{}}
		h.nets[m.Host] = n
	}
	n.seconds += m.Seconds
	for nic := range basics.Each(m.Nets) {
		if nic.Name == "lo" {
			continue
		}
		headers, _ := monitor.HeaderBytes(nic.Name, false)
		sum := n.nics[nic.Name]
		sum.in += float64(max(0, nic.Received-headers*nic.PacketsIn))
		sum.out += float64(max(0, nic.Sent-headers*nic.PacketsOut))
		n.nics[nic.Name] = sum
	}
}

// counted returns the comparison of a site in both directions, nil if not all of its hosts were
// sampled for the whole challenge, or if they belong to other sites as well.
func (s *Sums) counted(site int, p *challenge.Site) (in, out *Counted) {
	var sum nicSum
	for i := range p.Hosts {
		n := s.hosts.nets[p.Hosts[i].Name]
		if n == nil || n.seconds < leastCovered*s.control.covered {
			return nil, nil
		}
		var most nicSum
		for _, nic := range n.nics {
			most.in, most.out = max(most.in, nic.in), max(most.out, nic.out)
		}
		sum.in, sum.out = sum.in+most.in, sum.out+most.out
	}
	var moved nicSum
	for l := range basics.Each(s.links) {
		if l.dest == site {
			moved.in += float64(l.moved)
		}
		if l.source == site {
			moved.out += float64(l.moved)
		}
	}
	figure := func(hosts, moved float64) *Counted {
		if len(p.Hosts) == 0 || hosts == 0 || moved == 0 {
			return nil
		}
		return &Counted{Hosts: hosts, Moved: moved, Off: stats.Ratio(hosts-moved, moved)}
	}
	return figure(sum.in, moved.in), figure(sum.out, moved.out)
}
