package endpoint

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/token"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// newIssuer returns an issuer that tests trust.
func newIssuer(t testing.TB) *token.Issuer {
	t.Helper()
	i, err := token.Keep(filepath.Join(t.TempDir(), "issuer.pem"), "https://coordinator.example", nil)
	require.NoError(t, err)
	return i
}

func newToken(t testing.TB, i *token.Issuer, scopes ...string) string {
	t.Helper()
	raw, err := i.Mint(token.Grant{Subject: "test", Audience: []string{"door"}, Scopes: scopes, Life: time.Hour})
	require.NoError(t, err)
	return raw
}

func trusting(t testing.TB, i *token.Issuer) func(*http.Request) (serve.Rights, error) {
	t.Helper()
	c, err := token.NewChecker(token.Options{Trust: []token.Trust{i.Trust()}, Audience: []string{"door"}})
	require.NoError(t, err)
	return Bearer(c)
}

// Tokens allow the operations of their scopes and no other, and reveal nothing about other files.
func TestTokensRights(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"a", "ab", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	for _, name := range []string{"a/f", "a/g", "ab/f", "b/f", "top"} {
		requests.Write(t, "text", dir, name)
	}
	i := newIssuer(t)
	s := start(t, serve.Config{Dir: dir, Authenticate: trusting(t, i)})
	reading, create, modify := newToken(t, i, "storage.read:/a"), newToken(t, i, "storage.create:/a storage.create:/new/x"),
		newToken(t, i, "storage.modify:/a")
	for _, tt := range []struct {
		token, method, path string
		header              string // NAME VALUE
		code                int
	}{
		{"", "GET", "/a/f", "", 401}, {"nonsense", "GET", "/a/f", "", 401}, {"", "OPTIONS", "/a/f", "", 401}, {"", "GET", "/metrics", "", 401},
		{reading, "OPTIONS", "/", "", 200}, {reading, "GET", "/metrics", "", 403},
		{reading, "GET", "/a/f", "", 200}, {reading, "HEAD", "/a/f", "", 200}, {reading, "GET", "/a/none", "", 404},
		{reading, "GET", "/a", "", 200},
		{reading, "GET", "/b/f", "", 403}, {reading, "HEAD", "/b/none", "", 403}, {reading, "GET", "/ab/f", "", 403},
		{reading, "GET", "/", "", 403}, {reading, "GET", "/top", "", 403},
		{reading, "GET", "/a/../b/f", "", 400}, {reading, "GET", "/a/%2e%2e/b/f", "", 400}, {reading, "GET", "/a//f", "", 200},
		{reading, "GET", "//b/f", "", 403}, {reading, "GET", "/a%2f..%2fb/f", "", 400},
		{reading, "PROPFIND", "/a", "Depth 1", 207}, {reading, "PROPFIND", "/b", "Depth 1", 403},
		{reading, "PROPFIND", "/b/none", "Depth 0", 403},
		{reading, "PUT", "/a/new", "", 403}, {reading, "DELETE", "/a/f", "", 403}, {reading, "MKCOL", "/a/d", "", 403},
		{reading, "MOVE", "/a/f", "Destination /a/new", 403}, {reading, "COPY", "/a/f", "Destination /a/new", 403},
		{reading, "COPY", "/b/f", "Destination /a/new", 403},
		{create, "GET", "/a/f", "", 403}, {create, "HEAD", "/a/f", "", 200}, {create, "PROPFIND", "/a", "Depth 0", 207},
		{create, "PROPFIND", "/a", "Depth 1", 403},
		{create, "PUT", "/a/f", "", 403}, {create, "PUT", "/a/new", "", 201}, {create, "PUT", "/b/new", "", 403},
		{create, "MKCOL", "/a/d", "", 201}, {create, "MKCOL", "/new", "", 201},
		{create, "MKCOL", "/newer", "", 403}, {create, "DELETE", "/a/new", "", 403}, {create, "MOVE", "/a/new", "Destination /a/named", 201},
		{create, "MOVE", "/a/named", "Destination /a/f", 403}, {create, "MOVE", "/a/named", "Destination /b/named", 403},
		{create, "MOVE", "/b/f", "Destination /a/x", 403},
		{create, "MOVE", "/a/d", "Destination /a/e", 403}, {create, "COPY", "/a/named", "Destination /a/x", 403},
		{modify, "PUT", "/a/f", "", 204}, {modify, "GET", "/a/f", "", 403}, {modify, "MOVE", "/a/d", "Destination /a/e", 201},
		{modify, "MOVE", "/a/named", "Destination /a/g", 204},
		{modify, "DELETE", "/a/g", "", 204}, {modify, "DELETE", "/b/f", "", 403},
	} {
		x := exchange{Method: tt.method, Path: tt.path, Code: tt.code, Header: map[string]string{"Authorization": "Bearer " + tt.token}}
		if name, value, ok := strings.Cut(tt.header, " "); ok {
			if name == "Destination" {
				value = s.URL() + value
			}
			x.Header[name] = value
		}
		check(t, s, x)
	}
	if got := requests.Read(t, dir, "b/f"); got != "text" {
		t.Errorf("b/f is %q", got)
	}
}

