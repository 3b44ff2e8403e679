package coordinator

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/fts/rest"
)

// A remote agent cannot make the coordinator send requests to addresses that only the coordinator
// can reach, neither as the URL of its endpoint nor by a redirect.
func TestCoordinatorsAreNotSentAnywhere(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	victim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(victim.Close)
	away := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	h := start(t, Config{})
	for site, tt := range map[string]struct {
		area tpc.Area
		door string
		good bool
	}{
		"HERE": {tpc.Loopback, victim.URL, true}, "LAB": {tpc.Network, victim.URL, false}, "FAR": {tpc.Public, victim.URL, false},
		"META": {tpc.Loopback, "http://169.254.169.254", false}, "AWAY": {tpc.Loopback, away.URL, false},
		"INSIDE": {tpc.Public, "http://10.0.0.1:1", false},
	} {
		h.FakeAgent(site).Register(tt.door)
		l := transfer.Lease{Item: 1, Epoch: 1, Size: 1, Dest: transfer.End{Site: site, Path: "f"}}
		if site == "HERE" && h.sites.Guard(site).Upto != tpc.Loopback {
			t.Error("it has not come from this machine")
		}
		h.agents.Register(&transfer.Register{Site: site, Session: "two", URL: tt.door}, tt.area)
		before := asked.Load()
		_, err := h.tpc.Stat(t.Context(), h.endpoints.Target(l, l.Dest, "storage.read:/f"))
		if tt.good != (err == nil) || !tt.good && (tpc.KindOf(err) != tpc.Denied || !strings.Contains(err.Error(), "private network")) ||
			!tt.good && asked.Load() != before {
			t.Errorf("%s: %v, asked %d times", site, err, asked.Load()-before)
		}
	}
}

// Probes of the endpoints of jobs have the same restrictions as copies. The coordinator does not
// connect to a name that resolves to this machine, and the site reports the reason.
func TestProbesAreGuarded(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	count := func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			asked.Add(1)
		}
	}
	inside := &httptest.Server{Listener: l, Config: &http.Server{ReadHeaderTimeout: time.Minute, ConnState: count}}
	inside.Start()
	t.Cleanup(inside.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	h := start(t, Config{Approve: -1}) // the default: public endpoints
	u := h.ftsUser("mallory", access.MaySubmit)
	for _, scheme := range []string{"http", "https"} {
		j := u.ended(u.submit(fmt.Sprintf(`{"files":[{"sources":["%s://localhost:%s/latest/meta-data"],"destinations":["https://localhost:%s/y"],
			"filesize":5}],"params":{"retry":-1}}`, scheme, port, port)))
		if j.State != fts.Failed {
			t.Errorf("%+v", j)
		}
	}
	sites, err := h.Client.Sites(t.Context())
	require.NoError(t, err)
	if len(sites) == 0 {
		t.Fatal("the job has no sites")
	}
	for _, s := range sites {
		h.registry.Probe(t.Context(), s.Name)
	}
	sites, err = h.Client.Sites(t.Context())
	require.NoError(t, err)
	for _, s := range sites {
		if s.Up || !strings.Contains(s.Problem, "private network") {
			t.Errorf("%s is up: %v: %q", s.Name, s.Up, s.Problem)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the coordinator connected %d times", n)
	}
}

// A thousand ids of jobs fit into one request. The scheme of a token is accepted in any case, and a
// refusal names the scheme.
func TestHeadersOfUsers(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	u := h.ftsUser("alice", access.MayRead)
	status := func(path, authorization string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+rest.Path+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", authorization)
		res, err := u.http.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode, res.Header.Get("WWW-Authenticate")
	}
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fts.NewID()
	}
	if code, _ := status("/jobs/"+strings.Join(ids, ","), "Bearer "+u.raw); code != http.StatusNotFound && code != http.StatusMultiStatus {
		t.Errorf("a thousand ids: status %d", code)
	}
	for authorization, want := range map[string]int{
		"Bearer " + u.raw: 200, "bearer " + u.raw: 200, "BEARER " + u.raw: 200, u.raw: 401, "Basic " + u.raw: 401, "": 401,
	} {
		code, scheme := status("/whoami", authorization)
		if code != want || (code == 401) != strings.HasPrefix(scheme, "Bearer") {
			t.Errorf("%.12q: status %d with WWW-Authenticate %q, want %d", authorization, code, scheme, want)
		}
	}
}
