package mover

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
)

const secret = "eyJ.secret.token"

// giving serves data and stores the credentials of the request.
func giving(data []byte, shown *atomic.Value) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.Header.Get("Authorization"))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// TestTokensStayAtHome: after a redirect to another host or port the token is sent only if that is
// a server of the site, and never without TLS once TLS was used.
func TestTokensStayAtHome(t *testing.T) {
	data, sum := bytesOf(1, 1000)
	var shown atomic.Value
	to := source(t, giving(data, &shown))
	at, err := url.Parse(to)
	require.NoError(t, err)
	for server, want := range map[string]string{"": "", "*.example.org": "", "127.0.0.1:1": "", at.Host: "Bearer " + secret,
		"127.0.0.1": "Bearer " + secret} {
		from := source(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+secret {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			w.Header().Set("Server", "XrootD/v5.5.3") // any server can claim this
			http.Redirect(w, r, to+"/other?authz=x", http.StatusFound)
		})
		l := pullLease(from, "f", sum, 1000)
		l.Source.Token, l.Source.Servers = secret, []string{server}
		if out := do(t, newMover(t, Options{}), l); out.Fault != "" || shown.Load() != want {
			t.Errorf("%q: shown %q, want %q; %+v", server, shown.Load(), want, out)
		}
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "XrootD")
		http.Redirect(w, r, to+"/other", http.StatusTemporaryRedirect)
	}))
	defer secure.Close()
	l := pullLease(secure.URL, "f", sum, 1000)
	l.Source.Token, l.Source.Pin, l.Source.Servers = secret, pinOf(secure), []string{at.Host}
	if out := do(t, newMover(t, Options{}), l); out.Fault != "" || shown.Load() != "" {
		t.Errorf("out of TLS: shown %q; %+v", shown.Load(), out)
	}
}

func pinOf(s *httptest.Server) string {
	sum := sha256.Sum256(s.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

// TestSecretsAreNotTold: reasons and errors contain neither tokens nor queries.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	var url string
	url = source(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		http.Redirect(w, r, url+"/moved?authz="+secret, http.StatusFound)
	})
	gone := source(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://user:"+secret+"@127.0.0.1:1/x?authz="+secret, http.StatusFound)
	})
	for _, from := range []string{url, gone, "http://user:" + secret + "@127.0.0.1:1", "http://127.0.0.1:1\x7f" + secret} {
		l := pullLease(from, "f", "", 10)
		l.Source.Token = secret
		if out := do(t, newMover(t, Options{}), l); out.Fault == "" || strings.Contains(out.Reason, secret) {
			t.Errorf("%+v", out)
		}
	}
	l := pullLease(url, "f", "", 10)
	l.Source.Token = "two\r\nLines: " + secret
	if out := do(t, newMover(t, Options{}), l); out.Fault != transfer.Permanent || strings.Contains(out.Reason, secret) {
		t.Errorf("%+v", out)
	}
}

// TestTLS: with a pin, with an authority, and with neither.
func TestTLS(t *testing.T) {
	const size = 3 << 20
	data, sum := bytesOf(1, size)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Error("not HTTP/1.1")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer s.Close()
	l := pullLease(s.URL, "f", sum, size)
	failed(t, do(t, newMover(t, Options{}), l), transfer.Denied)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	if out := do(t, newMover(t, Options{CAs: pool}), l); out.Fault != "" || !out.Verified {
		t.Errorf("with its authority: %+v", out)
	}
	l.Source.Pin = strings.Repeat("00", 32)
	failed(t, do(t, newMover(t, Options{CAs: pool}), l), transfer.Denied)
	l.Source.Pin = strings.ToUpper(pinOf(s))
	if out := do(t, newMover(t, Options{}), l); out.Fault != "" || !out.Verified {
		t.Errorf("with its pin: %+v", out)
	}
}

// TestNoTLSThere: a server without TLS, and a server that sends nothing at all.
func TestNoTLSThere(t *testing.T) {
	t.Parallel()
	plain := source(t, http.NotFound)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for _, addr := range []string{strings.TrimPrefix(plain, "http://"), silent.Addr().String()} {
		out := do(t, impatient(t), pullLease("https://"+addr, "f", "", 10))
		failed(t, out, transfer.Transient)
	}
}

// TestGuard: no connection is made to a refused address, also after a redirect.
func TestGuard(t *testing.T) {
	data, sum := bytesOf(1, 1000)
	var shown atomic.Value
	to := source(t, giving(data, &shown))
	from := source(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+"/f", http.StatusFound) })
	refused := errors.New("this address is not allowed")
	m := newMover(t, Options{Guard: func(a netip.AddrPort) error {
		if strings.HasSuffix(to, a.String()) {
			return refused
		}
		return nil
	}})
	out := do(t, m, pullLease(from, "f", sum, 1000))
	if out.Fault != transfer.Denied || !strings.Contains(out.Reason, refused.Error()) || shown.Load() != nil {
		t.Errorf("%+v", out)
	}
}
