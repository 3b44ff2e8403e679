package gridcert

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	reverse := func(_ context.Context, address string) ([]string, error) {
		if address == "192.0.2.1" {
			return []string{"node1.example.org."}, nil
		}
		return nil, errors.New("no such host")
	}
	cert := func(common string, names ...string) *x509.Certificate {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: common}, DNSNames: names}
		return c
	}
	withIP := cert("x", "y")
	withIP.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 9)}
	for _, c := range []struct {
		name          string
		cert          *x509.Certificate
		host, address string
		allowed       string
		noDNS         bool
		want          bool
	}{
		{name: "alternative name", cert: cert("x", "a.example.org"), host: "A.example.org", want: true},
		{name: "the root's dot", cert: cert("x", "a.example.org"), host: "a.example.org.", want: true},
		{name: "wildcard", cert: cert("x", "*.example.org"), host: "a.example.org", want: true},
		{name: "wildcard for part of a label", cert: cert("x", "xrd*.example.org"), host: "xrd7.example.org", want: true},
		{name: "wildcard for two labels", cert: cert("x", "*.example.org"), host: "a.b.example.org"},
		{name: "wildcard alone", cert: cert("x", "*"), host: "localhost"},
		{name: "wildcard in the second label", cert: cert("x", "a.*.org"), host: "a.example.org"},
		{name: "wildcard for an address", cert: cert("x", "*.0.2.1"), host: "192.0.2.1", noDNS: true},
		{name: "common name", cert: cert("a.example.org"), host: "a.example.org", noDNS: true, want: true},
		{name: "common name of a service", cert: cert("host/a.example.org"), host: "a.example.org", want: true},
		{name: "common name beside others", cert: cert("a.example.org", "b.example.org"), host: "a.example.org", noDNS: true},
		{name: "common name beside others, DNS trusted", cert: cert("a.example.org", "b.example.org"), host: "a.example.org", want: true},
		{name: "other name", cert: cert("a.example.org"), host: "b.example.org"},
		{name: "no name", cert: cert(""), host: ""},
		{name: "suffix", cert: cert("x", "example.org"), host: "a.example.org"},
		{name: "address in the certificate", cert: withIP, host: "192.0.2.9", noDNS: true, want: true},
		{name: "another address", cert: withIP, host: "192.0.2.8", noDNS: true},
		{name: "name of the address in the DNS", cert: cert("x", "node1.example.org"), host: "192.0.2.1", want: true},
		{name: "the same, DNS forbidden", cert: cert("x", "node1.example.org"), host: "192.0.2.1", noDNS: true},
		{name: "alias, name of its address", cert: cert("node1.example.org"), host: "alias.example.org", address: "192.0.2.1", want: true},
		{name: "alias, address without a name", cert: cert("node1.example.org"), host: "alias.example.org", address: "192.0.2.2"},
		{name: "allowed besides", cert: cert("node7"), host: "192.0.2.7", allowed: "other|node*", want: true},
		{name: "allowed by place holder", cert: cert("x/xrd.a.org"), host: "a.org", allowed: "xrd.<host>", want: true},
		{name: "denied", cert: cert("a.example.org"), host: "a.example.org", allowed: "*|-a.*"},
	} {
		n := NewNames(c.allowed, "", !c.noDNS)
		n.Lookup = reverse
		err := n.Check(c.cert, c.host, c.address, time.Now())
		if (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNamesAskOnce checks that the DNS is queried once for an address, again after a while, and
// sooner if it failed.
func TestNamesAskOnce(t *testing.T) {
	asked := 0
	n := NewNames("", "", true)
	answer := error(nil)
	n.Lookup = func(context.Context, string) ([]string, error) {
		asked++
		return []string{"a"}, answer
	}
	now := time.Now()
	for _, step := range []struct {
		later time.Duration
		err   error
		want  int
	}{
		{0, nil, 1}, {believed - 1, nil, 1}, {believed, errors.New("down"), 2}, {believed + 9*time.Second, nil, 2},
		{believed + 10*time.Second, nil, 3},
	} {
		answer = step.err
		n.lookup("192.0.2.1", now.Add(step.later))
		if asked != step.want {
			t.Errorf("after %v: asked %d times, want %d", step.later, asked, step.want)
		}
	}
}