// A Server with a fixed token and Authenticate also accepts the fixed token.
func TestTokensOfTwoKinds(t *testing.T) {
	i := newIssuer(t)
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 10}}, Token: "old", Authenticate: trusting(t, i)})
	for raw, code := range map[string]int{"old": 200, newToken(t, i, "storage.read:/"): 200, newToken(t, i, "storage.read:/x"): 403,
		"new": 401} {
		check(t, s, exchange{Method: "GET", Path: "/file000000.dat", Code: code, Header: map[string]string{"Authorization": "Bearer " + raw}})
	}
}

// certificate creates an authority, or a certificate signed by an authority, with OpenSSL.
func certificate(t testing.TB, dir, name, subject, ca string, more ...string) {
	t.Helper()
	args := []string{"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", subject,
		"-keyout", filepath.Join(dir, name+".key"), "-out", filepath.Join(dir, name+".pem")}
	if ca != "" {
		args = append(args, "-CA", filepath.Join(dir, ca+".pem"), "-CAkey", filepath.Join(dir, ca+".key"))
	}
	requests.MustRun(t, "openssl", append(args, more...)...)
}

// Certificates of the configured authority admit the clients that the Config names. Without a
// certificate, or with a certificate of another authority, a client is admitted only by a token.
func TestCertificatesOfClients(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "ca", "/CN=CA", "")
	certificate(t, dir, "evil", "/CN=CA", "")
	certificate(t, dir, "host", "/CN=localhost", "ca", "-addext", "subjectAltName=IP:127.0.0.1", "-addext",
		"basicConstraints=critical,CA:FALSE")
	certificate(t, dir, "ada", "/DC=test/CN=ada", "ca", "-addext", "basicConstraints=critical,CA:FALSE")
	certificate(t, dir, "bob", "/DC=test/CN=bob", "ca", "-addext", "basicConstraints=critical,CA:FALSE")
	certificate(t, dir, "forged", "/DC=test/CN=ada", "evil", "-addext", "basicConstraints=critical,CA:FALSE")
	certificate(t, dir, "server", "/DC=test/CN=ada", "ca", "-addext", "basicConstraints=critical,CA:FALSE", "-addext",
		"extendedKeyUsage=serverAuth")
	i := newIssuer(t)
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 10}}, CertFile: filepath.Join(dir, "host.pem"),
		KeyFile: filepath.Join(dir, "host.key"), ClientCA: filepath.Join(dir, "ca.pem"), Clients: []string{"ada"}, Authenticate: trusting(t, i)})
	for name, code := range map[string]string{"ada": "200", "bob": "401", "forged": "401", "server": "401", "": "401"} {
		args := []string{"-s", "-o", os.DevNull, "-w", "%{http_code} ", "--cacert", filepath.Join(dir, "ca.pem")}
		if name != "" {
			args = append(args, "--cert", filepath.Join(dir, name+".pem"), "--key", filepath.Join(dir, name+".key"))
		}
		url := s.URL() + "/file000000.dat"
		out := requests.MustRun(t, "curl", append(args, url, "-o", os.DevNull, url)...) // twice on one connection
		if strings.TrimSpace(out) != code+" "+code {
			t.Errorf("%s: %s", name, out)
		}
		out = requests.MustRun(t, "curl", append(args, "-H", "Authorization: Bearer "+newToken(t, i, "storage.read:/"), url)...)
		if strings.TrimSpace(out) != "200" {
			t.Errorf("%s with a token: %s", name, out)
		}
	}
	for _, c := range []serve.Config{
		{Synthetic: []serve.Set{{Count: 1, Size: 1}}, ClientCA: filepath.Join(dir, "ca.pem"), Clients: []string{"ada"}},
		{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Certificate: new(tls.Certificate), ClientCA: filepath.Join(dir, "ca.pem")},
		{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Certificate: new(tls.Certificate), ClientCA: filepath.Join(dir, "ca.key"),
			Clients: []string{"ada"}},
		{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Certificate: new(tls.Certificate), ClientCA: filepath.Join(dir, "none"),
			Clients: []string{"ada"}},
	} {
		if s, err := serve.New(c); err == nil {
			t.Errorf("%+v is accepted", c)
			_ = s.Close()
		}
	}
}
