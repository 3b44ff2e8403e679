package webdav

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/storage"
	"weir/storage/storagetest"
)

// secureServer sends 300 kB, and requests a certificate according to auth.
func secureServer(t *testing.T, auth tls.ClientAuthType) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth != tls.NoClientCert && len(r.TLS.PeerCertificates) == 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(make([]byte, 300_000)) // the client reports missing bytes
	}))
	s.TLS = &tls.Config{ClientAuth: auth}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestTLS(t *testing.T) {
	plain, asks := secureServer(t, tls.NoClientCert), secureServer(t, tls.RequestClientCert)
	pool := x509.NewCertPool()
	pool.AddCert(plain.Certificate()) // the same for all servers of httptest
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{plain.Certificate().Raw}, PrivateKey: plain.TLS.Certificates[0].PrivateKey}, nil
	}
	base := []storage.Phase{storage.Connected, storage.Secured, storage.Opened, storage.FirstByte}
	known := []storage.Phase{storage.Connected, storage.Secured, storage.Authenticated, storage.Opened, storage.FirstByte}
	tests := map[string]struct {
		server *httptest.Server
		conf   *tls.Config
		method string
		want   []storage.Phase // nil for an error
		is     func(error) bool
	}{
		"authority given": {server: plain, conf: &tls.Config{RootCAs: pool}, want: base},
		"insecure":        {server: plain, conf: &tls.Config{InsecureSkipVerify: true}, want: base},
		"cert not wanted": {server: plain, conf: &tls.Config{RootCAs: pool, GetClientCertificate: own}, method: "x509", want: base},
		"cert wanted":     {server: asks, conf: &tls.Config{RootCAs: pool, GetClientCertificate: own}, method: "x509", want: known},
		"no cert": {server: asks, conf: &tls.Config{RootCAs: pool}, is: func(err error) bool {
			return storage.Classify(err) == storage.Denied
		}},
		"unknown authority": {server: plain, is: func(err error) bool {
			var unknown x509.UnknownAuthorityError
			return errors.As(err, &unknown)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clientAt(t, tt.server.URL, storage.Credentials{Method: storage.AuthMethod(tt.method), TLS: tt.conf})
			var e events
			res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: 300_000, Timeout: 20 * time.Second}, &e)
			if tt.is != nil {
				if err == nil || !tt.is(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || e.moved != 300_000 || res.Discarded != 0 || res.Wire < 300_000 {
				t.Fatalf("moved %d, result %+v, error %v", e.moved, res, err)
			}
			if d := cmp.Diff(tt.want, e.phases); d != "" {
				t.Errorf("phases: %s", d)
			}
			if res.Handshakes != 1 || res.Handshake <= 0 || res.Resumed != 0 {
				t.Errorf("%d handshakes of %v, %d resumed, want 1", res.Handshakes, res.Handshake, res.Resumed)
			}
			res, err = c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &e)
			if err != nil || res.Handshakes != 0 || res.Handshake != 0 {
				t.Errorf("on the kept session: %+v, %v, want no handshake", res, err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		url  string
		cred storage.Credentials
	}{
		"no host":       {url: "http:///x"},
		"other scheme":  {url: "root://h//x"},
		"other method":  {url: "http://h/x", cred: storage.Credentials{Method: "krb5"}},
		"empty token":   {url: "http://h/x", cred: storage.Credentials{Method: "token"}},
		"token of two":  {url: "http://h/x", cred: storage.Credentials{Method: "token", Token: "a\r\nX: y"}},
		"user of two":   {url: "http://h/x", cred: storage.Credentials{Method: "basic", User: "a:b", Password: "c"}},
		"broken port":   {url: "http://h:0/x"},
		"no URL at all": {},
	}
	for name, tt := range tests {
		target := storage.Target{Cred: tt.cred}
		if tt.url != "" {
			target = storagetest.TargetOf(t, tt.url, tt.cred)
		}
		if s, err := Driver().Open(t.Context(), target); err == nil {
			_ = s.Close() // it should not be there
			t.Errorf("%s: no error", name)
		}
	}
}
