package direct

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/storage"
	"weir/storage/all"
	"weir/transfer/endpoint"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

// A rig is an injector whose reports are kept.
type rig struct {
	t  testing.TB
	c  *challenge.Challenge
	in inject.Injector

	mu   sync.Mutex
	all  map[int64][]inject.Report
	next int64
}

// newRig returns a rig for links between sites. Auth of the sites is read.
func newRig(t testing.TB, sites []challenge.Site, links ...challenge.Link) *rig {
	t.Helper()
	r := &rig{t: t, all: map[int64][]inject.Report{},
		c: &challenge.Challenge{Name: "test", Sites: sites, Links: links, Timeout: unit.Duration(5 * time.Minute)}}
	credentials := func(name string) (storage.Credentials, error) {
		i := slices.IndexFunc(sites, func(s challenge.Site) bool { return s.Name == name })
		return sites[i].Auth.Read()
	}
	in, err := New(t.Context(), inject.Config{Challenge: r.c, Credentials: credentials, Report: r.add, Drivers: all.Drivers()})
	require.NoError(t, err)
	r.in = in
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	return r
}

// add is the Report of the injector.
func (r *rig) add(n inject.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[n.ID] = append(r.all[n.ID], n)
}

// reports returns the reports of a copy so far.
func (r *rig) reports(id int64) []inject.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[id])
}

// start requests a copy and returns its id.
func (r *rig) start(link int, path, dest string, size int64) int64 {
	r.t.Helper()
	r.next++
	c := inject.Copy{ID: r.next, Link: link, Source: inject.File{Path: path, Size: size}, Dest: dest}
	require.NoError(r.t, r.in.Start(r.t.Context(), []inject.Copy{c}))
	if got := r.reports(c.ID); len(got) == 0 || got[0].State != inject.Queued {
		r.t.Errorf("after the start of copy %d: %+v", c.ID, got)
	}
	return c.ID
}

// final waits for the last report of a copy and checks the reports before it.
func (r *rig) final(id int64) inject.Report {
	r.t.Helper()
	require.Eventually(r.t, "the copy ends", func() bool {
		all := r.reports(id)
		return len(all) > 0 && all[len(all)-1].State.Ended()
	})
	all := r.reports(id)
	for i, n := range all {
		if n.At.IsZero() || i > 0 && (n.Moved < all[i-1].Moved || n.At.Before(all[i-1].At)) || i < len(all)-1 && n.State.Ended() {
			r.t.Errorf("reports of copy %d: %+v", id, all)
		}
	}
	return all[len(all)-1]
}

// copy makes a copy and returns its last report.
func (r *rig) copy(link int, path, dest string, size int64) inject.Report {
	r.t.Helper()
	return r.final(r.start(link, path, dest, size))
}

// start serves c with third-party copies until the test ends.
func start(t testing.TB, c serve.Config) *serve.Server {
	t.Helper()
	local := endpoint.CopyOptions{Guard: tpc.Guard{Hosts: []string{"127.0.0.1", "localhost"}, Private: true}}
	c.Extensions = append(c.Extensions, endpoint.NewCopier(local))
	s, err := serve.New(c)
	require.NoError(t, err)
	requests.Serve(t, s)
	return s
}

// write makes a file of a seed.
func write(t testing.TB, size int64, parts ...string) string {
	t.Helper()
	b := make([]byte, size)
	content.Fill(b, 5, 0)
	return requests.Write(t, string(b), parts...)
}

// same fails the test unless two files have the same content.
func same(t testing.TB, a, b string) {
	t.Helper()
	if string(require.File(t, a)) != string(require.File(t, b)) {
		t.Errorf("%s differs from %s", b, a)
	}
}

// names returns the names in a folder.
func names(t testing.TB, dir string) string {
	t.Helper()
	return requests.Names(t, dir)
}

// secret writes a token to a file and returns the authentication with it.
func secret(t testing.TB, raw string) storage.Auth {
	t.Helper()
	return storage.Auth{Method: storage.TokenAuth, TokenFile: requests.Write(t, raw, filepath.Join(t.TempDir(), "token"))}
}

// bearer returns the token of a request.
func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}
