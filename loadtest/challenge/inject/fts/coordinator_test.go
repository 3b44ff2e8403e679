package fts_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/fts"
	"weir/storage"
	"weir/transfer/access"
	"weir/transfer/coordinator"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

// A rig is a coordinator and two real servers that copy from each other, as a challenge with the
// links X to Y and Y to X.
type rig struct {
	*transfertest.Service
	t    *testing.T
	x, y *lab.System
	plan *challenge.Challenge
	conf inject.Config

	mu   sync.Mutex
	news map[int64][]inject.Report
}

func startRig(t *testing.T, of lab.XRootDConfig, set func(*coordinator.Config)) *rig {
	t.Helper()
	of.Copies = true
	r := &rig{t: t, news: map[int64][]inject.Report{}}
	r.x = labtest.Start(t, of)
	of.Authority = r.x
	r.y = labtest.Start(t, of)
	conf := coordinator.Config{State: t.TempDir(), Listen: labtest.Address(t), Approve: -1, SiteCA: r.x.CAFile, JobArea: tpc.Loopback}
	if set != nil {
		set(&conf)
	}
	r.Service = transfertest.Start(t, func(ctx context.Context) (transfertest.Coordinator, error) { return coordinator.Open(ctx, conf) })
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(r.NewToken("challenge", access.MaySubmit)), 0o600))
	r.plan = &challenge.Challenge{Name: "test", Timeout: unit.Duration(10 * time.Minute), Verify: true,
		Inject: challenge.Injection{By: challenge.FTS, URL: r.Address.URLs[0] + rest.Path, Activity: "Data Challenge",
			Auth: storage.Auth{TokenFile: token, Insecure: true}},
		Sites: []challenge.Site{{Name: "X", URL: r.x.URLs["https"] + "/c"}, {Name: "Y", URL: r.y.URLs["https"] + "/c"}},
		Links: []challenge.Link{{From: "X", To: "Y", Protocol: challenge.WebDAV, SciTag: 129}, {From: "Y", To: "X", Protocol: challenge.WebDAV}}}
	r.conf = inject.Config{Challenge: r.plan, Dir: filepath.Join(t.TempDir(), "inject"), Report: r.report,
		Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }}
	for _, s := range []*lab.System{r.x, r.y} { // the servers' user writes there
		dir := filepath.Join(s.Data, "c")
		require.NoError(t, os.MkdirAll(dir, 0o777))
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	return r
}

func (r *rig) report(n inject.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news[n.ID] = append(r.news[n.ID], n)
}

// open returns an injector. It is closed when the test ends, unless close was called before.
func (r *rig) open() (i inject.Injector, end func()) {
	r.t.Helper()
	i, err := fts.New(r.t.Context(), r.conf)
	require.NoError(r.t, err)
	end = sync.OnceFunc(func() { require.NoError(r.t, i.Close()) })
	r.t.Cleanup(end)
	return i, end
}

// file makes a file at a server.
func (r *rig) file(at *lab.System, name string, size int) inject.File {
	r.t.Helper()
	data := bytes.Repeat([]byte(name+"\n"), size/(len(name)+1)+1)[:size]
	path := filepath.Join(at.Data, "c", name)
	require.NoError(r.t, os.WriteFile(path, data, 0o644))
	require.NoError(r.t, os.Chmod(path, 0o666)) // XRootD stores its checksum in an attribute
	return inject.File{Path: name, Size: int64(size), Sum: fmt.Sprintf("adler32:%08x", adler32.Checksum(data))}
}

// final waits until copies have ended and returns their last reports. Each copy has one final report,
// its last one.
func (r *rig) final(ids ...int64) map[int64]inject.Report {
	r.t.Helper()
	last := map[int64]inject.Report{}
	require.Eventually(r.t, "all copies end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, id := range ids {
			if all := r.news[id]; len(all) > 0 && all[len(all)-1].State.Ended() {
				last[id] = all[len(all)-1]
			}
		}
		return len(last) == len(ids)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		var at time.Time
		for n, one := range r.news[id] {
			if one.State.Ended() != (n == len(r.news[id])-1) || one.At.Before(at) || one.At.After(time.Now()) {
				r.t.Errorf("copy %d: %+v", id, r.news[id])
			}
			at = one.At
		}
	}
	return last
}

func ids(copies []inject.Copy) (all []int64) {
	for _, c := range copies {
		all = append(all, c.ID)
	}
	return all
}

// Copies in both directions are made and verified by the coordinator's API of FTS. A missing and a
// corrupt source fail at the source, and a destination that exists fails at the destination.
func TestCoordinator(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "real servers")
	r := startRig(t, lab.XRootDConfig{}, nil)
	i, _ := r.open()
	require.NoError(t, i.Check(t.Context()))
	f, back := r.file(r.x, "f", 100_000), r.file(r.y, "g", 50_000)
	bad := r.file(r.x, "bad", 1000)
	bad.Sum = "adler32:00000001"
	var copies []inject.Copy
	for id := range int64(120) {
		copies = append(copies, inject.Copy{ID: id + 1, Source: f, Dest: fmt.Sprintf("to/f%d", id)})
	}
	r.file(r.y, "taken", 5)
	copies = append(copies, inject.Copy{ID: 201, Link: 1, Source: back, Dest: "g2"},
		inject.Copy{ID: 202, Source: inject.File{Path: "none", Size: 1, Sum: "adler32:00010001"}, Dest: "none"},
		inject.Copy{ID: 203, Source: bad, Dest: "bad"}, inject.Copy{ID: 204, Source: f, Dest: "taken"})
	require.NoError(t, i.Start(t.Context(), copies))
	last := r.final(ids(copies)...)
	for _, c := range copies {
		got := last[c.ID]
		if c.ID > 201 {
			continue
		}
		if got.State != inject.Done || got.Moved != c.Source.Size || !got.Verified || got.Begin.IsZero() || got.Label != (c.Link == 0) {
			t.Errorf("%+v", got)
		}
		at := []*lab.System{r.y, r.x}[c.Link]
		info, err := os.Stat(filepath.Join(at.Data, "c", c.Dest))
		if err != nil || info.Size() != c.Source.Size {
			t.Errorf("%s: %v", c.Dest, err)
		}
	}
	for id, want := range map[int64]struct {
		site  string
		class storage.Class
	}{202: {"X", storage.NotFound}, 203: {"X", storage.Checksummed}, 204: {"Y", storage.Other}} {
		got := last[id]
		if got.State != inject.Failed || got.Site != want.site || got.Class != want.class || got.Reason == "" || got.Expired ||
			got.Exists != (id == 204) {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
	h := i.Health()
	if h.Requests < 3 || h.Failed > 0 || h.Busy || h.Latency <= 0 {
		t.Errorf("%+v", h)
	}
	t.Logf("%+v; %s", h, strings.Join(r.classes(last), ", "))
}

func (r *rig) classes(last map[int64]inject.Report) (all []string) {
	for id, n := range last {
		if n.State == inject.Failed {
			all = append(all, fmt.Sprintf("%d %s %s %s", id, n.Class, n.Site, n.Reason))
		}
	}
	return all
}
