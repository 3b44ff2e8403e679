package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/transfer/endpoint"
)

// gridSites are data servers with third-party copies, in this process, and the plan of a challenge
// between all of them.
type gridSites struct {
	names   []string
	dirs    []string
	servers []*serve.Server
	plan    string // path

	mu     sync.Mutex
	copies []time.Time // at which COPY requests were received
}

// newGridSites starts three sites. Each connection carries 2 MB/s, so that a copy of 2 MiB takes a
// second; each of the six links has a target of 2 MB/s. Extensions are those of site c.
func newGridSites(t *testing.T, profile string, ofC ...serve.Extension) *gridSites {
	t.Helper()
	g := &gridSites{names: []string{"a", "b", "c"}, plan: filepath.Join(t.TempDir(), "plan.yaml")}
	text := "name: rehearsal\nsites:\n"
	for _, name := range g.names {
		local := endpoint.CopyOptions{Guard: tpc.Guard{Hosts: []string{"127.0.0.1"}, Private: true}}
		dir := t.TempDir()
		extensions := []serve.Extension{endpoint.NewCopier(local)}
		if name == "c" {
			extensions = append(ofC, extensions...)
		}
		s, err := serve.New(serve.Config{Dir: dir, Rate: 2e6, Log: slog.New(g), Extensions: extensions})
		require.NoError(t, err)
		requests.Serve(t, s)
		g.dirs, g.servers = append(g.dirs, dir), append(g.servers, s)
		text += fmt.Sprintf("  - {name: %s, url: '%s'}\n", name, s.URL())
	}
	text += "links:\n"
	for _, from := range g.names {
		for _, to := range g.names {
			if from != to {
				text += fmt.Sprintf("  - {from: %s, to: %s, rate: 2MB/s}\n", from, to)
			}
		}
	}
	text += "profile: " + profile + "\nfiles: {size: 2MiB, sources: 2}\ntimeout: 1m\n"
	require.NoError(t, os.WriteFile(g.plan, []byte(text), 0o600))
	return g
}

// Enabled implements slog.Handler.
func (g *gridSites) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler: it remembers third-party copies.
func (g *gridSites) Handle(_ context.Context, r slog.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Message == "third-party copy" {
		g.copies = append(g.copies, r.Time)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (g *gridSites) WithAttrs([]slog.Attr) slog.Handler { return g }

// WithGroup implements slog.Handler.
func (g *gridSites) WithGroup(string) slog.Handler { return g }

// requested returns the number of COPY requests, and the time of the last one.
func (g *gridSites) requested() (n int, last time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, at := range g.copies {
		if at.After(last) {
			last = at
		}
	}
	return len(g.copies), last
}

// sent returns the payload that all sites have sent.
func (g *gridSites) sent() (all int64) {
	for _, s := range g.servers {
		_, out := s.Payload()
		all += out
	}
	return all
}

// left returns the paths of files and folders at the sites.
func (g *gridSites) left(t *testing.T) (all []string) {
	t.Helper()
	for _, dir := range g.dirs {
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
			if path != "." && path != ".weir-serve-folders" { // of weir serve itself
				all = append(all, path)
			}
			return err
		}))
	}
	return all
}

// isClean fails t if something is left at the sites.
func (g *gridSites) isClean(t *testing.T) {
	t.Helper()
	if left := g.left(t); len(left) > 0 {
		t.Errorf("left at the sites: %v", left)
	}
}

// A challengeRecord has the copies and sums of a challenge.
type challengeRecord struct {
	copies   []*results.Transfer
	moved    int64 // by links.jsonl
	interval int64 // by intervals.jsonl
	held     float64
	end      *measure.Ending
}

// readChallenge reads the run directory dir. Each copy has one line.
func readChallenge(t *testing.T, dir string) (r challengeRecord) {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	var seen []int64
	for v, err := range run.Transfers() {
		require.NoError(t, err)
		if slices.Contains(seen, v.Request) {
			t.Errorf("copy %d has two final lines", v.Request)
		}
		seen, r.copies = append(seen, v.Request), append(r.copies, v)
	}
	for v, err := range run.Links() {
		require.NoError(t, err)
		r.moved += v.Moved
	}
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		r.interval += v.Moved
		if v.Phase == measure.Measured {
			r.held += v.Seconds
		}
	}
	r.end, err = run.Ending()
	require.NoError(t, err)
	return r
}

// bytes returns the sum of the bytes of copies.
func (r *challengeRecord) bytes() (all int64) {
	for _, c := range r.copies {
		all += c.Moved
	}
	return all
}

