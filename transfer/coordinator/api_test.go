package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/client"
	"weir/transfer/transfertest"
)

// Each role allows its own operations and no other operations.
func TestRoles(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	h.pair(1)
	ctx := t.Context()
	sub := transfer.Submission{Dataset: "/store/run1", To: "B"}
	questions := map[string]func(c *client.Client) error{
		"read":    func(c *client.Client) error { _, err := c.Requests(ctx, transfer.Filter{}); return err },
		"submit":  func(c *client.Client) error { _, err := c.Submit(ctx, sub); return err },
		"approve": func(c *client.Client) error { _, err := c.Approve(ctx, 1, ""); return err },
		"at once": func(c *client.Client) error {
			_, err := c.Submit(ctx, transfer.Submission{Dataset: "/store/run1", To: "B", Approve: true})
			return err
		},
		"cancel": func(c *client.Client) error { _, err := c.Cancel(ctx, 1, ""); return err },
		"site": func(c *client.Client) error {
			_, err := c.AddSite(ctx, transfer.NewSite{Name: "X", URL: "x"})
			return err
		},
		"token": func(c *client.Client) error {
			_, err := c.Token(ctx, transfer.NewToken{Subject: "me", Roles: []string{"weir.admin"}})
			return err
		},
		"agent": func(c *client.Client) error { _, err := c.Register(ctx, transfer.Register{Site: "A"}); return err },
		"files": func(c *client.Client) error {
			_, err := c.AddFiles(ctx, transfer.NewFiles{Dataset: "/d", Site: "A"})
			return err
		},
	}
	allowed := map[string]string{
		"":               "",
		"weir.read":      "read",
		"weir.submit":    "read submit",
		"weir.approve":   "read approve cancel",
		"weir.agent:A":   "agent",
		"weir.agent:AB":  "",
		"weir.admin":     "read submit approve at once cancel site token agent files",
		"weir.nonsense":  "",
		"storage.read:/": "",
	}
	for role, may := range allowed {
		raw, _, err := h.access.Issue(ctx, "ann", []string{role}, time.Hour, "the test")
		if role == "" {
			raw, err = "", nil
		}
		require.NoError(t, err)
		c := h.Login(raw)
		for name, ask := range questions {
			status := wire.Status(ask(c))
			refused := status == http.StatusForbidden || status == http.StatusUnauthorized
			if refused == strings.Contains(may, name) {
				t.Errorf("%q asks for %s: status %d", role, name, status)
			}
		}
	}
	err := questions["approve"](h.As("bob", "weir.submit"))
	if wire.Status(err) != http.StatusForbidden || !strings.Contains(err.Error(), "role approve") || !strings.Contains(err.Error(), "bob") {
		t.Errorf("%v", err)
	}
}

