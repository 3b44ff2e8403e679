package labtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/lab"
)

// IAMConfig configures an issuer; its zero value is a valid configuration.
type IAMConfig struct {
	Life     time.Duration // of access tokens; 0 is an hour
	Rotate   bool          // a refresh token is good once
	ES256    bool          // it signs with ECDSA, else with RSA
	Idle     time.Duration // after which a refresh token ends that is not used, as Keycloak's do, whole seconds; 0: they do not end
	Exchange bool          // tokens without the claim sid are exchanged for access tokens only, as Keycloak does for clients
}

// An IAM is an issuer of WLCG tokens that responds as INDIGO IAM does: discovery, keys, token
// exchange (RFC 8693) and refresh tokens. It has the client weir, with the secret of Secret. Its
// methods may be called by several goroutines.
type IAM struct {
	URL    string // of the issuer, https
	CAFile string // PEM file of the authority of its certificate
	Secret string

	c       IAMConfig
	server  *http.Server
	mu      sync.Mutex
	keys    map[string]crypto.Signer // that it publishes, by name
	kid     string                   // of its signing key
	down    bool
	asked   map[string]int      // requests to the token endpoint, by grant
	refresh map[string]iamGrant // by refresh token
	ends    map[string]time.Time
}

// An iamGrant has the claims of a token.
type iamGrant map[string]any

// StartIAM starts an issuer in this process for a test.
func StartIAM(t testing.TB, c IAMConfig) *IAM {
	t.Helper()
	i := &IAM{c: c, Secret: rand.Text(), asked: map[string]int{}, refresh: map[string]iamGrant{}, ends: map[string]time.Time{},
		keys:   map[string]crypto.Signer{},
		CAFile: filepath.Join(t.TempDir(), "iam.pem")}
	if i.c.Life == 0 {
		i.c.Life = time.Hour
	}
	i.NewKey()
	id, authority, err := lab.HostCertificate()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.CAFile, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	i.URL = "https://localhost:" + port + "/"
	i.server = &http.Server{Handler: http.HandlerFunc(i.serve), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = i.server.Serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{id}}))
	}()
	t.Cleanup(func() {
		_ = i.server.Close()
		<-ended
	})
	return i
}

// NewKey makes the issuer sign with another key; it publishes the former keys until Withdraw.
func (i *IAM) NewKey() {
	var key crypto.Signer
	var err error
	if i.c.ES256 {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic(err) // never: Go's random numbers do not fail
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kid = rand.Text()
	i.keys[i.kid] = key
}

// Withdraw makes the issuer publish no other key than its signing key.
func (i *IAM) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = map[string]crypto.Signer{i.kid: i.keys[i.kid]}
}

// Down makes the issuer respond to every request with status 503, or work again.
func (i *IAM) Down(is bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = is
}

// Asked returns the number of requests to its token endpoint, by "GRANT SCOPE", such as
// "refresh_token storage.read:/".
func (i *IAM) Asked() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.asked)
}

// Keys returns its JSON Web Key Set.
func (i *IAM) Keys() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, err := lab.KeySet(i.keys)
	if err != nil {
		panic(err) // never: strings
	}
	return text
}

// Token makes a token for a subject. claims are added, or replace others; claims that are nil are
// left out.
func (i *IAM) Token(sub, scope string, claims map[string]any) string {
	g := iamGrant{"sub": sub, "scope": scope, "aud": lab.TokenAudience, "wlcg.ver": "1.0", "client_id": "rucio"}
	maps.Copy(g, claims)
	return i.sign(g)
}

// sign signs the claims of a grant, and adds times unless it has them.
func (i *IAM) sign(g iamGrant) string {
	now := time.Now()
	all := iamGrant{"iss": i.URL, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(i.c.Life).Unix(), "jti": rand.Text()}
	maps.Copy(all, g)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	key, kid := i.keys[i.kid], i.kid
	i.mu.Unlock()
	text, err := lab.SignToken(key, kid, all)
	if err != nil {
		panic(err) // never: a test's claims, and the key is good
	}
	return text
}

// read returns the claims of a token of its own.
func (i *IAM) read(raw string) (g iamGrant, err error) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, errors.New("invalid access token")
	}
	body, bodyErr := base64.RawURLEncoding.DecodeString(parts[1])
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if bodyErr != nil || err != nil || !i.signed(sum[:], signature) || json.Unmarshal(body, &g) != nil {
		return nil, errors.New("invalid access token: " + raw)
	}
	if end, _ := g["exp"].(float64); time.Now().Unix() >= int64(end) {
		return nil, errors.New("access token expired: " + raw) // IAM includes the token in the message
	}
	return g, nil
}

