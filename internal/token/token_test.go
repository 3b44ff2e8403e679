package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/internal/require"
)

const issuerURL = "https://coordinator.example:8443"

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// fixed is an issuer with a clock, and the key that it signs with.
func fixed(t *testing.T) (*Issuer, *ecdsa.PrivateKey, *clock) {
	t.Helper()
	c := &clock{time.Unix(1_800_000_000, 0)}
	file := filepath.Join(t.TempDir(), "state", "issuer.pem")
	i, err := Keep(file, issuerURL+"/", c.now)
	require.NoError(t, err)
	key, err := keepKey(file)
	require.NoError(t, err)
	return i, key, c
}

func checker(t *testing.T, c *clock, trust ...Trust) *Checker {
	t.Helper()
	k, err := NewChecker(Options{Trust: trust, Audience: []string{"A", "https://a.example:1094"}, Now: c.now})
	require.NoError(t, err)
	return k
}

func mint(t *testing.T, i *Issuer, scopes ...string) string {
	t.Helper()
	raw, err := i.Mint(Grant{Subject: "item-1", Audience: []string{"A"}, Scopes: scopes, Life: time.Minute})
	require.NoError(t, err)
	return raw
}

func TestWhatIsMintedIsGood(t *testing.T) {
	i, _, c := fixed(t)
	k := checker(t, c, i.Trust())
	claims, err := k.Check(t.Context(), mint(t, i, Path("read", "/store/run 1/a%b"), "weir.agent:A"))
	require.NoError(t, err)
	if claims.Subject != "item-1" || claims.Issuer != issuerURL || !claims.Expires.Equal(c.t.Add(time.Minute)) || claims.ID == "" {
		t.Errorf("%+v", claims)
	}
	if !claims.May(Read, "/store/run 1/a%b") || claims.May(Read, "/store/run 1/a") || claims.May(Modify, "/store/run 1/a%b") {
		t.Error("rights are wrong")
	}
	if !claims.Has("weir.agent:A") || claims.Has("weir.agent:B") || claims.Has("weir.admin") {
		t.Error("roles are wrong")
	}
	outside := i.Trust()
	outside.Roles = false
	if claims, err = checker(t, c, outside).Check(t.Context(), mint(t, i, "weir.admin")); err != nil || claims.Has("weir.admin") {
		t.Errorf("an issuer that may not gives a role: %v", err)
	}
}

// A token that was valid once does not remain valid forever.
func TestGoodTokensAreNotRememberedForLong(t *testing.T) {
	i, _, c := fixed(t)
	k := checker(t, c, i.Trust())
	raw := mint(t, i, "storage.read:/a")
	check := func(good bool, when string) {
		t.Helper()
		if _, err := k.Check(t.Context(), raw); (err == nil) != good {
			t.Errorf("%s: %v", when, err)
		}
	}
	start := c.t
	check(true, "new")
	check(true, "again")
	c.t = start.Add(89 * time.Second)
	check(true, "just good")
	c.t = start.Add(90 * time.Second)
	check(false, "expired")
	c.t = start
	check(true, "clock set back")
	c.t = start.Add(-time.Hour)
	check(false, "clock set far back")
	c.t = start
	other, _, _ := fixed(t)
	require.NoError(t, k.Add(other.Trust()))
	check(false, "another key")
}

