package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/link"
	"weir/loadtest/measure"
	"weir/storage"
	"weir/storage/simulated"
)

// asking returns the simulated driver, whose services first request the address of a server.
func asking(found func(netip.AddrPort)) storage.Driver {
	d := simulated.Driver()
	open := d.Open
	d.Open = func(ctx context.Context, t storage.Target) (storage.Service, error) {
		if t.Reach == nil {
			return nil, errors.New("no way to ask where the server is reached")
		}
		if _, err := t.Reach(ctx, "nowhere.example.org", 1094); err == nil {
			return nil, errors.New("an error is not told")
		}
		at, err := t.Reach(ctx, "data.example.org", 1094)
		if err != nil {
			return nil, err
		}
		found(at)
		return open(ctx, t)
	}
	return d
}

// Workers that connect over the network are distributed to the sites of links, which do not include
// trunks. Each gets the addresses of servers over the link of its site.
func TestWorkersAtSites(t *testing.T) {
	t.Parallel()
	d := open(t, ServerOptions{})
	var mu sync.Mutex
	ports, asked := map[string]int{}, map[string]int{}
	driver := asking(func(at netip.AddrPort) { mu.Lock(); defer mu.Unlock(); ports[at.String()]++ })
	var workers []<-chan error
	for range 4 {
		err := make(chan error, 1)
		go func() { err <- Join(t.Context(), d.Pass(), JoinOptions{}, []storage.Driver{driver}) }()
		workers = append(workers, err)
	}
	conf, n := plan(stepOf(9, 1)), &notes{}
	conf.Sink = n
	conf.Plan.Links = []link.Named{{Name: "line"}, {Name: "far", Spec: link.Spec{Trunk: "line", Share: 2}}, {Name: "near"}}
	reach := func(_ context.Context, site int, server string, from netip.Addr) (uint16, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[fmt.Sprint(site, " ", server, " ", from)]++
		if u := (&url.URL{Host: server}); u.Hostname() == "nowhere.example.org" {
			return 0, errors.New("there is no such server")
		}
		return uint16(7000 + site), nil
	}
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 4, Reach: reach}))
	for i, w := range workers {
		if err := <-w; err != nil {
			t.Errorf("worker %d: %v", i+1, err)
		}
	}
	if len(ports) != 2 || ports["127.0.0.1:7000"] != 2 || ports["127.0.0.1:7001"] != 2 || len(asked) != 4 ||
		asked["0 data.example.org:1094 127.0.0.1"] != 2 {
		t.Errorf("reached at %v, asked %v", ports, asked)
	}
	if !n.has("step", "step 1: 9 clients on 4 workers") || n.has("warning", "") {
		t.Errorf("events %v", n.events)
	}
}

// A worker that connects is assigned to the site that needs it: as evenly as possible, also after a
// loss; with one client per worker, by the shares of the sites.
func TestVacancy(t *testing.T) {
	sites := []link.Named{{Name: "a", Spec: link.Spec{Share: 3}}, {Name: "b"}}
	for jobs, want := range map[bool][]int{false: {4, 4}, true: {6, 2}} {
		r := &run{controller: &controller{options: WorkerOptions{JobPerClient: jobs}}, sessions: map[string]*session{}}
		got := []int{0, 0}
		come := func(name string) *session {
			s := newSession(0)
			s.worker = &remote{site: r.vacancy(sites)}
			r.sessions[name] = s
			got[s.worker.site]++
			return s
		}
		var last *session
		for i := range 8 {
			last = come(strconv.Itoa(i))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("jobs %v: %v, want %v", jobs, got, want)
		}
		last.disconnect()
		if site := last.worker.site; come("new").worker.site != site {
			t.Errorf("jobs %v: the new worker is not where one was lost", jobs)
		}
	}
}

// Clients of a site without a worker are missing, and a warning has the reason.
func TestASiteWithoutWorker(t *testing.T) {
	t.Parallel()
	d := open(t, ServerOptions{})
	one := enter(t, d.Pass(), JoinOptions{})
	conf, n := plan(stepOf(4, 1)), &notes{}
	conf.Sink = n
	conf.Plan.Links = []link.Named{{Name: "far"}, {Name: "near"}}
	require.NoError(t, control(t, d, conf, WorkerOptions{Want: 1}))
	if err := <-one; err != nil {
		t.Error(err)
	}
	if !n.has(measure.EventWarning, "step 1 has 2 clients instead of 4: no worker is at the site near") {
		t.Errorf("events %v", n.events)
	}
}
