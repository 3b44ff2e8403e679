package rigs

import (
	"fmt"
	"strings"
)

// backendRigs returns the rigs about services with several servers.
func backendRigs() []rig {
	return []rig{
		{
			name: "one-backend-dead", needs: []string{"haproxy"},
			situation: "HAProxy without health checks in front of two servers, one of which is down.",
			truth:     "Every second request fails. The result is invalid.",
			play:      oneDead,
		}, {
			name:      "one-endpoint-slow",
			situation: "Two equal endpoints with response times of 100 ms and 5 ms.",
			truth:     "The slow endpoint is named.",
			play:      oneSlow,
		}, {
			name:      "one-endpoint-dead",
			situation: "Two equal endpoints, one of which is down.",
			truth:     "Half of the clients get nothing. The result is invalid.",
			play:      oneEndpointDead,
		}, {
			name:      "redirected",
			situation: "The target redirects each GET to another node.",
			truth:     "All bytes come from the other node, which is named.",
			play:      redirected,
		},
	}
}

func oneDead(s *stage) {
	w := s.faulty(spec{Delay: ms(5)})
	address := s.nowhere()
	front, socket := s.haproxy(w, w.host(), address)
	s.ask(wrk(), front.file(), 4, 2)
	files := s.list(front, true)
	r := s.run(reads(front, files, "4, 8", "3s", ", verify: 0%") + "balancer: {haproxy: " + socket + "}\n")
	s.invalid(r)
	s.between("error ratio", r.step(1).ErrorRatio, 0.2, 0.9)
	s.expect(r.findings != nil && r.Balance != nil, "the shares of the backends expected")
	if r.findings != nil && r.Balance != nil {
		for _, b := range r.Balance.Backends {
			s.expect(!strings.Contains(b.Name, "s2") || b.Share < 0.1, "the dead backend %s has a share of %.2f", b.Name, b.Share)
		}
	}
}

// twoEndpoints runs reads on two endpoints of one service.
func (s *stage) twoEndpoints(first, second *site) *ran {
	files := s.list(first, true)
	return s.run(fmt.Sprintf("target: [%q, %q]\n%sworkload: {kind: read, verify: 0%%}\nload: {clients: [4, 8], duration: 3s, %s}\n", first.url,
		second.url, files, brief))
}

func oneSlow(s *stage) {
	fast := s.faulty(spec{Delay: ms(5)})
	slow := s.faulty(spec{Delay: ms(100)})
	r := s.twoEndpoints(fast, slow)
	s.totals(r)
	a, b := r.server(fast.host()), r.server(slow.host())
	if a == nil || b == nil || a.Latency == nil || b.Latency == nil {
		s.expect(false, "the latency of each endpoint expected")
		return
	}
	s.between("slow endpoint's p50 over the fast one's", b.Latency.P50/a.Latency.P50, 6, 30)
}

// server returns the findings about a data server, or nil if there are no such findings.
func (f *findings) server(host string) *part {
	for i, p := range f.parts() {
		if p.Name == host {
			return &f.Servers[i]
		}
	}
	return nil
}

func oneEndpointDead(s *stage) {
	w := s.faulty(spec{Delay: ms(5)})
	address := s.nowhere()
	dead := *w
	dead.url = "http://" + address + "/data"
	r := s.twoEndpoints(w, &dead)
	s.totals(r)
	s.notValid(r)
	if r.findings == nil {
		s.fails(r)
		return
	}
	x := r.server(strings.TrimSuffix(dead.host(), "/"))
	s.expect(x != nil && x.Errors > 0, "the dead endpoint's errors expected")
}

func redirected(s *stage) {
	node := s.faulty(spec{Delay: ms(2)})
	c := spec{Redirect: strings.TrimSuffix(node.url, "/data")}
	w := s.faulty(c)
	s.ask(wrk(), w.file(), 4, 2)
	r := s.read(w, "2, 4", "3s", ", think: 2ms")
	var moved int64
	for _, p := range r.parts() {
		if p.Name == node.host() {
			moved = p.Moved
		}
	}
	s.expect(moved > 0 && float64(moved) >= 0.99*float64(r.sum.moved), "all bytes from %s expected: %d of %d", node.host(), moved, r.sum.moved)
	s.between("error ratio", r.best().ErrorRatio, 0, 0.001)
}

// parts returns the data servers of a run.
func (f *findings) parts() []part {
	if f == nil {
		return nil
	}
	return f.Servers
}
