package monitor

import (
	"context"
	"fmt"
	"slices"
)

// A Balancer has the statistics of a balancer on the service that it spreads over several servers.
// Counts and bytes are of the span; IPVS counts all its services together.
type Balancer struct {
	Kind      string     `json:"kind"` // HAProxy or IPVS
	Connected int64      `json:"connected"`
	Received  int64      `json:"received_bytes"` // from clients, as far as they pass it
	Sent      int64      `json:"sent_bytes"`     // to clients, as far as they pass it
	Servers   []Balanced `json:"servers"`        // in the balancer's order
}

// Kinds of balancers.
const (
	HAProxy = "haproxy"
	IPVS    = "ipvs"
)

// A Balanced is one server behind a balancer. Counts and bytes are of the span. HAProxy forwards
// only the connections that it accepts: for FTP it counts the commands and replies, not the files.
// IPVS counts bytes of a server only if ipvsadm can be run, and bytes from servers only if they
// pass the balancer (not in its modes Route and Tunnel).
type Balanced struct {
	Name        string `json:"name"`              // as the balancer calls it
	Service     string `json:"service"`           // HAProxy's backend section, IPVS' virtual service
	Address     string `json:"address,omitempty"` // host:port, if the balancer reports it
	Status      string `json:"status,omitempty"`  // HAProxy's word, such as UP
	Weight      int    `json:"weight"`            // its share of new sessions, in proportion to the others'
	Connections int    `json:"connections"`       // now
	Limit       int    `json:"limit,omitempty"`   // of connections; 0: unlimited
	Queue       int    `json:"queue,omitempty"`   // sessions that wait for this server now
	Connected   int64  `json:"connected"`         // sessions that began
	Received    int64  `json:"received_bytes"`    // from clients
	Sent        int64  `json:"sent_bytes"`        // to clients
	Errors      int64  `json:"errors,omitempty"`  // failed connections and aborted responses
}

// balancerName is the host that a balancer's samples belong to.
const balancerName = "balancer"

// mostBalanced is the largest number of servers behind a balancer that are sampled.
const mostBalanced = 256

// balancing has the counters of a balancer at one moment.
type balancing struct {
	kind                      string
	connected, received, sent int64
	servers                   []Balanced
	past                      past
	pasts                     map[string]past // counters of each server, by service and name; nil if no counter fell
}

// since returns the differences of the counters between the moments of p and b, which lie the given
// seconds apart. It returns nil if a counter is implausible. A new server has no earlier counters:
// its counts before the first sample are left out.
func (b *balancing) since(p *balancing, seconds float64) *Balancer {
	r := p.past.rises(seconds, false)
	out := &Balancer{
		Kind: b.kind, Connected: rose(&r, b.connected, p.connected, mostEvents), Received: rose(&r, b.received, p.received, mostBytes),
		Sent: rose(&r, b.sent, p.sent, mostBytes), Servers: make([]Balanced, len(b.servers)),
	}
	b.past = r.past()
	bad := r.bad()
	for i, s := range b.servers {
		was := find(p.servers, &s, i)
		if was == nil {
			was = &s
		}
		key := s.Service + " " + s.Name
		r := p.pasts[key].rises(seconds, false)
		s.Connected, s.Received = rose(&r, s.Connected, was.Connected, mostEvents), rose(&r, s.Received, was.Received, mostBytes)
		s.Sent, s.Errors = rose(&r, s.Sent, was.Sent, mostBytes), rose(&r, s.Errors, was.Errors, mostEvents)
		if fell := r.past(); fell != nil {
			if b.pasts == nil {
				b.pasts = map[string]past{}
			}
			b.pasts[key] = fell
		}
		bad = bad || r.bad() || max(s.Connections, s.Queue) > mostConnections
		out.Servers[i] = s
	}
	if bad {
		return nil
	}
	return out
}

// mostCounted is the largest figure that readers of a run directory accept.
const mostCounted = 1 << 50

// find returns the same server among others, first searched at the likely index.
func find(all []Balanced, s *Balanced, likely int) *Balanced {
	return findNear(all, likely, func(o *Balanced) bool { return o.Name == s.Name && o.Service == s.Service })
}

// only keeps the servers of one service, or all servers if service is "", and sums their counters.
func (b *balancing) only(service string) error {
	if service == "" {
		return nil
	}
	var others []string
	b.servers = slices.DeleteFunc(b.servers, func(s Balanced) bool {
		if s.Service != service && !slices.Contains(others, s.Service) {
			others = append(others, s.Service)
		}
		return s.Service != service
	})
	if len(b.servers) == 0 {
		return fmt.Errorf("the balancer has no service %q: it has %q", service, others)
	}
	return nil
}

// A balancerProbe samples a balancer.
type balancerProbe struct {
	ask     func(ctx context.Context) (*balancing, error)
	end     func()
	service string
	clock   func() moment
	last    *balancing
	lastAt  moment
}

func newBalancer(b BalancerConfig, clock func() moment) (*balancerProbe, error) {
	p := &balancerProbe{service: b.Service, clock: clock, end: func() {}}
	switch {
	case b.HAProxy != "":
		h, err := newHAProxy(b.HAProxy)
		if err != nil {
			return nil, err
		}
		p.ask, p.end = h.ask, h.close
	case b.IPVS == LocalIPVS:
		p.ask = (&ipvs{dir: "/proc/net", program: "ipvsadm"}).ask
	default:
		page, err := newPage(Host{Name: balancerName, NodeExporter: b.IPVS}, clock)
		if err != nil {
			return nil, err
		}
		p.ask, p.end = (&ipvsPage{page}).ask, page.close
	}
	return p, nil
}

func (p *balancerProbe) close() { p.end() }

func (p *balancerProbe) look(ctx context.Context) (*Sample, error) {
	before := p.clock()
	now, err := p.ask(ctx)
	if err == nil {
		err = now.only(p.service)
	}
	if err != nil {
		return nil, fmt.Errorf("balancer: %w", err)
	}
	at := p.clock()
	at.mono = (before.mono + at.mono) / 2 // somewhere in between it counted
	var s *Sample
	if p.last != nil {
		s = &Sample{Time: at.wall, Seconds: (at.mono - p.lastAt.mono).Seconds()}
		if s.Balancer = now.since(p.last, s.Seconds); s.Balancer == nil {
			s.Seconds, s.LeftOut = 0, []string{LeftOutBalancer}
		}
	}
	p.last, p.lastAt = now, at
	return s, nil
}
