package tpc

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/storage/gridcert/gridcerttest"
)

// A client of COPY may name any number of certificates.
func TestPinsAreForgotten(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	for i := range 3 * mostWays {
		c.way(way{pin: fmt.Sprintf("%064x", i)})
		if n := len(c.ways); n > mostWays {
			t.Fatalf("%d ways are kept", n)
		}
	}
	kept := way{pin: fmt.Sprintf("%064x", 3*mostWays-1)}
	if c.way(kept) != c.ways[kept] {
		t.Error("the last one is not used again")
	}
}

// TestCredentialsStayAtHome: a server that redirects to another host or port does not give it the
// token, the headers that belong to the target, or headers for another site, unless it is one of
// the target's servers.
func TestCredentialsStayAtHome(t *testing.T) {
	var mu sync.Mutex
	var shown []string
	status := http.StatusOK
	other := peer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, ""), "secret") {
				shown = append(shown, r.Method+" "+name)
			}
		}
		w.WriteHeader(status)
	})
	home := peer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s at home without the token", r.Method)
		}
		http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
	})
	c := client(t, Options{})
	at, err := url.Parse(other)
	require.NoError(t, err)
	lending := http.Header{"TransferHeaderAuthorization": {"Bearer another secret"}}
	for _, tt := range []struct {
		name, method string
		servers      []string
		header       http.Header
		status       int
		kind         Kind
		shown        int
	}{
		{"another port", http.MethodHead, nil, nil, 200, "", 0},
		{"another port that wants them", http.MethodGet, nil, nil, 401, Denied, 0},
		{"a copy", "COPY", nil, lending, 200, Denied, 0},
		{"another cluster", http.MethodHead, []string{"*.example.org", "127.0.0.1:1"}, nil, 200, "", 0},
		{"a data server", http.MethodHead, []string{at.Host}, nil, 200, "", 2},
		{"a copy at a data server", "COPY", []string{at.Host}, lending, 200, "", 3},
	} {
		shown, status = nil, tt.status
		res, err := c.Do(t.Context(), Request{Method: tt.method, Header: tt.header,
			Target: Target{URL: home + "/f", Token: "secret", Header: http.Header{"X-Key": {"secret"}}, Servers: tt.servers}})
		if err == nil {
			end(res)
		}
		if KindOf(err) != tt.kind || len(shown) != tt.shown {
			t.Errorf("%s: %v; shown %q", tt.name, err, shown)
		}
	}
}

// TestRedirectsDoNotComeNearer: a server of the public internet cannot redirect a client to a
// private network, and a server of a private network cannot redirect it to this machine.
func TestRedirectsDoNotComeNearer(t *testing.T) {
	c := client(t, Options{})
	to := func(at string) *url.URL { return &url.URL{Scheme: "https", Host: at} }
	for from, allowed := range map[string][]bool{ // 8.8.8.8, 10.0.0.1, 127.0.0.1, 169.254.169.254
		"9.9.9.9": {true, false, false, false}, "192.168.1.1": {true, true, false, false}, "127.0.0.1": {true, true, true, false},
		"fe80::1": {true, true, false, false},
	} {
		g := c.nearer(&net.TCPAddr{IP: net.ParseIP(from), Port: 443})
		for i, host := range []string{"8.8.8.8", "10.0.0.1", "127.0.0.1", "169.254.169.254"} {
			if err := g.Check(to(host)); (err == nil) != allowed[i] {
				t.Errorf("%s redirects to %s: %v", from, host, err)
			}
		}
	}
	inside := peer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a secret of this machine") })
	at, err := url.Parse(inside)
	require.NoError(t, err)
	if _, _, err := c.once(t.Context(), Request{Method: http.MethodGet, near: c.nearest[Network]}, at); KindOf(err) != Denied {
		t.Errorf("this machine was asked: %v", err)
	}
}

// TestClientCertificates: a certificate is presented to its endpoint and to servers that may get
// credentials, never to other servers that it redirects to, and each connection uses only one
// certificate.
func TestClientCertificates(t *testing.T) {
	var mu sync.Mutex
	shown := map[string][]string{}
	secure := func(name string, then http.HandlerFunc) (*httptest.Server, string) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := ""
			if len(r.TLS.PeerCertificates) > 0 {
				who = r.TLS.PeerCertificates[0].Subject.CommonName
			}
			mu.Lock()
			shown[name] = append(shown[name], who)
			mu.Unlock()
			then(w, r)
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s, s.URL
	}
	other, to := secure("other", func(http.ResponseWriter, *http.Request) {})
	home, at := secure("home", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, to+"/f", http.StatusTemporaryRedirect)
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(home.Certificate())
	pool.AddCert(other.Certificate())
	c := client(t, Options{TLS: &tls.Config{RootCAs: pool}})
	ca := gridcerttest.NewCA(t, "Clients")
	cert := func(name string) *tls.Certificate {
		p := ca.Host(t, name)
		return &tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key}
	}
	ada, bob := cert("ada"), cert("bob")
	ask := func(path string, cert *tls.Certificate, servers ...string) {
		t.Helper()
		res, err := c.Do(t.Context(), Request{Method: http.MethodHead, Target: Target{URL: at + path, Cert: cert, Servers: servers}})
		require.NoError(t, err)
		end(res)
	}
	for _, who := range []*tls.Certificate{ada, nil, bob, ada, nil} {
		ask("/f", who)
	}
	ask("/away", ada)
	ask("/away", bob, strings.TrimPrefix(to, "https://"))
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(shown["home"], " "); got != "ada  bob ada  ada bob" {
		t.Errorf("at home: %q", got)
	}
	if got := shown["other"]; !slices.Equal(got, []string{"", "bob"}) {
		t.Errorf("elsewhere: %q", got)
	}
}
