package run

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/loadtest/scenario"
	"weir/monitor"
)

func TestNamesOfBackendsAreLookedUp(t *testing.T) {
	known := map[string][]string{"gftp-1.example.org": {"192.0.2.11", "2001:db8::11"}, "gftp-2": {"192.0.2.12"}, "a": {"192.0.2.99"},
		"b": {"192.0.2.99"}}
	resolve := func(_ context.Context, host string) (all []netip.Addr, err error) {
		if known[host] == nil {
			return nil, errors.New("no such host")
		}
		for _, a := range known[host] {
			all = append(all, netip.MustParseAddr(a))
		}
		return all, nil
	}
	p := &scenario.Plan{Hosts: []monitor.Host{
		{Name: "one", Address: []string{"gftp-1.example.org:2811", "192.0.2.11:2811"}},
		{Name: "gftp-2", Interface: "eth1"},
		{Name: "a", Interface: "eth1"},
		{Name: "b", Interface: "eth1"},
		{Name: "nobody", Address: []string{"nowhere", "192.0.2.5"}},
		{Name: "gftp-1.example.org"},
	}}
	got := withAddresses(t.Context(), p, resolve)
	var all [][]string
	for _, h := range got.Hosts {
		all = append(all, h.Address)
	}
	want := [][]string{{"gftp-1.example.org:2811", "192.0.2.11:2811", "[2001:db8::11]:2811"}, {"gftp-2", "192.0.2.12"}, nil, nil,
		{"nowhere", "192.0.2.5"}, nil}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	if len(p.Hosts[0].Address) != 2 || p.Hosts[1].Address != nil {
		t.Errorf("the plan itself was changed: %+v", p.Hosts)
	}
}
