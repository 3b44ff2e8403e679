package coordinator

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/queue"
	"weir/transfer/sites"
)

// Files of a job are cancelled individually, also while they are being copied; the remaining files
// arrive.
func TestFTSCancelFiles(t *testing.T) {
	t.Parallel()
	p := startFTS(t, "")
	u, other := p.ftsUser("alice", access.MaySubmit), p.ftsUser("bob", access.MaySubmit)
	data := bytes.Repeat([]byte("file\n"), 50_000)
	for _, name := range []string{"f0", "f1"} {
		p.put(p.x, "d/"+name, data)
	}
	require.NoError(t, p.x.Signal(syscall.SIGSTOP))
	waits := `{"sources":["http://127.0.0.1:9/a"],"destinations":["http://127.0.0.1:9/b"]}`
	id := u.submit(`{"files":[` + p.pair("d/f0", "") + "," + p.pair("d/f1", "") + "," + waits + `]}`)
	var files []ftsFile
	until(t, "two files are being copied", func() bool {
		files = nil
		if status := u.ask("GET", "/jobs/"+id+"/files", "", &files); status != http.StatusOK || len(files) != 3 {
			t.Fatalf("%d %+v", status, files)
		}
		return files[0].State == fts.Active && files[1].State == fts.Active
	})
	var no struct{ Message string }
	at := fmt.Sprintf("/jobs/%s/files/%d", id, files[0].ID)
	if status := other.ask("DELETE", at, "", &no); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, no)
	}
	if status := u.ask("DELETE", "/jobs/"+id+"/files/1,x", "", &no); status != http.StatusBadRequest {
		t.Errorf("%d %+v", status, no)
	}
	var state string
	if status := u.ask("DELETE", at, "", &state); status != http.StatusOK || state != fts.Canceled {
		t.Errorf("%d %q", status, state)
	}
	out, err := p.ftsCommand(labtest.FTS(t), []string{"--fts-access-token", u.raw}, "fts-rest-transfer-cancel",
		fmt.Sprintf("%s:%d,%d", id, files[2].ID, 5))
	if err != nil || !strings.Contains(out, "CANCELED\nFile does not belong to the job") {
		t.Errorf("%v\n%s", err, out)
	}
	require.NoError(t, p.x.Signal(syscall.SIGCONT))
	j := u.ended(id)
	states := []string{}
	for _, f := range j.Files {
		states = append(states, f.State)
	}
	if want := []string{fts.Canceled, fts.Finished, fts.Canceled}; !slices.Equal(states, want) || j.State != fts.Canceled ||
		!strings.Contains(j.Files[0].Reason, "canceled by alice") || !strings.Contains(j.Files[2].Reason, "canceled by alice") {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "d/f1")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if status := u.ask("DELETE", at, "", &state); status != http.StatusOK || state != fts.Canceled {
		t.Errorf("%d %q", status, state)
	}
}

// A file that is cancelled after its lease was taken and before its copy starts is not copied.
func TestCancelledWhileTaken(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u := h.ftsUser("alice", access.MaySubmit)
	dest := sites.NameOf(&url.URL{Scheme: "http", Host: "127.0.0.1:9"})
	h.agents.Close() // the test dispatches
	id := u.submit(`{"files":[{"sources":["http://127.0.0.1:9/a"],"destinations":["http://127.0.0.1:9/b"]}]}`)
	var candidates []queue.Candidate
	until(t, "the file waits", func() (ok bool) {
		var err error
		candidates, err = h.queue.Waiting(t.Context(), queue.Want{Dest: dest, N: 1})
		require.NoError(t, err)
		return len(candidates) == 1
	})
	choices, plans, _ := h.leases.Choose(dest, candidates)
	leases, err := h.queue.Take(t.Context(), choices)
	require.NoError(t, err)
	if len(leases) != 1 {
		t.Fatalf("%+v", leases)
	}
	var state string
	file := fmt.Sprintf("/jobs/%s/files/%d", id, leases[0].Item)
	if status := u.ask("DELETE", file, "", &state); status != http.StatusOK || state != fts.Canceled {
		t.Errorf("%d %q", status, state)
	}
	_, gone := h.leases.HandOver(t.Context(), leases, plans)
	if len(gone) != 1 || gone[0].Fault != transfer.RequestCancelled {
		t.Errorf("%+v", gone)
	}
	require.NoError(t, h.applyOutcomes(t.Context(), "", gone))
	if j := u.ended(id); j.State != fts.Canceled || !strings.Contains(j.Files[0].Reason, "canceled by alice") {
		t.Errorf("%+v", j)
	}
}

// An administrator cancels the jobs of a virtual organization.
func TestFTSCancelVO(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	u, root := h.ftsUser("alice", access.MaySubmit), h.ftsUser("root", access.MayAdmin, access.MaySubmit)
	job := func(n int) string {
		return fmt.Sprintf(`{"files":[{"sources":["http://127.0.0.1:9/a%d"],"destinations":["http://127.0.0.1:9/b%d"]}]}`, n, n)
	}
	first, second := u.submit(job(1)), root.submit(job(2))
	var n fts.CancelledAnswer
	var no struct{ Message string }
	if status := u.ask("DELETE", "/jobs/vo/weir", "", &no); status != http.StatusForbidden {
		t.Errorf("%d %+v", status, no)
	}
	if status := root.ask("DELETE", "/jobs/vo/other", "", &n); status != http.StatusOK || n.Jobs != 0 {
		t.Errorf("%d %+v", status, n)
	}
	if status := root.ask("DELETE", "/jobs/vo/weir", "", &n); status != http.StatusOK || n.Jobs != 2 || n.Files != 2 {
		t.Errorf("%d %+v", status, n)
	}
	for _, id := range []string{first, second} {
		if j := u.ended(id); j.State != fts.Canceled {
			t.Errorf("%+v", j)
		}
	}
	if status := root.ask("DELETE", "/jobs/all", "", &n); status != http.StatusOK || n.Jobs != 0 {
		t.Errorf("%d %+v", status, n)
	}
}
