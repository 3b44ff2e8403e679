package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/wire"
)

// judge accepts one token.
func judge(_ context.Context, token string) (Who, error) {
	switch token {
	case "good":
		return Who{Name: "ann", Roles: []string{"weir.read"}}, nil
	case "later":
		return Who{}, wire.Refuse(http.StatusServiceUnavailable, "come again")
	}
	return Who{}, errors.New("the token is not good: it expired")
}

func made(t *testing.T, c Config) *Page {
	t.Helper()
	c.Check = judge
	p, err := New(c)
	require.NoError(t, err)
	return p
}

// ask sends a request to p in the same way as a browser that has a cookie.
func ask(p http.Handler, method, path, body string, head map[string]string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(method, "http://127.0.0.1:8700"+path, strings.NewReader(body))
	for k, v := range head {
		r.Header.Set(k, v)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

func own1() map[string]string { return map[string]string{OrderHeader: "1"} }

// signedIn returns the cookie of a new session.
func signedIn(t *testing.T, p *Page) *http.Cookie {
	t.Helper()
	r := ask(p, "POST", "/session", `{"token":" good\n"}`, own1())
	if r.StatusCode != http.StatusOK || len(r.Cookies()) != 1 {
		t.Fatalf("%d %s", r.StatusCode, text(t, r))
	}
	return r.Cookies()[0]
}

// A pasted token begins a session. No script can read its cookie, no other site can send it, and it
// is not valid after signing out.
func TestSession(t *testing.T) {
	p := made(t, Config{Loopback: true})
	if r := ask(p, "GET", "/session", "", nil); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody is signed in: %d", r.StatusCode)
	}
	c := signedIn(t, p)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || strings.Contains(c.Value, "good") ||
		c.Name != "weir-transfer-8700" {
		t.Errorf("the cookie is %+v", c)
	}
	if r := ask(p, "GET", "/session", "", nil, c); !strings.Contains(text(t, r), `"ann"`) {
		t.Error("the session is not known")
	}
	if r := ask(p, "POST", "/session/end", "", own1(), c); r.StatusCode != http.StatusOK || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("signing out: %+v", r)
	}
	if r := ask(p, "GET", "/session", "", nil, c); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", r.StatusCode)
	}
}

// A request that does not come from the page itself is refused; errors are reported.
func TestRefused(t *testing.T) {
	p := made(t, Config{Loopback: true})
	c := signedIn(t, p)
	for name, v := range map[string]struct {
		head map[string]string
		code int
	}{
		"no header":     {nil, 403},
		"other origin":  {map[string]string{OrderHeader: "1", "Origin": "http://evil.example"}, 403},
		"other port":    {map[string]string{OrderHeader: "1", "Origin": "http://127.0.0.1:1"}, 403},
		"no origin":     {map[string]string{OrderHeader: "1", "Origin": "null"}, 403},
		"cross site":    {map[string]string{OrderHeader: "1", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403},
		"its own":       {map[string]string{OrderHeader: "1", "Origin": "http://127.0.0.1:8700", "Sec-Fetch-Site": "same-origin"}, 200},
		"only a header": {map[string]string{OrderHeader: "1"}, 200},
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:8700/api/v1/requests/1/cancel", nil)
		for k, h := range v.head {
			r.Header.Set(k, h)
		}
		r.AddCookie(c)
		token, err := p.Token(r)
		if ok := v.code == 200; ok != (token == "good") || wire.Status(err) != map[bool]int{true: 0, false: 403}[ok] {
			t.Errorf("%s: %q, %v", name, token, err)
		}
		if got := ask(p, "POST", "/session", `{"token":"good"}`, v.head).StatusCode; got != v.code {
			t.Errorf("%s: signing in answers %d", name, got)
		}
	}
	for body, want := range map[string]string{
		`{"token":"bad"}`: "expired", `{"token":""}`: `"code":"no_session"`, `{`: "malformed JSON", `{"code":"guess"}`: "opened already",
		`{"token":"later"}`:                             "come again",
		`{"token":"` + strings.Repeat("x", 3000) + `"}`: "3000 characters", `{"token":"` + strings.Repeat("x", 10000) + `"}`: "too large",
	} {
		if got := text(t, ask(p, "POST", "/session", body, own1())); !strings.Contains(got, want) {
			t.Errorf("%.30s: %s", body, got)
		}
	}
	for _, bad := range []string{"", "AAAA", c.Value[:len(c.Value)-2], c.Value[1:], "=" + c.Value} {
		forged := *c
		forged.Value = bad
		if r := ask(p, "GET", "/session", "", nil, &forged); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("cookie %.20q: %d", bad, r.StatusCode)
		}
	}
	r := httptest.NewRequest("GET", "http://rebound.example:8700/", nil)
	w := httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("another name for this machine: %d", w.Code)
	}
}

