package xrootd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tlsconn/tlsconntest"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// certificate returns a server's certificate for 127.0.0.1 and the TLS configuration with which
// clients trust it.
func certificate(t testing.TB) (*tls.Certificate, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peer"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(made)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// TestTLS connects to a real server with correct and wrong trust.
func TestTLS(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	require.NoError(t, xr.WriteFile("x", made(fileSize)))
	plain := labtest.Start(t, lab.XRootDConfig{})
	good := credentials(t, storage.Auth{CAFile: xr.CAFile})
	_, other := certificate(t)
	named := good.TLS.Clone()
	named.ServerName = "other.example"
	secureURL := xr.URLs["roots"]
	tests := map[string]struct {
		url   string
		cred  storage.Credentials
		is    func(error) bool
		words string
	}{
		"unknown authority": {secureURL, storage.Credentials{}, is[x509.UnknownAuthorityError], "unknown authority"},
		"wrong authority":   {secureURL, storage.Credentials{TLS: other}, is[x509.UnknownAuthorityError], "unknown authority"},
		"wrong name":        {secureURL, storage.Credentials{TLS: named}, is[x509.HostnameError], "other.example"},
		"no TLS there": {strings.Replace(plain.URL, "root:", "roots:", 1), good,
			func(err error) bool { return errors.Is(err, fs.ErrPermission) }, "use root://"},
		"good": {secureURL, good, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clientAt(t, tt.url, tt.cred)
			for i := range 2 {
				var e events
				op := storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: "md5", Timeout: 20 * time.Second}
				res, err := c.Do(t.Context(), &op, &e)
				t.Log(err)
				if tt.is == nil {
					right(t, &op, res, &e, err)
					if res.Handshakes != 1-i || (res.Handshake > 0) != (i == 0) {
						t.Errorf("operation %d: %d TLS handshakes of %v, want one of the first operation", i, res.Handshakes, res.Handshake)
					}
				} else if err == nil || !tt.is(err) || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}

// TestDiscardedUndecrypted reads over TLS 1.2 and 1.3 with all cipher suites, with page checksums
// and without: most of the payload is dropped without being decrypted, and data that is verified on
// the same session is correct.
func TestDiscardedUndecrypted(t *testing.T) {
	const size = 24 << 20
	xr := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	require.NoError(t, xr.WriteFile("x", made(size)))
	for _, suite := range tlsconntest.Suites() {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %v", suite.Name, plain), func(t *testing.T) {
				cred := credentials(t, storage.Auth{CAFile: xr.CAFile})
				suite.Limit(t, cred.TLS)
				c := clientAt(t, xr.URLs["roots"], cred)
				for _, sum := range []string{"md5", "", "md5", ""} {
					var e events
					op := storage.Op{Kind: storage.Read, Path: "x", Size: size, Sum: sum, Plain: plain, Chunk: 8 << 20, Ahead: 4,
						Timeout: 20 * time.Second}
					res, err := c.Do(t.Context(), &op, &e)
					right(t, &op, res, &e, err)
					if sum == "" && res.Discarded < size*8/10 || res.Discarded >= size {
						t.Errorf("%d of %d bytes discarded", res.Discarded, size)
					}
				}
			})
		}
	}
}

