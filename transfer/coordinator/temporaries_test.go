package coordinator

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer"
)

// leftovers returns the number of recorded temporary files.
func (h *service) leftovers() (n int64) {
	h.T.Helper()
	require.NoError(h.T, h.db.Read(h.T.Context(), func(tx *db.Tx) error { return tx.Row("SELECT COUNT(*) FROM leftover").Scan(&n) }))
	return n
}

// addLeftovers records temporary files of copies to a site that are not running, due in the order
// of the calls.
func (h *service) addLeftovers(site string, items ...int64) {
	h.T.Helper()
	for _, item := range items {
		l := transfer.Lease{Item: item, Epoch: 1, Mode: transfer.Third, Dest: transfer.End{Site: site, Path: "f"}}
		require.NoError(h.T, h.copier.RecordTemporaries(h.T.Context(), []transfer.Lease{l}))
		require.NoError(h.T, h.db.Exec(h.T.Context(), "UPDATE leftover SET due = ? WHERE item = ?", item, item))
	}
}

// closedPort returns the address of a port of this machine at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// A copy that failed before writing to its destination leaves no record of a temporary file.
func TestFailedCopiesLeaveNoRecords(t *testing.T) {
	t.Parallel()
	either(t, func(t *testing.T, conf Config) {
		conf.Plain, conf.JobArea = true, tpc.Loopback
		dir := t.TempDir()
		at := servetest.Start(t, serve.Config{Dir: dir, Extensions: thirdParty()})
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("hello"), 0o644))
		h := start(t, conf)
		u := h.ftsUser("ada", "weir.submit")
		for name, c := range map[string]struct{ from, to, params string }{
			"closed destination":         {at + "/f", "http://" + closedPort(t) + "/g", ""},
			"closed destination, strict": {at + "/f", "http://" + closedPort(t) + "/g", `,"strict_copy":true`},
			"closed source":              {"http://" + closedPort(t) + "/f", at + "/g", ""},
			"no such file":               {at + "/none", at + "/h", ""},
		} {
			id := u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"filesize":5}],"params":{"retry":-1%s}}`, c.from, c.to, c.params))
			until(t, "it was tried: "+name, func() bool {
				var files []struct{ Reason string }
				return u.ask("GET", "/jobs/"+id+"/files", "", &files) == http.StatusOK && files[0].Reason != ""
			})
			u.ask("DELETE", "/jobs/"+id, "", nil)
			if j := u.ended(id); j.State != "FAILED" && j.State != "CANCELED" {
				t.Errorf("%s: %+v", name, j)
			}
			if n := h.leftovers(); n != 0 {
				t.Errorf("%s: %d temporary files are looked for", name, n)
			}
		}
	})
}

// A site that does not respond does not delay the clean-up of other sites.
func TestSilentSiteDelaysItsOwnOnly(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	var asked atomic.Int64
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			asked.Add(1)
			<-r.Context().Done()
		}
	}))
	t.Cleanup(silent.Close) // after the coordinator has ended
	dir := t.TempDir()
	at := servetest.Start(t, serve.Config{Dir: dir})
	h := start(t, Config{Approve: -1, Plain: true})
	h.addSite("silent", silent.URL)
	h.addSite("L", at)
	part := filepath.Join(dir, ".weir-9.1.part")
	require.NoError(t, os.WriteFile(part, nil, 0o644))
	h.addLeftovers("silent", 1, 2, 3)
	h.addLeftovers("L", 9)
	until(t, "the file at the other site is removed", func() bool {
		_, err := os.Stat(part)
		return os.IsNotExist(err)
	})
	if n := asked.Load(); n > 1 {
		t.Errorf("%d files of the silent site came first", n)
	}
}

// All temporary files of a site that is away wait together, with one line in the log, for a week.
func TestSweepsOfAnAbsentSiteEnd(t *testing.T) {
	t.Parallel()
	log := &lines{}
	h := start(t, Config{Approve: -1, Plain: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	h.addSite("D", "http://"+closedPort(t))
	h.addLeftovers("D", 1, 2, 3)
	require.NoError(t, h.copier.SweepSite(t.Context(), "D"))
	if n, lines := h.leftovers(), log.count("temporary file"); n != 3 || lines != 1 {
		t.Errorf("%d files are looked for, %d lines in the log", n, lines)
	}
	var due int64
	require.NoError(t, h.db.Read(t.Context(), func(tx *db.Tx) error {
		return tx.Row("SELECT COUNT(*) FROM leftover WHERE due > ? AND tries = 1", h.now()).Scan(&due)
	}))
	if due != 3 {
		t.Errorf("%d files wait", due)
	}
	h.age((7*24 - 1) * time.Hour)
	require.NoError(t, h.copier.SweepSite(t.Context(), "D"))
	if n := h.leftovers(); n != 3 {
		t.Errorf("%d files are looked for after less than a week", n)
	}
	h.age(2 * time.Hour)
	require.NoError(t, h.copier.SweepSite(t.Context(), "D"))
	if n := h.leftovers(); n != 0 {
		t.Errorf("%d files are looked for after a week", n)
	}
}

// age makes all recorded temporary files older, and due.
func (h *service) age(by time.Duration) {
	h.T.Helper()
	require.NoError(h.T, h.db.Exec(h.T.Context(), "UPDATE leftover SET due = 0, since = since - ?", int64(by)))
}