// signed reports whether a signature of a sum is by one of its keys.
func (i *IAM) signed(sum, signature []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, key := range i.keys {
		switch public := key.Public().(type) {
		case *rsa.PublicKey:
			if rsa.VerifyPKCS1v15(public, crypto.SHA256, sum, signature) == nil {
				return true
			}
		case *ecdsa.PublicKey:
			if len(signature) == 64 &&
				ecdsa.Verify(public, sum, new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
				return true
			}
		}
	}
	return false
}

func (i *IAM) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	down := i.down
	i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "jwk", "token_endpoint": i.URL + "token"})
	case r.URL.Path == "/jwk":
		_, _ = w.Write(i.Keys())
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		status, out := i.grant(r)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// An iamRefusal refuses a request for a token.
type iamRefusal struct {
	status     int
	code, text string
}

func (e *iamRefusal) Error() string { return e.text }

// grant handles a request for a token.
func (i *IAM) grant(r *http.Request) (int, map[string]any) {
	scope := strings.Fields(r.PostFormValue("scope"))
	asked := slices.DeleteFunc(slices.Clone(scope), func(s string) bool { return s == "offline_access" })
	g, err := i.granted(r, asked)
	var no *iamRefusal
	if errors.As(err, &no) {
		return no.status, map[string]any{"error": no.code, "error_description": no.text}
	}
	g = maps.Clone(g)
	for _, name := range []string{"iat", "nbf", "exp", "jti"} {
		delete(g, name)
	}
	g["client_id"], g["scope"] = "weir", strings.Join(asked, " ")
	out := map[string]any{"access_token": i.sign(g), "token_type": "Bearer", "expires_in": int(i.c.Life.Seconds()), "scope": g["scope"]}
	if slices.Contains(scope, "offline_access") || (i.c.Rotate || i.c.Idle > 0) && r.PostFormValue("refresh_token") != "" {
		next := rand.Text()
		i.mu.Lock()
		i.refresh[next], i.ends[next] = g, time.Now().Add(i.c.Idle)
		i.mu.Unlock()
		out["refresh_token"] = next
		if i.c.Idle > 0 {
			out["refresh_expires_in"] = int(i.c.Idle.Seconds())
		}
	}
	return http.StatusOK, out
}

// granted returns the claims of a request's token, or an iamRefusal.
func (i *IAM) granted(r *http.Request, asked []string) (g iamGrant, err error) {
	if id, secret, _ := r.BasicAuth(); id != "weir" || secret != i.Secret {
		return nil, &iamRefusal{http.StatusUnauthorized, "invalid_client", "Bad client credentials"}
	}
	kind := r.PostFormValue("grant_type")
	kind = kind[strings.LastIndexByte(kind, ':')+1:]
	i.mu.Lock()
	i.asked[kind+" "+strings.Join(asked, " ")]++
	i.mu.Unlock()
	switch again := r.PostFormValue("refresh_token"); kind {
	case "token-exchange":
		if g, err = i.read(r.PostFormValue("subject_token")); err != nil {
			return nil, &iamRefusal{http.StatusBadRequest, "invalid_grant", err.Error()}
		}
		if i.c.Exchange && g["sid"] == nil && r.PostFormValue("requested_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
			return nil, &iamRefusal{http.StatusBadRequest, "invalid_request", "requested_token_type unsupported"}
		}
	case "refresh_token":
		i.mu.Lock()
		g = i.refresh[again]
		if i.c.Idle > 0 && time.Now().After(i.ends[again]) {
			g = nil
		}
		if i.c.Rotate {
			delete(i.refresh, again)
		}
		i.mu.Unlock()
		if g == nil {
			return nil, &iamRefusal{http.StatusBadRequest, "invalid_grant", "Invalid refresh token: " + again}
		}
	default:
		return nil, &iamRefusal{http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant type"}
	}
	had, _ := g["scope"].(string)
	for _, s := range asked {
		if !slices.Contains(strings.Fields(had), s) {
			return nil, &iamRefusal{http.StatusBadRequest, "invalid_scope", "Invalid scope: " + s}
		}
	}
	return g, nil
}