// A challenge between three sites holds its profile. Its sums are those of the servers, and nothing
// is left. Its run directory can be reported and listed like that of a run.
func TestChallenge(t *testing.T) {
	tier.Slow(t, "holds rates for 20 s")
	t.Parallel()
	g := newGridSites(t, "[{for: 8s, at: 50%}, {for: 12s, at: 100%}]")
	dir := filepath.Join(t.TempDir(), "run")
	code, said := started(t, "run", g.plan, "--out", dir, "--quiet").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	got := readChallenge(t, dir)
	n, _ := g.requested()
	if len(got.copies) != n || n < 20 {
		t.Errorf("%d final lines, the sites received %d COPY requests", len(got.copies), n)
	}
	require.Near(t, "seconds held", got.held, 20, .1)
	sent := float64(g.sent())
	require.Near(t, "bytes of transfers.jsonl over those that the servers sent", float64(got.bytes())/sent, 1, .01)
	require.Near(t, "bytes of links.jsonl over those that the servers sent", float64(got.moved)/sent, 1, .01)
	require.Near(t, "bytes of intervals.jsonl over those that the servers sent", float64(got.interval)/sent, 1, .01)
	for _, c := range got.copies {
		if c.Done && !c.Verified {
			t.Errorf("copy %d was not verified", c.Request)
		}
	}
	g.isClean(t)
	if f := findings(t, dir); f.Challenge == nil {
		t.Error("findings.json has nothing on the challenge")
	}
	for _, command := range []string{"report", "list", "clean"} {
		if code, said := weir(t, command, dir); code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d\n%s", command, code, said)
		}
	}
}

// liar makes a site report third-party copies as done at once, without a file. It implements
// serve.Extension.
type liar struct{}

func (liar) Attach(*serve.Server) error { return nil }
func (liar) Close() error               { return nil }

// Answer implements serve.Extension.
func (liar) Answer(r *serve.Request) bool {
	if r.Method != "COPY" || r.Header.Get("Source") == "" || strings.Contains(r.Header.Get("Source"), "weir-check") {
		return false
	}
	r.Response().WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(r.Text(), "Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: 2097152\nTotal Stripe Count: 1\nEnd\n"+
		"success: Created\n")
	return true
}

// Bytes of copies that a site reports and does not have are no achieved rate: not in the records of
// the links, on the live page, and in the findings. The site receives few further copies.
func TestLyingSite(t *testing.T) {
	tier.Slow(t, "holds rates for 20 s")
	t.Parallel()
	g := newGridSites(t, "[{for: 20s, at: 100%}]", liar{})
	dir := filepath.Join(t.TempDir(), "run")
	code, said := started(t, "challenge", g.plan, "--out", dir, "--quiet").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	run, err := results.Open(dir)
	require.NoError(t, err)
	moved, wrong := map[string]int64{}, map[string]int64{}
	for v, err := range run.Links() {
		require.NoError(t, err)
		moved[v.Dest], wrong[v.Dest] = moved[v.Dest]+v.Moved, wrong[v.Dest]+v.Wrong
	}
	if moved["c"] == 0 || wrong["c"] != moved["c"] || wrong["a"]+wrong["b"] > 0 || moved["a"] == 0 {
		t.Errorf("moved %v, of these wrong %v", moved, wrong)
	}
	if target := int64(2 * 2 * 20 * 1e6); moved["c"] > target/2 {
		t.Errorf("%d bytes were requested from the site that does not have them, of %d", moved["c"], target)
	}
	f := findings(t, dir)
	for i := range f.Challenge.Links {
		l := &f.Challenge.Links[i]
		if l.Dest == "c" && (l.Achieved > l.Target/100 || l.Files > 0) || l.Dest != "c" && l.Files == 0 {
			t.Errorf("%s: %v bytes/s, %d files", l.Name(), l.Achieved, l.Files)
		}
	}
	g.isClean(t)
}

// After SIGINT no site receives a COPY request, copies in flight end within ten seconds, and
// everything is removed.
func TestInterruptedChallenge(t *testing.T) {
	tier.Slow(t, "waits for copies")
	t.Parallel()
	g := newGridSites(t, "[{for: 10m, at: 100%}]")
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "challenge", g.plan, "--out", dir)
	require.Eventually(t, "30 copies", func() bool { n, _ := g.requested(); return n > 30 })
	p.send(t, os.Interrupt)
	begin := time.Now()
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d, want %d\n%s", code, exitInterrupt, said)
	}
	at := readChallenge(t, dir)
	if at.end == nil || at.end.Outcome != measure.Interrupted {
		t.Errorf("the end is %+v", at.end)
	}
	if _, last := g.requested(); last.Sub(begin) > 5*time.Second { // requests under way, on a busy machine
		t.Errorf("a copy was requested %v after SIGINT", last.Sub(begin))
	}
	n, _ := g.requested()
	if len(at.copies) < n {
		t.Errorf("%d final lines of %d copies", len(at.copies), n)
	}
	g.isClean(t)
}

