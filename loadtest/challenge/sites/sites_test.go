package sites

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/workload"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/storage"
	"weir/storage/all"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

// manifest is a Recorder in memory.
type manifest struct {
	mu   sync.Mutex
	made []Made
}

func (m *manifest) Created(f Made) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = append(m.made, f)
	return nil
}

func (m *manifest) Removed(site, path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = slices.DeleteFunc(m.made, func(f Made) bool { return f.Site == site && f.Path == path })
	return nil
}

func (m *manifest) Left() ([]Made, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.made), nil
}

// start serves c until the test ends and returns its URL.
func start(t testing.TB, c serve.Config) string {
	t.Helper()
	s, err := serve.New(c)
	require.NoError(t, err)
	requests.Serve(t, s)
	return s.URL()
}

// newChallenge returns a challenge from A to B with three files.
func newChallenge(a, b string) *challenge.Challenge {
	return &challenge.Challenge{Name: "test", Sites: []challenge.Site{{Name: "A", URL: a}, {Name: "B", URL: b}},
		Links: []challenge.Link{{From: "A", To: "B"}}, Timeout: unit.Duration(1e12), Seed: 7,
		Files: challenge.Files{Size: workload.Dist{Uniform: []unit.Size{1000, 300_000}}, Sources: 3}}
}

func open(t testing.TB, c *challenge.Challenge, m Recorder) *Sites {
	t.Helper()
	s, err := Open(t.Context(), Options{Challenge: c, Drivers: all.Drivers(), Manifest: m,
		Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// copyFile does the work of a third-party copy in folders.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.WriteFile(to, require.File(t, from), 0o644))
}

// names returns the paths of all files and folders below a folder.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir && !strings.Contains(path, "/.weir-serve") {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return all
}

// Files are made at the source with the content of the seed, verified, and used again by a resumed
// challenge; files that are damaged are made again. Clean removes everything but the files of others.
func TestFilesAreMadeOnce(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	requests.Write(t, "text", a, "foreign")
	c, m := newChallenge(start(t, serve.Config{Dir: a}), start(t, serve.Config{Dir: b})), &manifest{}
	s := open(t, c, m)
	count := 0
	require.NoError(t, s.Prepare(t.Context(), func(done, total int) {
		if count++; done != count || total != 3 {
			t.Errorf("%d of %d after %d calls", done, total, count)
		}
	}))
	for n := range 5 {
		f := s.Source(0, n)
		text := requests.Read(t, a, f.Path)
		seed, known := content.Recognize([]byte(text))
		sum, err := content.Sum("adler32", seed, 0, int64(len(text)))
		if !known || err != nil || sum != f.Sum || int64(len(text)) != f.Size || f != s.Source(0, n%3) {
			t.Errorf("%+v: %d bytes, %s, %v", f, len(text), sum, err)
		}
		if verified, err := s.Verify(t.Context(), "A", f.Path, f); err != nil || !verified {
			t.Errorf("%s: %v, %v", f.Path, verified, err)
		}
	}
	times := func() (all []string) {
		for n := range 3 {
			info, err := os.Stat(filepath.Join(a, s.Source(0, n).Path))
			require.NoError(t, err)
			all = append(all, info.ModTime().String())
		}
		return all
	}
	before := times()
	damaged := filepath.Join(a, s.Source(0, 1).Path)
	text := require.File(t, damaged)
	text[500] ^= 1
	require.NoError(t, os.WriteFile(damaged, text, 0o644))
	again := open(t, c, m)
	require.NoError(t, again.Prepare(t.Context(), nil))
	if after := times(); again.Folder() != s.Folder() || before[0] != after[0] || before[1] == after[1] || before[2] != after[2] {
		t.Errorf("%s and %s: %v became %v", s.Folder(), again.Folder(), before, after)
	}
	require.NoError(t, again.Clean(t.Context()))
	if got := append(names(t, a), names(t, b)...); !slices.Equal(got, []string{"foreign"}) || len(m.made) > 0 {
		t.Errorf("left: %v, %v", got, m.made)
	}
}

// Files that are kept serve another challenge with the same seed, which does not replace other files
// that have their names.
func TestKeptFiles(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	c := newChallenge(start(t, serve.Config{Dir: a}), start(t, serve.Config{Dir: b}))
	c.Files.Keep = true
	first := open(t, c, &manifest{})
	require.NoError(t, first.Prepare(t.Context(), nil))
	require.NoError(t, first.Clean(t.Context()))
	kept := []string{"weir-sources-7"}
	for n := range 3 {
		kept = append(kept, first.Source(0, n).Path)
	}
	if got := append(names(t, a), names(t, b)...); !slices.Equal(got, kept) {
		t.Fatalf("left: %v", got)
	}
	m := &manifest{}
	second := open(t, c, m)
	require.NoError(t, second.Prepare(t.Context(), nil))
	for _, f := range m.made {
		if strings.HasSuffix(f.Path, ".dat") {
			t.Errorf("%s was made again", f.Path)
		}
	}
	requests.Write(t, "of others", a, kept[2])
	third := open(t, c, &manifest{})
	if err := third.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "not a file of this challenge") {
		t.Errorf("a file of others: %v", err)
	}
	if got := requests.Read(t, a, kept[2]); got != "of others" {
		t.Errorf("it is %q", got)
	}
}

