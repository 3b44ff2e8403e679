package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/token"
	"weir/internal/trust"
)

type word struct {
	Text string `json:"text"`
}

// serve starts a server that returns the body of each request.
func serve(t *testing.T) (*Server, *Identity, string) {
	t.Helper()
	id, err := Keep(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	s, err := Listen(t.Context(), "127.0.0.1:0", id, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	Handle(s, "/echo", 1000, func(_ context.Context, w *word) (*word, error) {
		if w.Text == "refuse" {
			return nil, Refuse(http.StatusConflict, "not %s", "now")
		}
		return w, nil
	})
	s.Begin()
	return s, id, "https://" + s.Addr().String()
}

func TestQuestionsAndAnswers(t *testing.T) {
	t.Parallel()
	_, id, url := serve(t)
	c := NewClient([]string{"https://127.0.0.1:1", url}, id.Token, id.Pin, time.Minute)
	defer c.Close()
	var out word
	if err := c.Ask(t.Context(), "/echo", word{"hello"}, &out); err != nil || out.Text != "hello" {
		t.Errorf("%+v, %v", out, err)
	}
	if err := c.Insist(t.Context(), "/echo", word{"refuse"}, &out, time.Minute); Status(err) != http.StatusConflict ||
		err.Error() != "not now" {
		t.Errorf("error %v", err)
	}
	if err := c.Ask(t.Context(), "/none", word{}, &out); Status(err) != http.StatusNotFound {
		t.Errorf("error %v", err)
	}
	if err := c.Ask(t.Context(), "/echo", word{strings.Repeat("x", 2000)}, &out); Status(err) != http.StatusRequestEntityTooLarge {
		t.Errorf("a question that is too long: %v", err)
	}
}

func TestUnauthenticatedRefused(t *testing.T) {
	_, id, url := serve(t)
	bad := NewClient([]string{url}, "wrong", id.Pin, time.Minute)
	defer bad.Close()
	if err := bad.Insist(t.Context(), "/echo", word{}, &word{}, time.Minute); Status(err) != http.StatusUnauthorized {
		t.Errorf("a wrong token: %v", err)
	}
	other := NewClient([]string{url}, id.Token, strings.Repeat("0", 64), time.Minute)
	defer other.Close()
	if err := other.Insist(t.Context(), "/echo", word{}, &word{}, time.Minute); !errors.Is(err, trust.ErrPin) {
		t.Errorf("a wrong certificate: %v", err)
	}
}

// An identity is kept, and only this user can read it.
func TestIdentitiesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	a, err := Keep(dir)
	require.NoError(t, err)
	b, err := Keep(dir)
	if err != nil || a.Pin != b.Pin || a.Token != b.Token || len(a.Token) != 64 {
		t.Errorf("%v", err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, identityFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, identityFile), []byte("nonsense"), 0o600))
	if _, err := Keep(dir); err == nil || !strings.Contains(err.Error(), identityFile) {
		t.Errorf("a damaged identity: %v", err)
	}
}

// Clients that send nothing, or anything but a request with the token, are disconnected and do not
// block others.
func TestUnauthenticatedDoNotBlockOthers(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	s, id, url := serve(t)
	var silent []net.Conn
	for range maxUnauthenticated - 50 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr().String())
		require.NoError(t, err)
		silent = append(silent, c)
	}
	raw := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	endless, err := raw.DialContext(t.Context(), "tcp", s.Addr().String())
	require.NoError(t, err)
	defer endless.Close()
	head := "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n{"
	if _, err := io.WriteString(endless, head); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	if n, err := io.ReadAtLeast(endless, answer, 12); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 401") {
		t.Errorf("%q, %v", answer[:n], err)
	}
	c := NewClient([]string{url}, id.Token, id.Pin, time.Minute)
	defer c.Close()
	if err := c.Ask(t.Context(), "/echo", word{"in"}, &word{}); err != nil {
		t.Error(err)
	}
	for _, q := range silent {
		_ = q.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := q.Read(answer); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("who says nothing is never thrown out")
		}
		_ = q.Close()
	}
}

// Headers that never end are cut off.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	s, _, _ := serve(t)
	raw := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := raw.DialContext(t.Context(), "tcp", s.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n")
	for range 10000 {
		if _, err := io.WriteString(c, "X: "+strings.Repeat("y", 1000)+"\r\n"); err != nil {
			return
		}
	}
	t.Error("10 MB of headers were taken")
}