// Users with the role for approval approve and cancel requests. The user who submitted a request
// may cancel it as well.
func TestDecisions(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	h.pair(2)
	ann, bob, boss := h.As("ann", "weir.submit"), h.As("bob", "weir.submit"), h.As("boss", "weir.approve")
	sub := transfer.Submission{Dataset: "/store/run1", To: "B", Key: "once"}
	q, err := ann.Submit(t.Context(), sub)
	if err != nil || q.Status != transfer.Awaiting || q.By != "ann" {
		t.Fatalf("%+v, %v", q, err)
	}
	if again, err := ann.Submit(t.Context(), sub); err != nil || again.ID != q.ID {
		t.Errorf("once more: %+v, %v", again, err)
	}
	if _, err := bob.Cancel(t.Context(), q.ID, ""); wire.Status(err) != http.StatusForbidden {
		t.Errorf("somebody else's is cancelled: %v", err)
	}
	if e, err := bob.Explain(t.Context(), q.ID, ""); err != nil || len(e.Reasons) != 1 || e.Reasons[0].Files != 2 ||
		!strings.Contains(e.Reasons[0].Text, "approval") {
		t.Errorf("%+v, %v", e, err)
	}
	if q, err = boss.Approve(t.Context(), q.ID, "fine"); err != nil || q.Decided != "boss" {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := boss.Approve(t.Context(), q.ID, "fine"); wire.Status(err) != http.StatusConflict {
		t.Errorf("a second time: %v", err)
	}
	if _, err = ann.Cancel(t.Context(), q.ID, "changed my mind"); err != nil {
		t.Error(err)
	}
	if _, err := ann.Request(t.Context(), 99); wire.Status(err) != http.StatusNotFound {
		t.Errorf("%v", err)
	}
}

// Invalid requests are refused with a description of the valid form, and the coordinator continues
// to work.
func TestHostileQuestions(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Plain: true})
	h.pair(1)
	raw, err := h.Admin()
	require.NoError(t, err)
	deep := strings.Repeat(`{"a":`, 100000)
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "requests", `{"dataset":"/store/run1","to":"B","aprove":true}`, 400, `unknown field \"aprove\"`},
		{"POST", "requests", `{"dataset":"/store/run1","to":"B"}{}`, 400, "trailing data"},
		{"POST", "requests", `{"dataset":"/store/run1","to":17}`, 400, "malformed JSON body"},
		{"POST", "requests", ``, 400, "malformed JSON body"},
		{"POST", "requests", `null`, 400, "not null"},
		{"POST", "requests", deep, 400, "malformed JSON body"},
		{"POST", "requests", `{"dataset":"/none","to":"B"}`, 404, "/none"},
		{"POST", "requests", `{"dataset":"/store/run1","to":"Z"}`, 404, "Z"},
		{"POST", "requests", `{"dataset":"/store/run1","to":"B","priority":1000}`, 409, "priority"},
		{"POST", "requests", `{"dataset":"/store/run1","to":"B","mode":"teleport"}`, 409, "teleport"},
		{"POST", "requests/1/approve", strings.Repeat(" ", 100_000) + "{}", 413, "larger than 65536 bytes"},
		{"POST", "requests/1/approve", `{"reason":"` + strings.Repeat("x", 2000) + `"}`, 400, "more than 1000"},
		{"POST", "requests/x/cancel", `{}`, 400, "invalid id"},
		{"GET", "requests/-1", ``, 400, "invalid id"},
		{"GET", "requests/99999999999999999999", ``, 400, "invalid id"},
		{"GET", "requests?n=-5", ``, 400, "n=-5: expected an integer from 1 to 1000"},
		{"GET", "requests?before=", ``, 400, "expected an integer"},
		{"GET", "requests/1/items?state=odd", ``, 409, ""},
		{"GET", "requests/1/explain?file=%00", ``, 404, ""},
		{"GET", "nothing", ``, 404, "there is no GET /api/v1/nothing"},
		{"DELETE", "sites", ``, 404, ""},
		{"POST", "sites", `{"name":"../x","url":"https://h/"}`, 400, "name of a site"},
		{"POST", "sites", `{"name":"X","url":"file:///etc"}`, 400, "https://"},
		{"POST", "sites", `{"name":"X","url":"https://user:pw@h/"}`, 400, "user:REDACTED@h"},
		{"POST", "sites", `{"name":"X","url":"https://h/data/../.."}`, 400, "must not contain a part"},
		{"POST", "scans", `{"dataset":"/d","site":"A","path":"data/../.."}`, 400, "without .."},
		{"POST", "sites", `{"name":"X","url":"http://far.example/","token":"t"}`, 400, "not sent without TLS"},
		{"POST", "sites", `{"name":"A","url":"https://h/"}`, 409, "has an agent"},
		{"POST", "sites/Z/remove", `{}`, 404, "Z"},
		{"POST", "tokens", `{"subject":"x","roles":["root"]}`, 400, "unknown role"},
		{"POST", "tokens", `{"subject":"x","roles":["weir.read"],"life_ns":-1}`, 400, "lifetime"},
		{"POST", "dataset/files", `{"dataset":"/d","site":"A","files":[{"name":"../../etc/passwd","size_bytes":1}]}`, 400, "slash"},
		{"POST", "dataset/files", `{"dataset":"/d","site":"A","files":[]}`, 400, "1 to 5000"},
		{"POST", "scans", `{"dataset":"d","site":"A","path":""}`, 400, "slash"},
		{"POST", "agent/register", `{"site":"A"}`, 400, "session"},
		{"POST", "agent/register", `{"site":"A","session":"x","url":"gopher://x"}`, 400, "https://"},
		{"POST", "agent/work", `{"site":"A","session":"unknown"}`, 410, "not registered"},
		{"POST", "agent/report", `{"site":"Q","session":"x"}`, 410, "not registered"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, h.URL()+"/api/v1/"+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+raw)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s %s %.50s: %v", c.method, c.path, c.body, err)
			continue
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(text), c.text) {
			t.Errorf("%s %s %.80s: %d %s", c.method, c.path, c.body, res.StatusCode, text)
		}
	}
	if _, err := h.Client.Sites(t.Context()); err != nil {
		t.Error(err)
	}
}