// A challenge that is killed goes on with the rest of its profile, by weir run as well: each copy
// has one final line, and the sums are those of the servers.
func TestKilledChallengeIsResumed(t *testing.T) {
	tier.Full(t, "holds rates for 40 s")
	t.Parallel()
	g := newGridSites(t, "[{for: 10s, at: 50%}, {for: 30s, at: 100%}]")
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "challenge", g.plan, "--out", dir, "--quiet")
	require.Eventually(t, "50 copies", func() bool { n, _ := g.requested(); return n > 50 })
	p.kill(t)
	if len(g.left(t)) == 0 {
		t.Fatal("nothing was at the sites when the challenge was killed")
	}
	before := readChallenge(t, dir)
	code, said := started(t, "run", "--resume", dir, "--quiet").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	got := readChallenge(t, dir)
	if s, detail := status(findings(t, dir), "data"); s == analysis.Fail || strings.Contains(detail, "does not count") {
		t.Errorf("data: %s: %s", s, detail)
	}
	require.Near(t, "seconds held", got.held, 40, 1)
	if len(before.copies) == 0 || len(got.copies) <= len(before.copies) {
		t.Errorf("%d copies before the kill, %d in all", len(before.copies), len(got.copies))
	}
	done := int64(0)
	for _, c := range got.copies {
		if c.Done {
			done += c.Size
		}
	}
	sent := float64(g.sent())
	require.Near(t, "bytes of links.jsonl over those that the servers sent", float64(got.moved)/sent, 1, .05)
	require.Near(t, "bytes of intervals.jsonl over those of links.jsonl", float64(got.interval)/float64(got.moved), 1, .01)
	if float64(done) > sent {
		t.Errorf("%d bytes arrived, the servers sent %g", done, sent)
	}
	g.isClean(t)
	if code, said := weir(t, "challenge", "--resume", dir); code != exitUsage || !strings.Contains(said, "the challenge is over") {
		t.Errorf("resumed once more: exit code %d\n%s", code, said)
	}
}

// weir clean removes the files of a killed challenge from all sites, and nothing else.
func TestKilledChallengeIsCleaned(t *testing.T) {
	tier.Slow(t, "waits for copies")
	t.Parallel()
	g := newGridSites(t, "[{for: 10m, at: 100%}]")
	dir := filepath.Join(t.TempDir(), "run")
	foreign := filepath.Join(g.dirs[0], "foreign")
	require.NoError(t, os.WriteFile(foreign, []byte("x"), 0o600))
	p := started(t, "challenge", g.plan, "--out", dir, "--quiet")
	require.Eventually(t, "20 copies", func() bool { n, _ := g.requested(); return n > 20 })
	p.kill(t)
	code, said := weir(t, "clean", dir)
	if code != exitFine {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if left := g.left(t); !slices.Equal(left, []string{"foreign"}) {
		t.Errorf("left at the sites: %v, want only the file that was there before", left)
	}
}

// foreignAt writes foreign files at paths of copies with some ids, once the challenge has its folder in
// dir. It returns a function that fails t unless they are the only files there.
func foreignAt(t *testing.T, dir, source string, ids ...int64) (check func()) {
	t.Helper()
	var folder string
	require.Eventually(t, "the folder of the challenge", func() bool {
		found, err := filepath.Glob(filepath.Join(dir, "weir-*"))
		require.NoError(t, err)
		folder = strings.Join(found, "")
		return len(found) == 1
	})
	var want []string
	for _, id := range ids {
		path := filepath.Join(folder, fmt.Sprintf("%s-%08d.dat", source, id))
		require.NoError(t, os.WriteFile(path, []byte("foreign"), 0o644))
		want = append(want, path)
	}
	return func() {
		t.Helper()
		left, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		for _, path := range want {
			if b, err := os.ReadFile(path); err != nil || string(b) != "foreign" {
				t.Errorf("%s has %q: %v", path, b, err)
			}
		}
		if len(left) != len(want) {
			t.Errorf("left: %v, want only the foreign files", left)
		}
	}
}

// Foreign files at paths of copies survive a challenge that is killed, resumed, killed and cleaned.
func TestForeignFilesStay(t *testing.T) {
	tier.Slow(t, "waits for copies")
	t.Parallel()
	g := newGridSites(t, "[{for: 10m, at: 100%}]")
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "challenge", g.plan, "--out", dir, "--quiet")
	var ids []int64
	for n := range int64(60) { // of the first link, a to b
		ids = append(ids, 6*(n+3)+1)
	}
	check := foreignAt(t, g.dirs[1], "a", ids...)
	require.Eventually(t, "20 copies", func() bool { n, _ := g.requested(); return n > 20 })
	p.kill(t)
	n, _ := g.requested()
	p = started(t, "challenge", "--resume", dir, "--quiet")
	require.Eventually(t, "20 copies more", func() bool { more, _ := g.requested(); return more > n+20 })
	p.kill(t)
	code, said := weir(t, "clean", dir)
	if code == exitFine || !strings.Contains(said, "did not make") && !strings.Contains(said, "not empty") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	check()
}

// Files of challenges and of load tests are refused by commands of the other kind, with the right
// command.
func TestFilesOfTheOtherKind(t *testing.T) {
	dir := t.TempDir()
	plan, load := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "load.yaml")
	require.NoError(t, os.WriteFile(plan, []byte("sites: []\nlinks: []\n"), 0o600))
	require.NoError(t, os.WriteFile(load, []byte("target: built-in\n"), 0o600))
	for use, args := range map[string][]string{"use weir challenge": {"find", plan}, "use weir run": {"challenge", load}} {
		if code, said := weir(t, args...); code != 2 || !strings.Contains(said, use) {
			t.Errorf("%v: %d, %s", args, code, said)
		}
	}
}
