package webdav

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/storagetest"
)

// takes returns a success for requests whose Authorization line contains want, and 401 for others.
func takes(want *atomic.Pointer[string]) func(*net.TCPConn, *http.Request, int) bool {
	return func(c *net.TCPConn, r *http.Request, _ int) bool {
		status := "401 Unauthorized"
		if strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Amz-Security-Token"), *want.Load()) {
			status = map[string]string{"PUT": "201 Created"}[r.Method]
			status = cmp.Or(status, "200 OK")
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return false
		}
		_, err := fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: 5\r\n\r\n", status)
		if err == nil && r.Method != http.MethodHead {
			_, err = io.WriteString(c, "hello")
		}
		return err == nil
	}
}

// TestRefusedSecretsAreReadAgain checks that a refused token or password is read again, and that
// the operation is repeated if it differs.
func TestRefusedSecretsAreReadAgain(t *testing.T) {
	for name, auth := range map[string]storage.Auth{
		"token": {Method: storage.TokenAuth}, "password": {Method: storage.BasicAuth, User: "ada"},
		"session token": {Method: storage.S3Auth, User: "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			var want atomic.Pointer[string]
			renew := func(secret string) {
				require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
				if auth.Method == storage.BasicAuth {
					secret = strings.TrimPrefix(basicLine("ada", secret), "Authorization: ")
					secret = strings.TrimSpace(secret)
				}
				want.Store(&secret)
			}
			renew("first")
			switch auth.Method {
			case storage.TokenAuth:
				auth.TokenFile = file
			case storage.BasicAuth:
				auth.PasswordFile = file
			default:
				auth.TokenFile, auth.PasswordFile = file, filepath.Join(t.TempDir(), "key")
				require.NoError(t, os.WriteFile(auth.PasswordFile, []byte("key"), 0o600))
			}
			p := speak(t, "127.0.0.1", takes(&want))
			cred, err := auth.Read()
			require.NoError(t, err)
			c := clientAt(t, p.url+"/data", cred)
			do := func(kind storage.Kind) (storage.Result, events, error) {
				var e events
				res, err := c.Do(t.Context(), &storage.Op{Kind: kind, Path: "x", Size: 5, Timeout: 20 * time.Second}, &e)
				return res, e, err
			}
			for i, kind := range []storage.Kind{storage.Read, storage.Write, storage.Stat} {
				_, _, err := do(kind)
				require.NoError(t, err)
				renew(fmt.Sprint("renewed", i))
				res, e, err := do(kind)
				require.NoError(t, err)
				if res.Renewed != 1 || kind != storage.Stat && e.moved != 5 {
					t.Errorf("%v after the renewal: %d renewals and %d bytes, want 1 and 5", kind, res.Renewed, e.moved)
				}
			}
			other := "other"
			want.Store(&other)
			before := len(p.requests())
			if _, _, err := do(storage.Read); storage.Classify(err) != storage.Denied || len(p.requests()) != before+1 {
				t.Errorf("%d requests with a secret that was not renewed: %v, want 1 that is denied", len(p.requests())-before, err)
			}
		})
	}
}

// TestRenewedToken checks that a token that is renewed before it expires is used from then on: no
// request is refused.
func TestRenewedToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first"), 0o600))
	p := speak(t, "127.0.0.1", say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	cred, err := storage.Auth{Method: storage.TokenAuth, TokenFile: file}.Read()
	require.NoError(t, err)
	c := clientAt(t, p.url, cred)
	renewals := 0
	stat := func() string {
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &events{})
		require.NoError(t, err)
		renewals += res.Renewed
		all := p.requests()
		return all[len(all)-1].Header.Get("Authorization")
	}
	if got := stat(); got != "Bearer first" {
		t.Errorf("sent %q", got)
	}
	require.NoError(t, os.WriteFile(file, []byte("second"), 0o600))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; stat() != "Bearer second"; i++ {
		if <-tick.C; i == 1000 {
			t.Fatal("the renewed token is not sent")
		}
	}
	if stat(); renewals != 1 {
		t.Errorf("%d renewals were counted, want 1", renewals)
	}
}

// TestRenewedCertificate checks that new connections present the certificate that is in the file at
// that time.
func TestRenewedCertificate(t *testing.T) {
	ca := gridcerttest.NewCA(t, "CA")
	shown := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown <- r.TLS.PeerCertificates[0].Subject.String()
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	first, second := ca.User(t), ca.User(t).Proxy(t, time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "proxy")
	write := func(p gridcerttest.Pair) {
		require.NoError(t, os.WriteFile(file, append(p.CertPEM(), p.KeyPEM()...), 0o600))
	}
	write(first)
	cred, err := storage.Auth{Method: storage.X509Auth, ProxyFile: file, Insecure: true}.Read()
	require.NoError(t, err)
	c := clientAt(t, s.URL, cred)
	renewals := 0
	connect := func() string {
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &events{})
		require.NoError(t, err)
		renewals += res.Renewed
		require.NoError(t, c.Close())
		return <-shown
	}
	before := connect()
	write(second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; connect() == before; i++ {
		if <-tick.C; i == 1000 {
			t.Fatal("the renewed proxy is not presented")
		}
	}
	if renewals != 1 {
		t.Errorf("%d renewals were counted, want 1", renewals)
	}
}

// TestProofAllocatesNothing checks that a request allocates no memory for its credentials.
func TestProofAllocatesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first"), 0o600))
	cred, err := storage.Auth{Method: storage.TokenAuth, TokenFile: file}.Read()
	require.NoError(t, err)
	s, err := open(storagetest.TargetOf(t, "http://localhost/x", cred))
	require.NoError(t, err)
	defer s.Close()
	n := testing.AllocsPerRun(1000, func() { s.(*service).proofOf((*storage.Renewable[string]).Current) })
	if n > 0.1 { // checking the file allocates
		t.Errorf("%g allocations", n)
	}
}