// A code is valid once, and for a short time; sessions outlive the process if their key does.
func TestCodesAndTime(t *testing.T) {
	now := time.Unix(1e9, 0)
	conf := Config{Key: make([]byte, 32), Now: func() time.Time { return now }}
	p := made(t, conf)
	code := p.Code("good")
	r := ask(p, "POST", "/session", `{"code":"`+code+`"}`, own1())
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, text(t, r))
	}
	c := r.Cookies()[0]
	if r := ask(p, "POST", "/session", `{"code":"`+code+`"}`, own1()); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("the same code again: %d", r.StatusCode)
	}
	old := p.Code("good")
	now = now.Add(codeLife + time.Second)
	if r := ask(p, "POST", "/session", `{"code":"`+old+`"}`, own1()); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("an old code: %d", r.StatusCode)
	}
	if r := ask(made(t, conf), "GET", "/session", "", nil, c); r.StatusCode != http.StatusOK {
		t.Errorf("another process with the same key: %d", r.StatusCode)
	}
	if r := ask(made(t, Config{Now: conf.Now}), "GET", "/session", "", nil, c); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("another key: %d", r.StatusCode)
	}
	if r := ask(p, "POST", "/session/code", "", map[string]string{"Authorization": "Bearer good"}); !strings.Contains(text(t, r), `"code"`) {
		t.Error("who has a token gets no code")
	}
	for _, head := range []map[string]string{nil, own1(), {"Authorization": "Bearer bad"}} {
		if r := ask(p, "POST", "/session/code", "", head); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v gets a code: %d", head, r.StatusCode)
		}
	}
	for range mostCodes + 10 {
		p.Code("good")
	}
	if n := len(p.codes); n > mostCodes {
		t.Errorf("%d codes are kept", n)
	}
	now = now.Add(sessionLife)
	if r := ask(p, "GET", "/session", "", nil, c); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after a week: %d", r.StatusCode)
	}
}

// A browser with a certificate needs no session. A request that another site has the browser send
// is refused.
func TestCertificates(t *testing.T) {
	p := made(t, Config{Known: func(r *http.Request) (Who, bool) { return Who{Name: "cara"}, r.Header.Get("Test") != "" }})
	if r := ask(p, "GET", "/session", "", map[string]string{"Test": "1"}); !strings.Contains(text(t, r), `"cara"`) {
		t.Error("a certificate is not enough")
	}
	for _, head := range []map[string]string{nil, {"Test": "1", "Origin": "https://evil.example"}} {
		if r := ask(p, "GET", "/session", "", head); r.StatusCode < 400 && head == nil {
			t.Errorf("%v: %d", head, r.StatusCode)
		}
	}
	r := httptest.NewRequest("POST", "https://c.example/api/v1/requests/1/cancel", nil)
	if err := Foreign(r); err != nil {
		t.Errorf("a command: %v", err)
	}
	r.Header.Set("Origin", "https://evil.example")
	if err := Foreign(r); wire.Status(err) != http.StatusForbidden {
		t.Errorf("a page of another site: %v", err)
	}
}

// Every response is hardened.
func TestHeaders(t *testing.T) {
	p := made(t, Config{})
	heads := []http.Header{}
	for _, path := range []string{"/", "/transfer.js", "/session", "/nothing"} {
		heads = append(heads, ask(p, "GET", path, "", nil).Header)
	}
	for _, h := range heads {
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("policy %q", csp)
		}
		for k, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store"} {
			if h.Get(k) != want {
				t.Errorf("%s: %q", k, h.Get(k))
			}
		}
	}
	if _, err := New(Config{Key: []byte("short")}); err == nil {
		t.Error("a short key is taken")
	}
}