// Copies are verified, and removed if they belong to the challenge.
func TestCopies(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	m := &manifest{}
	s := open(t, newChallenge(start(t, serve.Config{Dir: a}), start(t, serve.Config{Dir: b})), m)
	require.NoError(t, s.Prepare(t.Context(), nil))
	f, path := s.Source(0, 0), s.Dest(0, 13) // of the first source
	if other := s.Dest(0, 14); path == other {
		t.Errorf("two copies are called %s", path)
	}
	check := func(want error) {
		t.Helper()
		if _, err := s.Verify(t.Context(), "B", path, f); !errors.Is(err, want) {
			t.Errorf("%v instead of %v", err, want)
		}
	}
	check(fs.ErrNotExist)
	require.NoError(t, m.Created(Made{Site: "B", Path: path}))
	copyFile(t, filepath.Join(a, f.Path), filepath.Join(b, path))
	check(nil)
	text := []byte(requests.Read(t, b, path))
	text[len(text)-1] ^= 1
	requests.Write(t, string(text), b, path)
	check(storage.ErrChecksum)
	requests.Write(t, string(text[1:]), b, path)
	check(storage.ErrSize)
	requests.Write(t, "text", b, "foreign")
	for _, foreign := range []string{"foreign", "", s.Folder() + "/", s.Folder(), s.Folder() + "/../foreign"} {
		if err := s.Remove(t.Context(), "B", foreign); err == nil {
			t.Errorf("%q was removed", foreign)
		}
	}
	if err := s.Remove(t.Context(), "C", path); err == nil {
		t.Error("there is no site C")
	}
	require.NoError(t, s.Remove(t.Context(), "B", path))
	require.NoError(t, s.Remove(t.Context(), "B", path))
	if got := names(t, b); !slices.Equal(got, []string{"foreign", s.Folder()}) {
		t.Errorf("left: %v", got)
	}
	copyFile(t, filepath.Join(a, f.Path), filepath.Join(b, path)) // a cancelled copy that ends late
	require.NoError(t, s.Clean(t.Context()))
	if got := names(t, b); !slices.Equal(got, []string{"foreign"}) || len(m.made) > 0 {
		t.Errorf("left: %v, %v", got, m.made)
	}
}

// Files with names of copies that the challenge did not try to remove stay.
func TestForeignCopiesStay(t *testing.T) {
	b := t.TempDir()
	s := open(t, newChallenge(start(t, serve.Config{Dir: t.TempDir()}), start(t, serve.Config{Dir: b})), &manifest{})
	require.NoError(t, s.Prepare(t.Context(), nil))
	requests.Write(t, "text", b, s.Dest(0, 1))
	require.NoError(t, s.removeLate(t.Context(), s.places["B"]))
	if got := names(t, b); !slices.Equal(got, []string{s.Folder(), s.Dest(0, 1)}) {
		t.Errorf("left: %v", got)
	}
}

