package tpc

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestGuardsOfHosts(t *testing.T) {
	g := &Guard{Hosts: []string{"a.example", "b.example:1094", "*.grid.example", "[2a00::1]:443"}}
	for text, want := range map[string]bool{
		"https://a.example/f":                true,
		"http://a.example:8080/f":            true,
		"https://A.Example./f":               true,
		"https://b.example:1094/":            true,
		"https://b.example/":                 false,
		"https://x.grid.example/":            true,
		"https://x.y.grid.example:1/":        true,
		"https://grid.example/":              false,
		"https://.grid.example/":             false,
		"https://evilgrid.example/":          false,
		"https://a.example.evil/":            false,
		"https://xa.example/":                false,
		"https://a.example@evil.example/":    false,
		"https://u:p@a.example/":             false,
		"ftp://a.example/":                   false,
		"file:///etc/passwd":                 false,
		"gopher://a.example/":                false,
		"//a.example/":                       false,
		"https:///f":                         false,
		"https:a.example":                    false,
		"https://[2a00::1]/":                 true,
		"https://[2a00::1]:444/":             false,
		"https://127.0.0.1/":                 false,
		"https://a.example%00.evil.example/": false,
	} {
		u, err := url.Parse(text)
		if got := err == nil && g.Check(u) == nil; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	none := &Guard{}
	if none.Check(&url.URL{Scheme: "https", Host: "a.example"}) == nil {
		t.Error("a guard without a list lets everybody in")
	}
	if (&Guard{Hosts: []string{"*"}, Encrypted: true}).Check(&url.URL{Scheme: "http", Host: "a.example"}) == nil {
		t.Error("plain http was allowed")
	}
}

// All ways to write addresses of this machine and of private networks.
func TestGuardsOfAddresses(t *testing.T) {
	g := &Guard{Hosts: []string{"*"}}
	for _, text := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.170", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
		"2002:7f00:1::", "2001::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1", "::ffff:169.254.169.254",
	} {
		ip := netip.MustParseAddr(text)
		at := netip.AddrPortFrom(ip, 80).String()
		if g.Dialing("tcp", at, nil) == nil || g.Check(&url.URL{Scheme: "http", Host: at}) == nil {
			t.Errorf("%s was allowed", text)
		}
		if err := (&Guard{Hosts: []string{"*"}, Private: true}).Dialing("tcp", at, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"8.8.8.8:443", "172.32.0.1:80", "192.169.0.1:80", "[2a00:1450::1]:443", "[2600:900::1]:1094", "11.0.0.1:1"} {
		if err := g.Dialing("tcp", text, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "x", "8.8.8.8", "/run/socket"} {
		if g.Dialing("tcp", text, nil) == nil {
			t.Errorf("%q was allowed", text)
		}
	}
	if g.Dialing("unix", "8.8.8.8:80", nil) == nil || g.Dialing("udp", "8.8.8.8:80", nil) == nil {
		t.Error("something else than TCP was allowed")
	}
}