// One issuer and one checker serve many goroutines at once.
func TestManyAtOnce(t *testing.T) {
	i, _, c := fixed(t)
	k := checker(t, c, i.Trust())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				raw, err := i.Mint(Grant{Subject: "s", Audience: []string{"A"}, Scopes: []string{Path("read", "/a")}, Life: time.Minute})
				if err != nil {
					t.Error(err)
				}
				if _, err := k.Check(t.Context(), raw); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestGrantsThatCouldNotBeChecked(t *testing.T) {
	i, _, _ := fixed(t)
	good := Grant{Subject: "s", Audience: []string{"A"}, Scopes: []string{"storage.read:/a"}, Life: time.Minute}
	for name, change := range map[string]func(*Grant){
		"no subject": func(g *Grant) { g.Subject = "" }, "no audience": func(g *Grant) { g.Audience = nil },
		"no life": func(g *Grant) { g.Life = 0 }, "a scope without path": func(g *Grant) { g.Scopes = []string{"storage.read"} },
		"a path that leads up": func(g *Grant) { g.Scopes = []string{"storage.read:/a/../b"} },
	} {
		g := good
		change(&g)
		if _, err := i.Mint(g); err == nil {
			t.Errorf("%s: a token was made", name)
		}
	}
}

// part writes one part of a token.
func part(v any) string {
	text, ok := v.(string)
	if !ok {
		b, _ := json.Marshal(v)
		text = string(b)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// forge signs any head and claims with key, as ES256 has it.
func forge(t *testing.T, key *ecdsa.PrivateKey, head, claims any) string {
	t.Helper()
	text := part(head) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

type object = map[string]any

func goodClaims(c *clock) object {
	return object{"iss": issuerURL, "sub": "s", "aud": "A", "exp": c.t.Add(time.Minute).Unix(), "nbf": c.t.Unix(),
		"iat": c.t.Unix(), "jti": "1", "wlcg.ver": "1.0", "scope": "storage.read:/a"}
}

func TestHostileClaims(t *testing.T) {
	i, key, c := fixed(t)
	k := checker(t, c, i.Trust())
	head := object{"alg": "ES256", "kid": i.public.KeyID, "typ": "JWT"}
	if _, err := k.Check(t.Context(), forge(t, key, head, goodClaims(c))); err != nil {
		t.Fatal(err) // the rest of the test depends on it
	}
	for name, change := range map[string]func(object){
		"expired":             func(o object) { o["exp"] = c.t.Add(-31 * time.Second).Unix() },
		"never expires":       func(o object) { delete(o, "exp") },
		"expires in text":     func(o object) { o["exp"] = "1900000000" },
		"expires never ever":  func(o object) { o["exp"] = 1e300 },
		"expires before time": func(o object) { o["exp"] = -5 },
		"wrong case":          func(o object) { o["Exp"] = o["exp"]; delete(o, "exp") },
		"not yet":             func(o object) { o["nbf"] = c.t.Add(31 * time.Second).Unix() },
		"not before never":    func(o object) { o["nbf"] = 1e300 },
		"other service":       func(o object) { o["aud"] = "B" },
		"audience in part":    func(o object) { o["aud"] = "https://a.example:1094/" },
		"no audience":         func(o object) { delete(o, "aud") },
		"empty audience":      func(o object) { o["aud"] = []string{} },
		"audience of numbers": func(o object) { o["aud"] = []int{1} },
		"other issuer":        func(o object) { o["iss"] = "https://evil.example" },
		"issuer and a slash":  func(o object) { o["iss"] = issuerURL + "/" },
		"no subject":          func(o object) { delete(o, "sub") },
		"no version":          func(o object) { delete(o, "wlcg.ver") },
		"version 2":           func(o object) { o["wlcg.ver"] = "2.0" },
		"scope is a list":     func(o object) { o["scope"] = []string{"storage.read:/a"} },
		"scope without path":  func(o object) { o["scope"] = "storage.read:/a storage.modify" },
		"empty path":          func(o object) { o["scope"] = "storage.read:" },
		"relative path":       func(o object) { o["scope"] = "storage.read:a" },
		"path up":             func(o object) { o["scope"] = "storage.read:/a/../b" },
		"path up escaped":     func(o object) { o["scope"] = "storage.read:/a/%2e%2e/b" },
		"slash escaped":       func(o object) { o["scope"] = "storage.read:/a%2fb" },
		"two slashes":         func(o object) { o["scope"] = "storage.read:/a//b" },
		"zero byte":           func(o object) { o["scope"] = "storage.read:/a%00" },
		"half an escape":      func(o object) { o["scope"] = "storage.read:/a%2" },
		"many scopes":         func(o object) { o["scope"] = strings.Repeat("x ", 300) },
	} {
		claims := goodClaims(c)
		change(claims)
		if _, err := k.Check(t.Context(), forge(t, key, head, claims)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	said := fmt.Sprintf(`{"iss":%q,"sub":"s","aud":"A","exp":%d,"wlcg.ver":"1.0","scope":"storage.read:/a"`, issuerURL,
		c.t.Add(time.Minute).Unix())
	for name, claims := range map[string]string{
		"scope twice": said + `,"scope":"storage.modify:/"}`, "audience twice": said + `,"aud":"A"}`, "issuer twice": said + `,"iss":"x"}`,
		"no object": `[]`, "not JSON": said, "more behind": said + `}{}`, "empty": ``,
		"deep": strings.Repeat("[", 10000),
	} {
		if _, err := k.Check(t.Context(), forge(t, key, head, claims)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestHostileSignatures(t *testing.T) {
	i, key, c := fixed(t)
	k := checker(t, c, i.Trust())
	kid, claims := i.public.KeyID, goodClaims(c)
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	otherRSA, _ := rsa.GenerateKey(rand.Reader, 2048)
	head := object{"alg": "ES256", "kid": kid}
	good := forge(t, key, head, claims)
	parts := strings.Split(good, ".")
	with := func(alg string) object { return object{"alg": alg, "kid": kid} }
	secret := func(alg string, with []byte) string {
		text := part(object{"alg": alg, "kid": kid}) + "." + part(claims)
		m := hmac.New(sha256.New, with)
		_, _ = m.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	embedded, _ := jose.JSONWebKey{Key: other.Public()}.MarshalJSON()
	for name, raw := range map[string]string{
		"nothing":             "",
		"words":               "hello",
		"two dots":            "..",
		"no signature":        parts[0] + "." + parts[1] + ".",
		"alg none":            part(with("none")) + "." + parts[1] + ".",
		"alg None":            part(with("None")) + "." + parts[1] + "." + parts[2],
		"alg none, signed":    part(with("none")) + "." + parts[1] + "." + parts[2],
		"no alg":              forge(t, key, object{"kid": kid}, claims),
		"HS256, public key":   secret("HS256", i.Keys()),
		"HS256, the kid":      secret("HS256", []byte(kid)),
		"HS256, empty":        secret("HS256", nil),
		"ES384":               forge(t, key, with("ES384"), claims),
		"RS256 with this kid": rs256(t, otherRSA, with("RS256"), claims),
		"another key":         forge(t, other, head, claims),
		"unknown kid":         forge(t, key, object{"alg": "ES256", "kid": "x"}, claims),
		"kid is a path":       forge(t, key, object{"alg": "ES256", "kid": "../../dev/null"}, claims),
		"kid is a number":     forge(t, key, object{"alg": "ES256", "kid": 1}, claims),
		"its own key":         forge(t, other, object{"alg": "ES256", "kid": kid, "jwk": json.RawMessage(embedded)}, claims),
		"its own address":     forge(t, other, object{"alg": "ES256", "kid": kid, "jku": "https://evil.example/keys"}, claims),
		"crit":                forge(t, key, object{"alg": "ES256", "kid": kid, "crit": []string{"x"}, "x": 1}, claims),
		"crit b64":            forge(t, key, object{"alg": "ES256", "kid": kid, "crit": []string{"b64"}, "b64": true}, claims),
		"head twice":          forge(t, other, `{"alg":"ES256","alg":"none","kid":"`+kid+`"}`, claims),
		"other claims":        parts[0] + "." + part(object{"iss": issuerURL, "scope": "storage.modify:/"}) + "." + parts[2],
		"a byte more":         good + "A",
		"a part more":         good + ".x",
		"a space before":      " " + good,
		"padding":             good + "==",
		"zero signature":      parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"huge":                good + strings.Repeat("A", 1<<20),
		"huge in JSON":        forge(t, key, head, object{"iss": issuerURL, "x": strings.Repeat("y", 1<<20)}),
		"JSON serialization":  `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
	} {
		_, err := k.Check(t.Context(), raw)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
		if err != nil && len(parts[2]) > 0 && strings.Contains(err.Error(), parts[2]) {
			t.Errorf("%s: the error tells the signature", name)
		}
	}
	if _, err := k.Check(t.Context(), good); err != nil {
		t.Fatal(err)
	}
}

func rs256(t *testing.T, key *rsa.PrivateKey, head, claims any) string {
	t.Helper()
	text := part(head) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	s, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(s)
}

// The key is a single file that only this user can read, and it does not change.
func TestKeysAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "issuer.pem")
	made := make([]string, 8)
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() {
			if i, err := Keep(file, issuerURL, nil); err == nil {
				made[n] = i.public.KeyID
			} else {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range made {
		if id == "" || id != made[0] {
			t.Fatalf("key ids %q: all of one file are the same", made)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	require.NoError(t, os.Chmod(file, 0o644))
	if _, err := Keep(file, issuerURL, nil); err == nil || !strings.Contains(err.Error(), "other users can read it") {
		t.Errorf("a key that all can read: %v", err)
	}
	require.NoError(t, os.WriteFile(file+"2", []byte("nonsense"), 0o600))
	if _, err := Keep(file+"2", issuerURL, nil); err == nil || !strings.Contains(err.Error(), "issuer.pem2") {
		t.Errorf("a spoiled key: %v", err)
	}
}

// The end of a token's validity is read without its signature, of any issuer; other texts have no
// end.
func TestExpiryOf(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString
	of := func(claims string) string { return part([]byte(`{"alg":"EdDSA"}`)) + "." + part([]byte(claims)) + ".x" }
	for raw, want := range map[string]int64{
		of(`{"exp":1700000000}`): 1700000000, of(`{"exp":1700000000.9}`): 1700000000, of(`{}`): 0, of(`{"exp":"x"}`): 0, of(`{"exp":-1}`): 0,
		of(`{"exp":1e300}`): 0, of(`[]`): 0, "": 0, "a.b.c": 0, "MDAxY2xvY2F0aW9u": 0, strings.Repeat(".", 3): 0,
	} {
		if got := ExpiryOf(raw); want == 0 != got.IsZero() || want > 0 && got.Unix() != want {
			t.Errorf("%.60s: %v, want %d", raw, got, want)
		}
	}
}
