package rigs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/lab"
)

// A healthyRun is a run in which nothing was wrong.
type healthyRun struct {
	kind  string
	alarm string // the false alarm, "" if there was no alarm
	says  string
}

// A healthyCase is one kind of healthy runs.
type healthyCase struct {
	name     string
	scenario string
}

// calm has the phases of healthy runs: they are as short as a valid run allows.
const calm = "ramp: 100ms, warmup: 200ms, graceful_stop: 2s"

// tryHealthy makes the number of healthy runs that -healthy requests, of all kinds in turn.
func tryHealthy(t *testing.T, weir string) (all []healthyRun) {
	if *healthyFlag <= 0 {
		return nil
	}
	s := newStage(t, weir, longest)
	cases := healthyCases(s)
	for n := 0; len(all) < *healthyFlag && n < 2**healthyFlag; n++ {
		c := cases[n%len(cases)]
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		s.ctx = ctx
		r := s.run(fmt.Sprintf("seed: %d\n%s", n+1, c.scenario))
		cancel()
		if r.tooCrowded() {
			continue // whether or not it has an alarm: other programs used much of the machine
		}
		h := healthyRun{kind: c.name, alarm: alarm(r), says: r.reports()}
		if h.alarm == "" {
			h.alarm = blames(r)
		}
		all = append(all, h)
		if h.alarm != "" {
			t.Logf("FALSE ALARM  healthy run %d, %s: %s", len(all), h.kind, h.alarm)
		}
	}
	return all
}

// blames returns a limit that a run reports although it cannot exist: clients that think leave the
// service idle. If other programs used much of the CPU, it may be saturated.
func blames(r *ran) string {
	l := r.limit()
	if r.peaks() {
		return "a peak where there is none"
	}
	if strings.HasPrefix(l.Resource, "cpu") && r.crowded() {
		return ""
	}
	switch l.Resource {
	case "", "latency", "none", "unknown":
		return ""
	}
	return "limit " + l.Resource + " where there is none"
}

// healthyCases starts servers and returns the kinds of runs on them.
func healthyCases(s *stage) []healthyCase {
	c := lab.NginxConfig{}
	c.TLS = true
	web, nginx := s.nginx(c, 32, 64<<10)
	xrd, xrootd := s.xrootd(32, 64<<10)
	apache, _ := s.apache(32, 64<<10)
	light, _ := s.lighttpd(32, 64<<10, "")
	own := s.faulty(spec{Delay: ms(3)})
	secure, http := *web, *xrd
	secure.url, http.url = nginx.URLs["https"], xrootd.URLs["http"]
	const one, two = "clients: [4], duration: 3s", "clients: [2, 4], duration: 3s"
	var all []healthyCase
	for _, x := range []struct {
		name             string
		on               *site
		work, load, more string
	}{
		{"reads from nginx", web, "kind: read, think: 5ms", two, ""},
		{"writes to nginx", web, "kind: write, size: 64KiB, think: 5ms", one, ""},
		{"stats of nginx", web, "kind: mix, mix: {stat: 1}, think: 4ms", one, ""},
		{"open load on nginx", web, "kind: read", "rate: 200/s, duration: 3s", ""},
		{"reads from nginx over TLS", &secure, "kind: read, think: 5ms", one, "auth: {ca_file: " + nginx.CAFile + "}\n"},
		{"reads from XRootD", xrd, "kind: read, think: 5ms", two, ""},
		{"writes to XRootD", xrd, "kind: write, size: 64KiB, think: 5ms", one, ""},
		{"reads from XRootD by HTTP", &http, "kind: read, think: 5ms", one, ""},
		{"reads from Apache", apache, "kind: read, think: 5ms", two, ""},
		{"reads of parts from lighttpd", light, "kind: read, part: {size: 4KiB, count: 4}, think: 5ms", one, ""},
		{"reads that are verified", own, "kind: read, verify: 50%, think: 3ms", one, ""},
		{"fresh sessions", own, "kind: read, session: fresh, think: 5ms", one, ""},
	} {
		files := ""
		if !strings.HasPrefix(x.work, "kind: write") {
			files = s.list(x.on, true)
		}
		all = append(all, healthyCase{x.name, fmt.Sprintf("target: %s\n%sworkload: {%s}\nload: {%s, %s}\n%s", x.on.url, files, x.work, x.load,
			calm, x.more)})
	}
	s.sleep(200 * time.Millisecond) // the start of the servers is not part of a run
	return all
}