// Secrets are encrypted in the database and do not appear in responses. They can be decrypted after
// a restart.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	h := start(t, Config{State: t.TempDir()})
	const secret = "a-secret-of-somebody"
	s, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: "https://127.0.0.1:1/x", Token: secret})
	if err != nil || strings.Contains(fmt.Sprint(s), secret) {
		t.Errorf("%+v, %v", s, err)
	}
	h.End()
	for _, file := range []string{access.SecretsFile, access.IssuerFile, access.AdminFile, pageFile, "identity.pem"} {
		if info, err := os.Stat(filepath.Join(h.conf.State, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	names, err := filepath.Glob(filepath.Join(h.conf.State, "*"))
	require.NoError(t, err)
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds the secret (%v)", name, err)
		}
	}
	h.Begin()
	if d := h.sites.Secrets("X"); d.Token != secret {
		t.Errorf("after a restart: %q", d.Token)
	}
	if _, err := h.state.Box.Open(h.state.Box.Seal(secret, "X"), "Y"); err == nil {
		t.Error("a secret of X opens for Y")
	}
}

// The administrator's token remains valid after a restart. A second coordinator with the same
// folder is refused.
func TestStartingAgain(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	raw, err := h.Admin()
	require.NoError(t, err)
	if _, err := Open(t.Context(), Config{State: h.conf.State}); err == nil ||
		!strings.Contains(err.Error(), "in use by another coordinator") {
		t.Errorf("%v", err)
	}
	h.conf.State = h.Coordinator.conf.State
	h.End()
	h.Begin()
	if _, err := h.Login(raw).Sites(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.Context(), Config{State: t.TempDir(), Plain: true, Listen: "0.0.0.0:0"}); err == nil ||
		!strings.Contains(err.Error(), "loopback") {
		t.Errorf("plain http for everybody: %v", err)
	}
}

// Events are delivered as they happen, and are delivered again to a client that names the last
// event it received.
func TestEvents(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, q := h.pair(2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var seen []transfer.Event
	done := make(chan error, 1)
	go func() {
		done <- h.Client.Events(ctx, -1, func(e transfer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.ID > 0 {
				seen = append(seen, e)
			}
			return nil
		})
	}()
	for h.alive(q.ID) {
		for _, l := range b.Work().Leases {
			if _, err := b.Report(transfertest.Verified(l)); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, "the end is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) > 0 && seen[len(seen)-1].Status == transfer.Completed
	})
	mu.Lock()
	all := seen
	mu.Unlock()
	stop := errors.New("enough")
	err := h.Client.Events(t.Context(), all[0].ID, func(e transfer.Event) error {
		if e.ID == 0 {
			return nil
		}
		if e.ID != all[1].ID || e.Text != all[1].Text {
			t.Errorf("after %+v: %+v", all[0], e)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func (h *service) alive(id int64) bool {
	h.T.Helper()
	q, err := h.Client.Request(h.T.Context(), id)
	if err != nil {
		h.T.Fatal(err)
	}
	return !q.Status.Ended()
}

// The health check, the metrics, the public keys and the web page are served.
func TestPages(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Plain: true})
	_, b, _ := h.pair(2)
	b.WaitWork()
	raw, _ := h.Admin()
	for path, want := range map[string]string{
		"/healthz": "ok", "/metrics": `weir_transfer_site_up{site="A",kind="agent"} 1`, "/.well-known/jwks.json": `"keys"`, "/": "<html",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+path, http.NoBody)
		require.NoError(t, err)
		if path == "/metrics" {
			req.Header.Set("Authorization", "Bearer "+raw)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
}
