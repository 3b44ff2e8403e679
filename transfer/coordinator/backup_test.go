package coordinator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"weir/internal/require"
	"weir/internal/tarfile"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/state"
	"weir/transfer/transfertest"
)

const passphrase = "a passphrase of a test"

// The machine of the coordinator is lost, and yesterday's backup is restored at the same address.
// Agents and users keep their tokens. Files in transfer arrive, no file is replaced, and new
// requests have new numbers.
func TestDisaster(t *testing.T) {
	tier.Slow(t, "starts coordinators again and again")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		conf.State, conf.Lease = t.TempDir(), 5*time.Second
		h, kill := spawned(t, &conf)
		a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.Endpoint())
		const files = 300
		a.Write("/store/run1", files, 20_000)
		a.Write("/store/run2", 5, 20_000)
		for _, dataset := range []string{"/store/run1", "/store/run2"} {
			h.Scan(dataset, "A", dataset)
		}
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Tries: 20})
		require.NoError(t, err)
		until(t, "files move", func() bool {
			q, err = h.Client.Request(t.Context(), q.ID)
			return err == nil && q.Count.Done > 10
		})
		var saved bytes.Buffer
		backup := state.Backup{State: conf.State, DB: conf.DB, Passphrase: passphrase, Version: "the test"}
		about, err := backup.Write(t.Context(), &saved)
		if err != nil || len(about.Rows) < 10 {
			t.Fatalf("%+v, %v", about, err)
		}
		lost, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		require.NoError(t, err)
		until(t, "the request after the backup ends", func() bool {
			r, err := h.Client.Request(t.Context(), lost.ID)
			return err == nil && r.Status == transfer.Completed
		})
		times := map[string]time.Time{}
		for _, name := range names("/store/run2", 5) {
			times[name] = writtenAt(t, b, name)
		}
		kill()

		restored := state.Backup{State: filepath.Join(t.TempDir(), "new"), Passphrase: passphrase}
		if conf.DB != "" {
			restored.DB = dbtest.Server(t)
		}
		if again, err := restored.Restore(t.Context(), &saved); err != nil || !again.Made.Equal(about.Made) {
			t.Fatalf("%+v, %v", again, err)
		}
		conf.State, conf.DB = restored.State, restored.DB
		spawn(t, conf)
		until(t, "the request ends", func() bool {
			q = insist(t, func() (transfer.Request, error) { return h.Client.Request(t.Context(), q.ID) })
			return q.Status.Ended()
		})
		if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != files {
			t.Errorf("%+v", q)
			h.Log(q.ID)
		}
		again, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		if err != nil || again.ID <= lost.ID+1000 {
			t.Fatalf("a new request has the number %d, the lost one had %d; %v", again.ID, lost.ID, err)
		}
		until(t, "the lost request ends again", func() bool {
			again, err = h.Client.Request(t.Context(), again.ID)
			return err == nil && again.Status.Ended()
		})
		if again.Count.Skipped+again.Count.Done != 5 || again.Count.Failed > 0 {
			t.Errorf("%+v", again.Count)
		}
		for name, was := range times {
			if now := writtenAt(t, b, name); !now.Equal(was) {
				t.Errorf("%s was replaced", name)
			}
		}
		for _, name := range names("/store/run1", files) {
			same(t, name, a, b)
		}
	})
}

// writtenAt returns the modification time of a site's file.
func writtenAt(t *testing.T, a *transfertest.Agent, name string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(a.Root, name))
	require.NoError(t, err)
	return info.ModTime()
}

func names(dataset string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s/f%d", dataset, i))
	}
	return all
}

// A backup is not restored if the folder is not empty, the passphrase is wrong, the backup is
// damaged or another program made it. An empty folder then stays empty. The content of a backup is
// readable with age alone.
func TestBackupRefuses(t *testing.T) {
	tier.Slow(t, "derives keys for seconds")
	t.Parallel()
	h := start(t, Config{})
	b := state.Backup{State: h.conf.State, Passphrase: passphrase}
	var saved bytes.Buffer
	if _, err := b.Write(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(saved.String(), "PRIVATE KEY") || strings.Contains(saved.String(), "SQLite format") {
		t.Error("the backup is not encrypted")
	}
	if left, err := filepath.Glob(filepath.Join(h.conf.State, "backup-*")); err != nil || len(left) > 0 {
		t.Errorf("%q stays, %v", left, err)
	}
	damaged := bytes.Clone(saved.Bytes())
	damaged[len(damaged)/2] ^= 1
	for name, c := range map[string]struct {
		b    state.Backup
		text []byte
		want string
	}{
		"not empty":        {b, saved.Bytes(), "is not empty"},
		"other passphrase": {state.Backup{State: t.TempDir(), Passphrase: passphrase + "s"}, saved.Bytes(), "is not that of this backup"},
		"short passphrase": {state.Backup{State: t.TempDir(), Passphrase: "short"}, saved.Bytes(), "at least 12 bytes"},
		"damaged":          {state.Backup{State: t.TempDir(), Passphrase: passphrase}, damaged, ""},
		"cut":              {state.Backup{State: t.TempDir(), Passphrase: passphrase}, saved.Bytes()[:saved.Len()-100], ""},
		"something else":   {state.Backup{State: t.TempDir(), Passphrase: passphrase}, []byte("text"), "this is no backup"},
		"evil":             {state.Backup{State: t.TempDir(), Passphrase: passphrase}, sealed(t, "../x"), "which is none of a coordinator"},
	} {
		_, err := c.b.Restore(t.Context(), bytes.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if left, err := os.ReadDir(c.b.State); name != "not empty" && (err != nil || len(left) > 0) {
			t.Errorf("%s: %d files stay, %v", name, len(left), err)
		}
	}
	if _, err := (&state.Backup{State: t.TempDir(), Passphrase: passphrase}).Write(t.Context(), io.Discard); err == nil {
		t.Error("a backup of nothing")
	}
}

// sealed returns an encrypted archive with one file of the given name.
func sealed(t *testing.T, name string) []byte {
	t.Helper()
	to, err := age.NewScryptRecipient(passphrase)
	require.NoError(t, err)
	to.SetWorkFactor(10)
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to)
	require.NoError(t, err)
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	require.NoError(t, tarfile.AddText(archive, name, []byte("x")))
	require.NoError(t, errors.Join(archive.Close(), packed.Close(), w.Close()))
	return b.Bytes()
}
