package fts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/fts"
	"weir/storage"
	"weir/transfer/access"
	"weir/transfer/coordinator"
)

// Each copy has tokens for its sites, which servers that require tokens accept. A copy whose token
// has expired fails as such.
func TestTokens(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "real servers")
	r := startRig(t, lab.XRootDConfig{Auth: "ztn"}, nil)
	read, err := r.x.Token(time.Hour, "storage.read:/")
	require.NoError(t, err)
	write, err := r.y.Token(time.Hour, "storage.modify:/ storage.read:/")
	require.NoError(t, err)
	ended, err := r.x.Token(-time.Hour, "storage.read:/")
	require.NoError(t, err)
	r.conf.Credentials = func(site string) (storage.Credentials, error) {
		return storage.Credentials{Token: map[string]string{"X": read, "Y": write}[site]}, nil
	}
	i, _ := r.open()
	require.NoError(t, i.Check(t.Context()))
	f := r.file(r.x, "f", 100_000)
	require.NoError(t, i.Start(t.Context(), []inject.Copy{{ID: 1, Source: f, Dest: "one"}, {ID: 2, Source: f, Dest: "two"}}))
	for _, got := range r.final(1, 2) {
		if got.State != inject.Done || !got.Verified {
			t.Errorf("%+v", got)
		}
	}
	read = ended
	require.NoError(t, i.Start(t.Context(), []inject.Copy{{ID: 3, Source: f, Dest: "three"}}))
	if got := r.final(3)[3]; got.State != inject.Failed || got.Class != storage.Denied || !got.Expired {
		t.Errorf("%+v", got)
	}
	write = ""
	if err := i.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "tokens for both") {
		t.Errorf("%v", err)
	}
}

// With a certificate a proxy is delegated, with which the coordinator authenticates to real servers.
func TestDelegation(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "real servers")
	r := startRig(t, lab.XRootDConfig{Users: true, Macaroons: "u ada /data a"}, func(c *coordinator.Config) {
		c.CA, c.Names = c.SiteCA, map[string][]string{"weir lab user": {access.MaySubmit}}
	})
	for n, auth := range []storage.Auth{{CertFile: r.x.UserCert, KeyFile: r.x.UserKey}, {ProxyFile: r.x.Proxy}} {
		auth.Insecure = true
		r.plan.Inject.Auth, r.conf.Dir = auth, t.TempDir()
		i, end := r.open()
		require.NoError(t, i.Check(t.Context()))
		f := r.file(r.x, fmt.Sprintf("f%d", n), 100_000)
		id := int64(n + 1)
		require.NoError(t, i.Start(t.Context(), []inject.Copy{{ID: id, Source: f, Dest: f.Path}}))
		if got := r.final(id)[id]; got.State != inject.Done || !got.Verified {
			t.Errorf("%+v", got)
		}
		end()
	}
}

// Copies that were submitted before a kill end once, and what was cancelled leaves no file.
func TestKilled(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "real servers")
	r := startRig(t, lab.XRootDConfig{}, nil)
	f := r.file(r.x, "f", 200_000)
	i, end := r.open()
	var copies []inject.Copy
	for id := range int64(60) {
		copies = append(copies, inject.Copy{ID: id + 1, Source: f, Dest: fmt.Sprintf("k%d", id)})
	}
	r.Pause() // the coordinator accepts jobs and copies nothing
	require.NoError(t, i.Start(t.Context(), copies[:30]))
	require.NoError(t, i.Start(t.Context(), copies[30:]))
	require.Eventually(t, "all are queued", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.news) == len(copies) })
	end()
	file, err := os.OpenFile(filepath.Join(r.conf.Dir, "fts.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"job":"cut of`)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	again, _ := r.open()
	require.NoError(t, again.Resume(t.Context(), copies))
	begun := time.Now()
	require.NoError(t, again.Cancel(t.Context(), ids(copies[:20])))
	for _, got := range r.final(ids(copies[:20])...) {
		if got.State != inject.Cancelled {
			t.Errorf("%+v", got)
		}
	}
	t.Logf("20 of 60 files cancelled after %s", time.Since(begun))
	r.Resume()
	for _, got := range r.final(ids(copies[20:])...) {
		if got.State != inject.Done {
			t.Errorf("%+v", got)
		}
	}
	for n, c := range copies {
		_, err := os.Stat(filepath.Join(r.y.Data, "c", c.Dest))
		if (err == nil) != (n >= 20) {
			t.Errorf("%s: %v", c.Dest, err)
		}
	}
}

// A site that requires a certificate cannot be used with tokens for FTS alone.
func TestCheckCertificate(t *testing.T) {
	t.Parallel()
	r := rigAt(t, startFake(t))
	r.plan.Sites[1].Auth.Method = storage.X509Auth
	i, _ := r.open()
	if err := i.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "site Y requires a certificate") {
		t.Error(err)
	}
	r.plan.Links[0].To = "Z"
	if _, err := fts.New(t.Context(), r.conf); err == nil || !strings.Contains(err.Error(), "links[0]") {
		t.Error(err)
	}
}
