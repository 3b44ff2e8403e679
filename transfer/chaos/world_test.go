package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
	"weir/transfer/trial"
)

const (
	small     = "C"       // the site with a small disk
	smallDisk = 192 << 20 // bytes
	boss      = "coordinator"
)

// A tally is the number of injected faults of each kind.
type tally struct {
	kills, stops, cuts, stalls, flips, rots, changes, steps, fills, database, restarts atomic.Int64
	lost, repeated, held, expired, fallen                                              atomic.Int64
}

// A body is a process that can be killed and stopped, by one at a time.
type body struct {
	*trial.Process
	name  string
	mu    sync.Mutex
	clock string // the file with the offset of its clock; "": its clock cannot be changed
}

// A world is the set of processes and files into which a campaign injects faults.
type world struct {
	*trial.Trial
	*plan
	t      *testing.T
	n      tally
	bodies map[string]*body
	ways   map[string]*way
	echos  []*echo
	pg     *lab.System // nil: SQLite
	tmpfs  bool
	before map[string]snapshot // files that must not change, by path
	turned map[string]flaw     // flaws that copies got during the campaign, by path
	mu     sync.Mutex
	ask    *client.Client
	begun  time.Time

	strangers map[string]*stranger
	heard     []string // credentials that were sent to a wrong host
	small     []*single
}

// A snapshot is a file as it was before the campaign.
type snapshot struct {
	inode uint64
	data  []byte
}

func newWorld(t *testing.T, p *plan, program string, clocks bool, pg *lab.System) *world {
	t.Helper()
	w := &world{t: t, plan: p, pg: pg, bodies: map[string]*body{}, ways: map[string]*way{}, before: map[string]snapshot{},
		turned: map[string]flaw{}, begun: time.Now()}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	clock := func(name string) string { return filepath.Join(dir, "clock-"+name) }
	o := trial.Options{Dir: dir, Program: []string{program}, Idle: true, Env: []string{"WEIR_TEST_CLOCK=" + clock(boss)}}
	o.Coordinator = []string{"--plain", "--lease", fmt.Sprintf("%ds", p.lease), "--approve-up-to", "all"}
	if pg != nil {
		o.DB = pg.URL
	}
	for i, name := range sites {
		s := trial.Site{Name: name, Env: []string{"WEIR_TEST_CLOCK=" + clock(name)}}
		e := newEcho(t, func() string { return w.boss() }, p.seed+uint64(i), &w.n)
		w.echos = append(w.echos, e)
		s.Args = []string{"--coordinator", e.url, "--token-file", filepath.Join(dir, "token-"+name)}
		if name == "D" {
			s.NoEndpoint = true
		} else {
			door := labtest.Address(t)
			w.ways[name] = newWay(t, door, p.seed+uint64(i), &w.n)
			s.Args = append(s.Args, "--listen", door, "--url", w.ways[name].url())
		}
		o.Sites = append(o.Sites, s)
	}
	w.abroad(t)
	tr, err := trial.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Trial = tr
	w.disk()
	w.bodies[boss] = &body{Process: tr.Coordinator(), name: boss}
	for _, name := range sites {
		w.bodies[name] = &body{Process: tr.Site(name), name: name}
	}
	if clocks {
		for name, b := range w.bodies {
			b.clock = clock(name)
		}
	}
	return w
}

// disk gives a site a small disk, if this is permitted.
func (w *world) disk() {
	if os.Getenv(insideKey) == "" {
		w.t.Log("the disk of a site is not filled: that needs root")
		return
	}
	root := w.Root(small)
	if err := syscall.Mount("weir-chaos", root, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", smallDisk)); err != nil {
		w.t.Log("the disk of a site is not filled:", err)
		return
	}
	w.tmpfs = true
	w.giant()
	w.t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) }) // otherwise it is removed with the namespace
}

// boss returns the URL of the coordinator.
func (w *world) boss() string {
	c, err := client.Read(filepath.Join(w.Dir(), "coordinator.json"))
	if err != nil || len(c.URLs) == 0 {
		return "http://127.0.0.1:1"
	}
	return c.URLs[0]
}

// start starts all processes and gives each agent its token.
func (w *world) start() {
	t := w.t
	t.Helper()
	require.NoError(t, w.Coordinator().Start(t.Context()))
	var err error
	if w.ask, err = w.Client(); err != nil {
		t.Fatal(err)
	}
	for _, name := range sites {
		raw, err := w.ask.Token(t.Context(), transfer.NewToken{Subject: "agent of " + name, Roles: []string{"weir.agent:" + name},
			Life: 30 * 24 * time.Hour})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.Dir(), "token-"+name), []byte(raw), 0o600))
		require.NoError(t, w.Site(name).Start(t.Context()))
	}
	require.NoError(t, w.Ready(t.Context()))
	w.introduce()
}

func (w *world) path(site string, f *file) string {
	if f.moved && slices.Contains(f.from, site) {
		return filepath.Join(w.root(site), "moved", filepath.FromSlash(f.name))
	}
	return filepath.Join(w.root(site), filepath.FromSlash(f.name))
}

