package token

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
)

// site is an issuer that is reached over HTTPS.
type site struct {
	*httptest.Server
	issuer *Issuer
	asked  atomic.Int32
	answer atomic.Pointer[http.HandlerFunc]
	clock  clock
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{clock: clock{time.Unix(1_800_000_000, 0)}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if f := s.answer.Load(); f != nil {
			(*f)(w, r)
			return
		}
		s.issuer.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	s.renew(t)
	return s
}

// renew gives the issuer another key.
func (s *site) renew(t *testing.T) {
	t.Helper()
	var err error
	if s.issuer, err = Keep(filepath.Join(t.TempDir(), "key"), s.URL, s.clock.now); err != nil {
		t.Fatal(err)
	}
}

func (s *site) checker(t *testing.T) *Checker {
	t.Helper()
	c, err := NewChecker(Options{Trust: []Trust{{Issuer: s.URL}}, Audience: []string{"A"}, Now: s.clock.now, Client: s.Client()})
	require.NoError(t, err)
	return c
}

func TestKeysAreFetchedAndKept(t *testing.T) {
	s := newSite(t)
	c := s.checker(t)
	for range 3 {
		if _, err := c.Check(t.Context(), mint(t, s.issuer, "storage.read:/")); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d requests: 2 are enough", n)
	}
	old := mint(t, s.issuer)
	s.renew(t)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a new key within a minute: %v", err)
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("%d requests: invented keys must not make more", n)
	}
	s.clock.t = s.clock.t.Add(2 * time.Minute)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); err != nil {
		t.Errorf("a new key: %v", err)
	}
	s.clock.t = s.clock.t.Add(-time.Minute) // within the old token's life
	if _, err := c.Check(t.Context(), old); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key that was withdrawn: %v", err)
	}
}

// An issuer that cannot be reached for a while has no effect on checks. After a day, its tokens are
// refused.
func TestIssuersThatAreAway(t *testing.T) {
	s := newSite(t)
	c := s.checker(t)
	away := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s.answer.Store(&away)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); !errors.Is(err, ErrKeys) || errors.Is(err, ErrInvalid) {
		t.Errorf("away from the start: %v", err)
	}
	s.answer.Store(nil)
	s.clock.t = s.clock.t.Add(2 * time.Minute)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); err != nil {
		t.Fatal(err)
	}
	s.answer.Store(&away)
	s.clock.t = s.clock.t.Add(20 * time.Hour)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); err != nil {
		t.Errorf("away for 20 hours: %v", err)
	}
	s.clock.t = s.clock.t.Add(5 * time.Hour)
	if _, err := c.Check(t.Context(), mint(t, s.issuer)); !errors.Is(err, ErrKeys) {
		t.Errorf("away for a day: %v", err)
	}
}

func TestHostileIssuers(t *testing.T) {
	s := newSite(t)
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	keys := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ConfigurationPath) {
				s.issuer.ServeHTTP(w, r)
				return
			}
			_, _ = w.Write([]byte(body))
		}
	}
	for name, f := range map[string]http.HandlerFunc{
		"endless":         text(strings.Repeat(" ", maxDocument+10)),
		"no JSON":         text("<html>"),
		"another issuer":  text(`{"issuer":"https://x.example","jwks_uri":"` + s.URL + `/k"}`),
		"keys over http":  text(`{"issuer":"` + s.URL + `","jwks_uri":"http://127.0.0.1/k"}`),
		"keys in a file":  text(`{"issuer":"` + s.URL + `","jwks_uri":"file:///etc/passwd"}`),
		"redirect":        func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, s.URL+"/other", http.StatusFound) },
		"no keys":         keys(`{"keys":[]}`),
		"keys are null":   keys(`null`),
		"shared secret":   keys(`{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"` + s.issuer.public.KeyID + `"}]}`),
		"small RSA":       keys(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"x"}]}`),
		"too many":        keys(`{"keys":[` + strings.Repeat(`{},`, 100) + `{}]}`),
		"key off a curve": keys(`{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}]}`),
	} {
		s.answer.Store(&f)
		if _, err := s.checker(t).Check(t.Context(), mint(t, s.issuer)); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestIssuersAreNamedAsURLs(t *testing.T) {
	for _, name := range []string{"", "x", "http://x.example", "https://", "https://x.example?a=b", "https://u@x.example", "file:///x"} {
		if _, err := NewChecker(Options{Trust: []Trust{{Issuer: name}}}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if _, err := NewChecker(Options{Trust: []Trust{{Issuer: "x", Keys: []byte("{}")}}}); err == nil {
		t.Error("no keys were taken")
	}
}
