package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab/labtest"
)

// foreign is an issuer without any code of weir. OpenSSL makes its keys, signs its tokens and is
// the TLS server, a process of its own, from which the keys are fetched.
type foreign struct {
	t        *testing.T
	dir, url string
}

func (i *foreign) openssl(in []byte, args ...string) []byte {
	i.t.Helper()
	c := exec.CommandContext(i.t.Context(), "openssl", args...)
	c.Dir, c.Stdin = i.dir, bytes.NewReader(in)
	out, err := c.Output()
	if err != nil {
		i.t.Fatalf("openssl %v: %v", args, err)
	}
	return out
}

func unpadded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (i *foreign) write(name string, v any) {
	i.t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(i.dir, name), text, 0o600)
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

func startIssuer(t *testing.T) *foreign {
	t.Helper()
	labtest.Need(t, "openssl")
	i := &foreign{t: t, dir: t.TempDir()}
	i.openssl(nil, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
		"subjectAltName=DNS:localhost", "-keyout", "tls.key", "-out", "tls.pem")
	i.openssl(nil, "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "sign.key")
	require.NoError(t, os.MkdirAll(filepath.Join(i.dir, ".well-known"), 0o700))
	c := exec.CommandContext(context.WithoutCancel(t.Context()), "openssl", "s_server", "-accept", "127.0.0.1:0", "-WWW", "-cert", "tls.pem",
		"-key", "tls.key")
	var out locked
	c.Dir, c.Stdout, c.Stderr = i.dir, &out, &out
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	require.Eventually(t, "the issuer's address", func() bool {
		_, at, ok := strings.Cut(out.String(), "ACCEPT 127.0.0.1:")
		i.url = "https://localhost:" + strings.TrimSpace(at)
		return ok && strings.Contains(at, "\n")
	})
	_, modulus, _ := strings.Cut(strings.TrimSpace(string(i.openssl(nil, "rsa", "-in", "sign.key", "-noout", "-modulus"))), "=")
	n, err := hex.DecodeString(modulus)
	require.NoError(t, err)
	i.write("jwk", map[string]any{"keys": []any{map[string]string{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": unpadded(n),
		"e": "AQAB"}}})
	i.write(".well-known/openid-configuration", map[string]any{"issuer": i.url, "jwks_uri": i.url + "/jwk", "token_endpoint": i.url + "/token",
		"scopes_supported": []string{"openid"}})
	return i
}

// token returns a token with the claims of the profile, signed with RS256 (RFC 7515, appendix A.2).
func (i *foreign) token(scope, audience string) string {
	i.t.Helper()
	now := time.Now().Unix()
	head := unpadded([]byte(`{"alg":"RS256","kid":"one","typ":"at+jwt"}`))
	body, err := json.Marshal(map[string]any{"iss": i.url, "sub": "f3a1", "aud": audience, "iat": now, "nbf": now, "exp": now + 600,
		"jti": "x", "scope": scope, "wlcg.ver": "1.0", "wlcg.groups": []string{"/lab"}})
	if err != nil {
		i.t.Fatal(err)
	}
	signed := head + "." + unpadded(body)
	return signed + "." + unpadded(i.openssl([]byte(signed), "dgst", "-sha256", "-sign", "sign.key"))
}

// The keys of an issuer elsewhere are found by its URL, over TLS (OpenID Connect Discovery), and
// its tokens grant the access of their scopes. They are refused if the certificate of the issuer is
// not trusted.
func TestIssuerElsewhere(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	n := newNewcomer(t)
	n.write("d/data/f", "data")
	const door = "https://door.example"
	serves := func() string {
		_, said := n.stays("weir serve d --listen 127.0.0.1:0 --issuer " + i.url + " --audience " + door)
		return strings.TrimPrefix(said, "serving ")
	}
	stranger := serves()
	n.env = append(n.env, "SSL_CERT_FILE="+filepath.Join(i.dir, "tls.pem"))
	knows := serves()
	good := i.token("storage.read:/data openid", door)
	for name, tt := range map[string]struct {
		at, path, token string
		code            int
	}{
		"good":                           {knows, "/data/f", good, 200},
		"another path":                   {knows, "/other", good, 403},
		"another audience":               {knows, "/data/f", i.token("storage.read:/data", "https://else.example"), 401},
		"another signature":              {knows, "/data/f", good[:len(good)-8] + "AAAAAAAA", 401},
		"no token":                       {knows, "/data/f", "", 401},
		"its certificate is not trusted": {stranger, "/data/f", good, 503},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.at+tt.path, nil)
		require.NoError(t, err)
		if tt.token != "" {
			req.Header.Set("Authorization", "Bearer "+tt.token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = res.Body.Close()
		if res.StatusCode != tt.code {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, tt.code)
		}
	}
}