func (f *file) bytes() []byte {
	data := make([]byte, f.size)
	content.Fill(data, f.seed, 0)
	return data
}

// marred returns the content of a copy with a flaw.
func (f *file) marred(how flaw) []byte {
	data := f.bytes()
	switch how {
	case spoiled:
		data[len(data)/2] ^= 0x10
	case short:
		data = data[:len(data)/2]
	case long:
		data = append(data, "and more"...)
	}
	return data
}

// fill writes all files to their sites, and registers them in the catalog.
func (w *world) fill() {
	w.t.Helper()
	for _, s := range w.sets {
		added := map[string][]transfer.NewFile{}
		for _, f := range s.files {
			for _, site := range f.from {
				if how := f.flaws[site]; how != missing {
					w.put(w.path(site, f), f.marred(how), how == good && f.later[site] == good)
				}
				entry := transfer.NewFile{File: catalog.File{Name: f.name, Size: f.size, Adler: f.adler}}
				if f.nameless {
					entry.Adler = ""
				}
				if f.moved {
					entry.Path = "moved" + f.name
				}
				added[site] = append(added[site], entry)
			}
			switch {
			case f.foreign:
				w.put(w.path(s.to, f), []byte("of somebody else: "+f.name), true)
			case f.present:
				w.put(w.path(s.to, f), f.bytes(), true)
			}
		}
		for _, site := range slices.Concat(sites, foreign) {
			if len(added[site]) == 0 {
				continue
			}
			if _, err := w.ask.AddFiles(w.t.Context(), transfer.NewFiles{Dataset: s.name, Site: site, Files: added[site]}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// put writes a file; stays means that it must never change.
func (w *world) put(path string, data []byte, stays bool) {
	w.t.Helper()
	if err := makeFolders(filepath.Dir(path)); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
	if !stays {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(data) > 4<<20 {
		data = nil // its inode and its checksum are sufficient
	}
	w.before[path] = snapshot{info.Sys().(*syscall.Stat_t).Ino, data}
}

// submit requests sets, spread over the time of the campaign, until each is requested. If the
// coordinator is down, the request is repeated with the same key.
func (w *world) submit(ctx context.Context, over time.Duration) {
	for i, s := range w.sets {
		if i > 0 {
			sleep(ctx, over/time.Duration(len(w.sets)))
		}
		w.submitOne(s)
	}
}

func (w *world) submitOne(s *set) {
	sub := transfer.Submission{Key: "chaos " + s.name, Dataset: s.name, To: s.to, Tries: 100, Approve: true,
		Unchecked: slices.Contains(unchecked, s.to)}
	id := w.insist(sub)
	again := int64(0)
	if s.twice {
		sub.Key += " again"
		again = w.insist(sub)
	}
	w.mu.Lock()
	s.id, s.again = id, again
	w.mu.Unlock()
	if s.grows {
		w.grow(s)
	}
}

// makeFolders creates folders in which every user may write: a server may run as another user.
func makeFolders(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for d := dir; strings.Contains(d, "/store"); d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o777) // folders of other owners stay unchanged
	}
	return nil
}

// sleep waits. It returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// parts returns the temporary files at a site.
func (w *world) parts(site string) []string {
	found, _ := filepath.Glob(filepath.Join(w.Root(site), ".weir", "*.part"))
	return found
}

// rot changes a byte of some temporary files of a site whose agent does not run.
func (w *world) rot(site string, r *rand.Rand) {
	for _, path := range w.parts(site) {
		info, err := os.Stat(path)
		if err != nil || info.Size() == 0 || r.IntN(2) > 0 {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		var b [1]byte
		at := r.Int64N(info.Size())
		if _, err := f.ReadAt(b[:], at); err == nil {
			b[0] ^= 1
			if _, err := f.WriteAt(b[:], at); err == nil {
				w.n.rots.Add(1)
			}
		}
		_ = f.Close()
	}
}

// turn damages a good copy.
func (w *world) turn(site string, f *file) {
	path, how := w.path(site, f), f.later[site]
	w.mu.Lock()
	w.turned[path] = how
	w.mu.Unlock()
	var err error
	switch how {
	case missing:
		err = os.Remove(path)
	case short:
		err = os.Truncate(path, f.size/2)
	default:
		var to *os.File
		if to, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
			data := f.marred(how)
			at := max(int64(0), min(f.size, int64(len(data)))/2)
			_, err = to.WriteAt(data[at:], at)
			_ = to.Close()
		}
	}
	if err != nil {
		w.t.Error(err)
	}
	w.n.changes.Add(1)
}

// build builds the program, with an adjustable clock if clocks is true.
func build(t *testing.T, clocks bool) string {
	t.Helper()
	tier.Slow(t, "builds weir")
	program := filepath.Join(t.TempDir(), "weir")
	args := []string{"build", "-o", program}
	if clocks {
		args = append(args, "-overlay", overlay(t))
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "weir/cmd/weir")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// logs returns the output of the processes.
func (w *world) logs() map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(w.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != w.Dir() {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".log") {
			text, _ := os.ReadFile(path)
			all[filepath.Base(path)] = string(bytes.ToValidUTF8(text, nil))
		}
		return nil
	})
	return all
}