// Foreign files at paths of copies whose state is unknown stay; complete copies and parts of copies are
// removed.
func TestForeignFilesAtPathsOfCopiesStay(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	m := &manifest{}
	c := newChallenge(start(t, serve.Config{Dir: a}), start(t, serve.Config{Dir: b}))
	s := open(t, c, m)
	require.NoError(t, s.Prepare(t.Context(), nil))
	text := requests.Read(t, a, s.Source(0, 0).Path)
	files := map[int64]string{0: text, 1: text[:500], 2: "", 3: "foreign", 4: strings.Repeat("x", len(text)), 5: text + "more"}
	var foreign []string
	for n := range int64(7) { // the last one does not exist
		id := c.CopyID(0, n*int64(c.Files.Sources)) // of the first source
		path := s.Dest(0, id)
		require.NoError(t, m.Created(Made{Site: "B", Path: path, Size: int64(len(text)), Seed: uint64(id)}))
		if content, ok := files[n]; ok {
			requests.Write(t, content, b, path)
		}
		if n >= 3 && n <= 5 {
			foreign = append(foreign, path)
		}
	}
	require.NoError(t, s.RemoveRest(t.Context(), c.CopyID(0, 3*int64(c.Files.Sources))))
	again := open(t, c, m) // as weir clean
	err := again.Clean(t.Context())
	if err == nil || !strings.Contains(err.Error(), "did not make") {
		t.Errorf("clean: %v", err)
	}
	if got, want := names(t, b), append([]string{s.Folder()}, foreign...); !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

// A service that chooses paths begins no copies while foreign files are there.
func TestForeignFilesAtPathsOfTheService(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	m := &manifest{}
	c := newChallenge(start(t, serve.Config{Dir: a}), start(t, serve.Config{Dir: b}))
	c.Files.Keep = true // the paths are those of earlier challenges
	at := func() *Sites {
		s, err := Open(t.Context(), Options{Challenge: c, Drivers: all.Drivers(), Manifest: m,
			Path:        func(name string) string { return "x/" + name },
			Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first := at()
	require.NoError(t, first.Prepare(t.Context(), nil))
	require.NoError(t, first.Clean(t.Context()))
	path := first.Source(0, 0).Path
	require.NoError(t, os.MkdirAll(filepath.Join(b, "x"), 0o755))
	requests.Write(t, requests.Read(t, a, path), b, path) // the service has not removed it yet
	second := at()
	require.NoError(t, second.Prepare(t.Context(), nil))
	require.NoError(t, second.Clean(t.Context()))
	requests.Write(t, "foreign", b, path)
	third := at()
	if err := third.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a foreign file: %v", err)
	}
	require.NoError(t, third.Clean(t.Context()))
	if got := requests.Read(t, b, path); got != "foreign" {
		t.Errorf("it is %q", got)
	}
}

// A removal is repeated while the site fails.
func TestRemovalsAreRepeated(t *testing.T) {
	tier.Slow(t, "waits between attempts")
	t.Parallel()
	var failures, tries atomic.Int32
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && tries.Add(1) <= failures.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer there.Close()
	s := open(t, newChallenge(there.URL, there.URL), &manifest{})
	failures.Store(2)
	require.NoError(t, s.Remove(t.Context(), "B", s.Dest(0, 1)))
	if tries.Load() != 3 {
		t.Errorf("%d attempts", tries.Load())
	}
	failures.Store(1 << 30)
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if err := s.Remove(ctx, "B", s.Dest(0, 1)); err == nil {
		t.Error("a removal that failed has no error")
	}
}

// awayUntil is a storage that refuses connections until a time, and has no files.
type awayUntil struct{ time.Time }

func (a awayUntil) Client() storage.Client { return a }
func (awayUntil) Close() error             { return nil }
func (a awayUntil) Do(_ context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	switch {
	case time.Now().Before(a.Time):
		return storage.Result{}, syscall.ECONNREFUSED
	case op.Kind == storage.Checksum:
		return storage.Result{}, errors.ErrUnsupported
	}
	return storage.Result{Size: 1000}, nil
}

// A resumed challenge waits for a site that is away for some time, which a new one reports.
func TestResumeWaitsForSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, resumed := range []bool{false, true} {
			there := awayUntil{time.Now().Add(time.Minute)}
			m := &manifest{}
			if resumed {
				m.made = []Made{{Site: "A", Path: "weir-test-abc/"}}
			}
			c := newChallenge("away://a", "away://b")
			c.Files.Size = workload.Dist{Fixed: 1000}
			s, err := Open(t.Context(), Options{Challenge: c, Manifest: m, Drivers: []storage.Driver{{Schemes: []string{"away"},
				Open: func(context.Context, storage.Target) (storage.Service, error) { return there, nil }}},
				Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }})
			require.NoError(t, err)
			if err := s.Prepare(t.Context(), nil); (err == nil) != resumed {
				t.Errorf("resumed %v: %v", resumed, err)
			}
			require.NoError(t, s.Close())
		}
	})
}

