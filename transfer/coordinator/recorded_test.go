package coordinator

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/state"
	"weir/transfer/transfertest"
)

// Each file testdata/backup-N.age is a backup of the coordinator that recordBackup describes, made
// by a release. Later versions restore it, migrate its tables and continue its work. WEIR_RECORD=N
// writes the file of this version.
func TestRecordedBackups(t *testing.T) {
	tier.Slow(t, "derives keys for seconds")
	t.Parallel()
	if name := os.Getenv("WEIR_RECORD"); name != "" {
		recordBackup(t, "testdata/backup-"+name+".age")
	}
	files, err := filepath.Glob("testdata/backup-*.age")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			conf := Config{State: filepath.Join(t.TempDir(), "new")}
			about, err := (&state.Backup{State: conf.State, Passphrase: passphrase}).Restore(t.Context(), bytes.NewReader(text))
			if err != nil || len(about.Rows) == 0 {
				t.Fatalf("%+v, %v", about, err)
			}
			checkRecorded(t, start(t, conf))
		})
	}
}

// recordBackup writes a backup of a coordinator with two sites, a site without an agent and three
// requests: a completed request, a request that waits for approval, and a request with one
// completed file and two leased files.
func recordBackup(t *testing.T, file string) {
	t.Helper()
	h := start(t, Config{})
	_, b, q := h.pair(3)
	for _, l := range b.WaitWork() {
		if _, err := b.Report(transfertest.Verified(l)); err != nil {
			t.Fatal(err)
		}
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Fatalf("%+v", q)
	}
	far := transfer.NewSite{Name: "far", URL: "https://127.0.0.1:1/data", Token: "a token of a test"}
	if _, err := h.Client.AddSite(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	h.Register("/store/run2", "A", 3, 2000)
	for _, approve := range []bool{false, true} {
		if _, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B", Approve: approve}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Report(transfertest.Verified(b.WaitWork()[0])); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if _, err := (&state.Backup{State: h.conf.State, Passphrase: passphrase, Version: "recorded"}).Write(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(file, saved.Bytes(), 0o644))
}

// checkRecorded checks the state that recordBackup has written, and completes its work.
func checkRecorded(t *testing.T, h *service) {
	t.Helper()
	if sites, err := h.Client.Sites(t.Context()); err != nil || len(sites) != 3 || sites[2].Name != "far" {
		t.Errorf("sites %+v, %v", sites, err)
	}
	if got := h.sites.Secrets("far").Token; got != "a token of a test" {
		t.Errorf("the token of the site is %q", got)
	}
	all, err := h.Client.Requests(t.Context(), transfer.Filter{})
	if err != nil || len(all) != 3 || all[2].Status != transfer.Completed || all[2].Count.Done != 3 || all[0].Count.Done != 1 {
		t.Fatalf("requests %+v, %v", all, err)
	}
	if tries, err := h.Client.Attempts(t.Context(), all[2].ID, 0, 10); err != nil || len(tries) != 3 {
		t.Errorf("attempts %+v, %v", tries, err)
	}
	a, b := h.FakeAgent("A"), h.FakeAgent("B")
	a.Session, b.Session = "two", "two"
	a.Register("https://127.0.0.1:1/")
	b.Register("")
	if _, err := h.Client.Approve(t.Context(), all[1].ID, ""); err != nil {
		t.Fatal(err)
	}
	for _, q := range all[:2] {
		until(t, "a recorded request ends", func() bool {
			if q, err = h.Client.Request(t.Context(), q.ID); err != nil || q.Status.Ended() {
				return err == nil
			}
			for _, l := range b.Work().Leases {
				if _, err := b.Report(transfertest.Verified(l)); err != nil {
					t.Fatal(err)
				}
			}
			return false
		})
		if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != 3 {
			t.Errorf("%+v", q)
		}
	}
}
