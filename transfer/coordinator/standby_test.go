package coordinator

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/lab/dbtest"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/client"
	"weir/transfer/page"
	"weir/transfer/transfertest"
)

// The active coordinator is killed repeatedly while files are moving. Each time the standby, at
// another address and with a copy of the keys, takes over: agents and users connect to it, files
// arrive again within 10 s, no file is lost and no file is moved twice.
func TestStandbyTakesOver(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	confs := [2]Config{{State: t.TempDir(), Standby: true, DB: dbtest.Server(t)}, {State: t.TempDir(), Standby: true}}
	confs[1].DB = confs[0].DB
	confs[0].Listen = labtest.Address(t)
	url, kill := spawn(t, confs[0])
	copyKeys(t, confs[0].State, confs[1].State)
	confs[1].Listen = labtest.Address(t)
	h := standbyService(t, confs[1].State, url, "https://"+confs[1].Listen)
	_, next := startChild(t, confs[1])
	session := h.browse(h.url, "POST", `{"token":"`+adminToken(t, confs[1].State)+`"}`, nil)
	if session.StatusCode != http.StatusOK || len(session.Cookies()) != 1 {
		t.Fatalf("signing in: %s", session.Status)
	}
	a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.Endpoint())
	const files, kills = 600, 4
	a.Write("/store/run1", files, 20_000)
	h.Scan("/store/run1", "A", "/store/run1")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Tries: 20})
	require.NoError(t, err)
	request := func() (transfer.Request, error) { return h.Client.Request(t.Context(), q.ID) }
	longest := time.Duration(0)
	for n := range kills {
		until(t, "files arrive", func() bool { q = insist(t, request); return q.Count.Done > int64(n*files/(2*kills)) })
		kill()
		died := time.Now()
		before := insist(t, request).Count.Done
		until(t, "files arrive after a takeover", func() bool { q = insist(t, request); return q.Count.Done > before || q.Status.Ended() })
		longest = max(longest, time.Since(died))
		if r := h.browse([]string{h.Standbys[0], h.url}[n%2], "GET", "", session.Cookies()[0]); r.StatusCode != http.StatusOK {
			t.Errorf("the session of a browser is %s after takeover %d", r.Status, n+1)
		}
		kill = next
		_, next = startChild(t, confs[n%2])
	}
	t.Logf("files arrive again after at most %v", longest.Round(time.Millisecond))
	if longest > 10*time.Second {
		t.Errorf("files arrive %v after a kill", longest)
	}
	until(t, "the request ends", func() bool { q = insist(t, request); return q.Status.Ended() })
	if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != files {
		t.Errorf("after %d kills: %+v", kills, q)
		h.Log(q.ID)
	}
	h.once(q.ID)
	for i := range files {
		same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
	}
}

// standbyService returns the service of two addresses with the keys in state.
func standbyService(t *testing.T, state, url, also string) *service {
	t.Helper()
	id, err := wire.Keep(state)
	require.NoError(t, err)
	admin := client.Config{URLs: []string{url, also}, Pin: id.Pin, Token: adminToken(t, state), Wait: 10 * time.Second}
	h := &service{Coordinator: &Coordinator{url: url, pin: id.Pin}, Service: transfertest.Attach(t, admin)}
	h.Standbys = []string{also}
	return h
}

// adminToken returns the token of the administrator in a state folder.
func adminToken(t *testing.T, state string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(state, access.AdminFile))
	require.NoError(t, err)
	return strings.TrimSpace(string(raw))
}

// browse requests the session of a browser, which uses one name for the service.
func (h *service) browse(address, method, body string, cookie *http.Cookie) *http.Response {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), method, address+"/session", strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	r.Host = "localhost:9443"
	r.Header.Set(page.OrderHeader, "1")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	transport := &http.Transport{TLSClientConfig: wire.Pinned(h.pin)}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer
}

// A coordinator is suspended, loses its claim and resumes when the standby is active. It ends by
// itself, and no file is moved twice.
func TestSuspendedCoordinator(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	confs := [2]Config{{State: t.TempDir(), Standby: true, DB: dbtest.Server(t), Lease: 5 * time.Second}, {State: t.TempDir(), Standby: true}}
	first, old, _ := startProcess(t, confs[0])
	url := <-first
	copyKeys(t, confs[0].State, confs[1].State)
	confs[1].DB, confs[1].Listen, confs[1].Lease = confs[0].DB, labtest.Address(t), confs[0].Lease
	h := standbyService(t, confs[1].State, url, "https://"+confs[1].Listen)
	second, _ := startChild(t, confs[1])
	a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.Endpoint())
	const files = 600
	a.Write("/store/run1", files, 20_000)
	h.Scan("/store/run1", "A", "/store/run1")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Tries: 20})
	require.NoError(t, err)
	request := func() (transfer.Request, error) { return h.Client.Request(t.Context(), q.ID) }
	until(t, "files arrive", func() bool { q = insist(t, request); return q.Count.Done > 20 })
	require.NoError(t, old.Process.Signal(syscall.SIGSTOP))
	breakConnections(t, confs[0].DB)
	<-second // the standby is active
	require.NoError(t, old.Process.Signal(syscall.SIGCONT))
	if err := old.Wait(); err == nil {
		t.Error("the old coordinator ends without an error")
	}
	until(t, "the request ends", func() bool { q = insist(t, request); return q.Status.Ended() })
	if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != files {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	h.once(q.ID)
	for i := range files {
		same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
	}
}

// breakConnections ends the connections to a database, as PostgreSQL does if the machines of its
// clients do not respond.
func breakConnections(t *testing.T, address string) {
	t.Helper()
	d, err := db.Open(t.Context(), address, db.Options{Conns: 1})
	require.NoError(t, err)
	defer d.Close()
	err = d.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
}

// A standby with its own keys, or with a database for one process, is refused because it cannot
// take over.
func TestStandbyRefuses(t *testing.T) {
	t.Parallel()
	conf := Config{State: t.TempDir(), DB: dbtest.Server(t), Standby: true}
	active := start(t, conf)
	conf.State = t.TempDir()
	if _, err := Open(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "has not the keys of the coordinator of ") {
		t.Errorf("without keys: %v", err)
	}
	active.End()
	if _, err := Open(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "has not the keys of the coordinator of ") {
		t.Errorf("without keys, when the database is free: %v", err)
	}
	if _, err := Open(t.Context(), Config{State: t.TempDir(), Standby: true}); err == nil || !strings.Contains(err.Error(), "use PostgreSQL") {
		t.Errorf("with SQLite: %v", err)
	}
}

// copyKeys copies the state folder of a coordinator, as an administrator does for its standby.
func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
		require.NoError(t, err)
	}
}