// Sites that cannot be used are reported with their names.
func TestSitesThatCannotBeUsed(t *testing.T) {
	good := start(t, serve.Config{Dir: t.TempDir()})
	for name, tt := range map[string]struct{ url, says string }{
		"no-folder": {good + "/none", "does not exist"},
		"read-only": {start(t, serve.Config{Dir: t.TempDir(), ReadOnly: true}), "not let files be changed"},
		"refuses":   {start(t, serve.Config{Dir: t.TempDir(), Token: "secret"}), "not allow to write"},
	} {
		m := &manifest{}
		s := open(t, newChallenge(good, tt.url), m)
		err := s.Prepare(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "site B") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newChallenge(good, "gopher://host/folder")
	_, err := Open(t.Context(), Options{Challenge: c, Drivers: all.Drivers(), Manifest: &manifest{},
		Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }})
	if err == nil || !strings.Contains(err.Error(), "site B: no driver") {
		t.Error(err)
	}
}

// With real servers files are made, verified and removed, by davs and by root. A site without
// checksums is reported.
func TestRealSites(t *testing.T) {
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	n := labtest.Start(t, lab.NginxConfig{})
	for name, tt := range map[string]struct{ url, root, other string }{
		"http": {x.URLs["http"], "", x.URLs["http"]}, "root": {x.URLs["root"], "", x.URLs["http"]},
		"both": {x.URLs["http"], x.URLs["root"], n.URL}, "nginx": {n.URL, "", x.URLs["root"]},
	} {
		m := &manifest{}
		c := newChallenge(tt.url, tt.other)
		c.Sites[0].Root = tt.root
		s := open(t, c, m)
		if err := s.Prepare(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f := s.Source(0, 1)
		verified, err := s.Verify(t.Context(), "A", f.Path, f)
		if err != nil || verified == (name == "nginx") {
			t.Errorf("%s: %v, %v", name, verified, err)
		}
		wrong := inject.File{Path: f.Path, Size: f.Size, Sum: "adler32:00000001"}
		if _, err := s.Verify(t.Context(), "A", f.Path, wrong); name != "nginx" && !errors.Is(err, storage.ErrChecksum) {
			t.Errorf("%s: a checksum that differs: %v", name, err)
		}
		again := open(t, c, m)
		require.NoError(t, again.Prepare(t.Context(), nil))
		if err := again.Clean(t.Context()); err != nil || len(m.made) > 0 {
			t.Errorf("%s: %v, left %v", name, err, m.made)
		}
		for _, dir := range []string{x.Data, n.Data} {
			if got := names(t, dir); len(got) > 0 {
				t.Errorf("%s: left %v", name, got)
			}
		}
	}
}