// Requests to an absent server are repeated until it is there.
func TestInsisting(t *testing.T) {
	t.Parallel()
	id, err := Keep(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	first, err := Listen(t.Context(), "127.0.0.1:0", id, nil)
	require.NoError(t, err)
	at := first.Addr().String()
	c := NewClient([]string{"https://" + at}, id.Token, id.Pin, 2*time.Second)
	defer c.Close()
	_ = first.Close()
	done := make(chan error, 1)
	go func() { done <- c.Insist(t.Context(), "/echo", word{"x"}, &word{}, time.Minute) }()
	<-time.After(200 * time.Millisecond) // its first requests have failed
	second, err := Listen(t.Context(), at, id, nil)
	require.NoError(t, err)
	defer second.Close()
	var asked atomic.Int64
	Handle(second, "/echo", 1000, func(_ context.Context, w *word) (*word, error) {
		if asked.Add(1) < 3 {
			return nil, Refuse(http.StatusServiceUnavailable, "busy")
		}
		return w, nil
	})
	<-time.After(200 * time.Millisecond) // the request waits until the server responds
	second.Begin()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.Insist(t.Context(), "/echo", word{"x"}, &word{}, time.Minute); err != nil || asked.Load() < 3 {
		t.Errorf("%v after %d questions", err, asked.Load())
	}
}

// A server may authenticate clients by other means than one token, show some pages to all, and
// parse requests strictly.
func TestServingWithACheck(t *testing.T) {
	t.Parallel()
	type name struct{}
	s, err := Serve(t.Context(), "127.0.0.1:0", Config{Check: func(r *http.Request) (context.Context, error) {
		switch raw, _ := token.FromHeader(r); raw {
		case "guest":
			return nil, Refuse(http.StatusForbidden, "guests are not let in")
		case "ann":
			return context.WithValue(r.Context(), name{}, "ann"), nil
		}
		return nil, errors.New("who is that?")
	}})
	require.NoError(t, err)
	defer s.Close()
	url := "http://" + s.Addr().String()
	Answer(s, "POST /say/{what}", 100, func(r *http.Request, in *word) (word, error) {
		if in.Text == "busy" {
			return word{}, &Error{Status: http.StatusServiceUnavailable, Text: "not now", After: 1500 * time.Millisecond}
		}
		who, _ := r.Context().Value(name{}).(string)
		return word{who + " says " + r.PathValue("what") + in.Text}, nil
	})
	s.Public("GET /open", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"text":"open"}`) }))
	s.Mount("GET /stream", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "some text") }))
	s.Begin()
	ask := func(token, path string, in any) (string, error) {
		c := NewClientTLS([]string{url}, token, nil, time.Minute)
		defer c.Close()
		var out word
		err := c.Ask(t.Context(), path, in, &out)
		return out.Text, err
	}
	if text, err := ask("ann", "/say/hello", word{"!"}); err != nil || text != "ann says hello!" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ask("", "/open", nil); err != nil || text != "open" {
		t.Errorf("%q, %v", text, err)
	}
	for _, c := range []struct {
		token, path string
		in          any
		status      int
		text        string
	}{
		{"bob", "/say/x", word{}, http.StatusUnauthorized, "who is that?"},
		{"", "/stream", nil, http.StatusUnauthorized, "who is that?"},
		{"guest", "/say/x", word{}, http.StatusForbidden, "guests are not let in"},
		{"ann", "/say/x", map[string]int{"txet": 1}, http.StatusBadRequest, `unknown field "txet"`},
		{"ann", "/say/x", word{strings.Repeat("y", 200)}, http.StatusRequestEntityTooLarge, "100 bytes"},
		{"ann", "/none", word{}, http.StatusNotFound, ""},
		{"ann", "/say/x", word{"busy"}, http.StatusServiceUnavailable, "not now"},
	} {
		_, err := ask(c.token, c.path, c.in)
		if Status(err) != c.status || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s %s: %v", c.token, c.path, err)
		}
		var e *Error
		if c.text == "not now" && (!errors.As(err, &e) || e.After != 2*time.Second) {
			t.Errorf("to be asked again after %v", e.After)
		}
	}
	c := NewClientTLS([]string{url}, "ann", nil, time.Minute)
	defer c.Close()
	r, err := c.Stream(t.Context(), "/stream")
	require.NoError(t, err)
	if text, err := io.ReadAll(r); string(text) != "some text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	_ = r.Close()
	if _, err := c.Stream(t.Context(), "/none"); Status(err) != http.StatusNotFound {
		t.Errorf("%v", err)
	}
}

// TestOneAddressKeepsNobodyOut: while one address holds as many connections open as it can, other
// clients get responses at once.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	s, err := Serve(t.Context(), "127.0.0.1:0", Config{Check: func(r *http.Request) (context.Context, error) { return r.Context(), nil }})
	require.NoError(t, err)
	s.Public("GET /ok", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Begin()
	defer s.Close()
	from := func(ip string) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}} }
	for range maxUnauthenticated + 100 {
		c, err := from("127.0.0.2").Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	client := &http.Client{Timeout: patience / 2, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: from("127.0.0.3").DialContext}}
	for range 5 {
		begin := time.Now()
		res, err := client.Get("http://" + s.Addr().String() + "/ok")
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		_ = res.Body.Close()
	}
}
