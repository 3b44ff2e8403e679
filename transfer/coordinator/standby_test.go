package coordinator

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/db/dbtest"
	"weir/transfer"
	"weir/transfer/client"
)

// The active coordinator is killed again and again while files are moving. Each time the standby, at another address and
// with a copy of the keys, takes over: agents and users find it, files arrive again within 10 s, none is lost and none is
// moved twice.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	confs := [2]Config{{State: t.TempDir(), Standby: true, DB: dbtest.Server(t)}, {State: t.TempDir(), Standby: true}}
	confs[1].DB = confs[0].DB
	h, kill := spawned(t, &confs[0])
	copyKeys(t, confs[0].State, confs[1].State)
	confs[1].Listen = unusedAddress(t)
	h.also = []string{"https://" + confs[1].Listen}
	raw, err := os.ReadFile(filepath.Join(confs[1].State, adminFile))
	if err != nil {
		t.Fatal(err)
	}
	h.admin, err = client.New(client.Config{URLs: append([]string{h.url}, h.also...), Pin: h.pin, Token: strings.TrimSpace(string(raw)),
		Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.admin.Close)
	_, next := startChild(t, confs[1])
	a, b := h.place("A", true), h.place("B", true)
	const files, kills = 600, 4
	a.write("/store/run1", files, 20_000)
	h.scan("/store/run1", "A")
	q, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Tries: 20})
	if err != nil {
		t.Fatal(err)
	}
	request := func() (transfer.Request, error) { return h.admin.Request(t.Context(), q.ID) }
	longest := time.Duration(0)
	for n := range kills {
		until(t, "files arrive", func() bool { q = insist(t, request); return q.Count.Done > int64(n*files/(2*kills)) })
		kill()
		died := time.Now()
		before := insist(t, request).Count.Done
		until(t, "files arrive after a takeover", func() bool { q = insist(t, request); return q.Count.Done > before || q.Status.Ended() })
		longest = max(longest, time.Since(died))
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
		h.tell(q.ID)
	}
	h.once(q.ID)
	for i := range files {
		same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
	}
}

// A standby with keys of its own, or with a database of one process, would not be one.
func TestStandbyRefuses(t *testing.T) {
	t.Parallel()
	conf := Config{State: t.TempDir(), DB: dbtest.Server(t), Standby: true}
	active := start(t, conf)
	conf.State = t.TempDir()
	if _, err := Open(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "has not the keys of the coordinator of ") {
		t.Errorf("without keys: %v", err)
	}
	active.end()
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
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// unusedAddress returns an address that nothing listens on.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