// TestResumption runs each operation in a session of its own: an XRootD server may or may not
// resume the first operation's TLS session for the second operation, but the requested data must
// arrive in any case, and no session may be resumed without permission.
func TestResumption(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	require.NoError(t, xr.WriteFile("x", made(fileSize)))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, mode := range []storage.Resumption{storage.ResumeNone, storage.ResumeOwn} {
			cred := credentials(t, storage.Auth{CAFile: xr.CAFile})
			cred.TLS.MinVersion, cred.TLS.MaxVersion = version, version
			target := storagetest.TargetOf(t, xr.URLs["roots"], cred)
			target.Resume = mode
			c := storagetest.Client(t, Driver(), target)
			for i := range 3 {
				var e events
				op := storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: "md5", Timeout: 20 * time.Second}
				res, err := c.Do(t.Context(), &op, &e)
				right(t, &op, res, &e, err)
				t.Logf("%s, %s, connection %d: %d of %d handshakes resumed", tls.VersionName(version), mode, i, res.Resumed, res.Handshakes)
				if res.Handshakes != 1 || res.Resumed > 0 && (mode == storage.ResumeNone || i == 0) {
					t.Errorf("%s, %s, connection %d: %d of %d handshakes resumed", tls.VersionName(version), mode, i, res.Resumed, res.Handshakes)
				}
				_ = c.Close()
			}
		}
	}
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// TestWordsBeforeTLS appends a response in the clear to the response with which the server agrees
// on TLS: it must not count as an encrypted response.
func TestWordsBeforeTLS(t *testing.T) {
	cert, conf := certificate(t)
	p := &peer{file: made(fileSize), cert: cert}
	p.greet = func(c *talk) bool {
		c.late = answerOf(1, stOK, "0123456789abcdef")
		return c.welcome()
	}
	p.start(t)
	c := clientAt(t, p.url, storage.Credentials{TLS: conf})
	for range 2 {
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &events{})
		if !errors.Is(err, storage.ErrProtocol) || !strings.Contains(err.Error(), "in the clear") {
			t.Errorf("error %v", err)
		}
	}
	p.mend.Store(true)
	wellAgain(t, c)
}

// TestStalledTLS runs a server that agrees on TLS and then neither reads nor writes: an operation
// ends at its timeout, and so does close_notify.
func TestStalledTLS(t *testing.T) {
	t.Parallel()
	cert, conf := certificate(t)
	hold := make(chan struct{})
	stall := func(*talk, query) bool { <-hold; return false }
	p := (&peer{file: made(fileSize), cert: cert, answer: func(c *talk, q query) bool {
		if q.code == rqOpen {
			return c.good(q) && stall(c, q)
		}
		return stall(c, q)
	}}).start(t)
	t.Cleanup(func() { close(hold) })
	for _, k := range []storage.Kind{storage.Write, storage.Read, storage.Stat} {
		c := clientAt(t, p.url, storage.Credentials{TLS: conf})
		begin := time.Now()
		_, err := c.Do(t.Context(), &storage.Op{Kind: k, Path: "x", Size: 1 << 28, Timeout: 300 * time.Millisecond}, &events{})
		d := time.Since(begin)
		t.Log(k, d, err)
		if k == storage.Read { // the file has another size: closing it may succeed or fail
			continue
		}
		if storage.Classify(err) != storage.Timeout || d > 3*time.Second {
			t.Errorf("%s: %v after %v", k, err, d)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		url   string
		cred  storage.Credentials
		words string
	}{
		"no host":      {url: "root:///x", words: "host"},
		"other scheme": {url: "http://h//x", words: "use one of root"},
		"port 0":       {url: "root://h:0//x", words: "1 to 65535"},
		"other method": {url: "root://h//x", cred: storage.Credentials{Method: "basic"}, words: "use one of"},
		"dots":         {url: "root://h//a/../b", words: ".."},
		"no token":     {url: "root://h//x", cred: storage.Credentials{Method: "token"}, words: "token"},
	}
	for name, tt := range tests {
		s, err := Driver().Open(t.Context(), storagetest.TargetOf(t, tt.url, tt.cred))
		if err == nil {
			_ = s.Close() // it should not be there
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: error %q does not say %q", name, err, tt.words)
		}
	}
	if _, err := Driver().Open(t.Context(), storage.Target{}); err == nil {
		t.Error("no URL at all: no error")
	}
	if _, err := Driver().Open(t.Context(), storage.Target{URL: &url.URL{}}); err == nil {
		t.Error("an empty URL: no error")
	}
}
