package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/endpoint"
)

// Sites without an agent: W is a server of weir whose token is replaced all the time, X an XRootD,
// N an nginx, H an Apache and K an rclone. N, H and K report no checksums. R is a server that
// redirects to another port, where all received credentials are recorded.
var foreign = []string{"W", "X", "N", "R", "H", "K"}

// unchecked are the sites that report no checksums. Files are copied to them only from sites that
// can compute checksums (an agent, or a server that copies by itself).
var unchecked = []string{"N", "H", "K"}

// A gate admits clients that show the current token.
type gate struct {
	name  string
	mu    sync.Mutex
	good  string
	taken string // a token that is still known but has no rights
	n     int
	odd   []string // tokens that never belonged to it
}

func (g *gate) check(r *http.Request) (serve.Rights, error) {
	raw, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if raw != "" && !strings.HasPrefix(raw, g.name+" ") {
		g.odd = append(g.odd, raw)
	}
	switch raw {
	case g.good:
		return rights(true), nil
	case g.taken:
		return rights(false), nil
	}
	return nil, errors.New("the token has expired")
}

// rights are either all rights or no rights.
type rights bool

// May implements serve.Rights.
func (r rights) May(token.Op, string) bool { return bool(r) }

// Most implements serve.Rights.
func (rights) Most() (string, int64, bool) { return "", 0, false }

// turn replaces the valid token. The previous token has expired (401), or its rights were revoked
// (403).
func (g *gate) turn(revoked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = ""
	if revoked {
		g.taken = g.good
	}
	g.n++
	g.good = fmt.Sprintf("%s %d", g.name, g.n)
}

// A stranger is a site without an agent.
type stranger struct {
	name, dir, url string
	gate           *gate       // nil: every client is admitted
	server         *lab.System // nil: it is in this process
	mu             sync.Mutex  // the server is killed and started by one at a time
}

// abroad starts the sites without agents.
func (w *world) abroad(t *testing.T) {
	w.strangers = map[string]*stranger{}
	add := func(s *stranger) { w.strangers[s.name] = s }
	for name, s := range map[string]*lab.System{
		"X": labtest.Start(t, lab.XRootDConfig{Copies: true}),
		"N": labtest.Start(t, lab.NginxConfig{}),
		"H": labtest.Start(t, lab.FolderConfig{Server: "apache2", WebDAV: true}),
		"K": labtest.Start(t, lab.FolderConfig{Server: "rclone", WebDAV: true}),
	} {
		add(&stranger{name: name, dir: s.Data, url: s.URLs["http"], server: s})
	}
	for _, name := range []string{"W", "R"} {
		s := &stranger{name: name, dir: t.TempDir(), gate: &gate{name: name}}
		s.gate.turn(false)
		s.url = servetest.Start(t, serve.Config{Dir: s.dir, Authenticate: s.gate.check, Extensions: copying()})
		add(s)
	}
	r := w.strangers["R"]
	there := servetest.Start(t, serve.Config{Dir: r.dir, Authenticate: w.listen})
	redirector := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		switch may, err := r.gate.check(q); {
		case err != nil:
			http.Error(out, err.Error(), http.StatusUnauthorized)
			return
		case !may.May(token.Read, "/"):
			http.Error(out, "the token was revoked", http.StatusForbidden)
			return
		}
		http.Redirect(out, q, there+q.URL.EscapedPath(), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirector.Close)
	r.url = redirector.URL
}

// listen lets every client read, and records the credentials that are sent to a host for which they
// are not valid.
func (w *world) listen(r *http.Request) (serve.Rights, error) {
	for name := range r.Header {
		if strings.Contains(strings.ToLower(name), "authorization") {
			w.mu.Lock()
			w.heard = append(w.heard, fmt.Sprintf("%s %s: %s", r.Method, r.URL.Path, name))
			w.mu.Unlock()
		}
	}
	return rights(true), nil
}

// introduce adds the sites without agents to the coordinator.
func (w *world) introduce() {
	for _, name := range foreign {
		w.renew(w.strangers[name], time.Now().Add(time.Minute))
	}
}

// renew sends the current token of a site to the coordinator, until the coordinator has accepted
// it.
func (w *world) renew(s *stranger, end time.Time) {
	in := transfer.NewSite{Name: s.name, URL: s.url}
	if s.gate != nil {
		s.gate.mu.Lock()
		in.Token, in.Lend = s.gate.good, true
		s.gate.mu.Unlock()
	}
	var err error
	for time.Now().Before(end) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err = w.ask.AddSite(ctx, in)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Errorf("site %s could not be told of: %v", s.name, err)
}

// expire has the token of a site expire or lose its rights; the coordinator receives another token
// a little later.
func (w *world) expire(r *rand.Rand) {
	s := w.strangers[[]string{"W", "R"}[r.IntN(2)]]
	s.gate.turn(r.IntN(2) == 0)
	w.n.expired.Add(1)
	time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	w.renew(s, time.Now().Add(2*time.Minute))
}

// crashAbroad kills a server and starts it again.
func (w *world) crashAbroad(r *rand.Rand) {
	x := w.strangers[[]string{"X", "H", "K", "N"}[r.IntN(4)]]
	x.mu.Lock()
	defer x.mu.Unlock()
	x.server.Kill()
	w.n.kills.Add(1)
	time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
	w.mend(x.server.Restart(w.t.Context()))
}

// serveAbroad restarts servers that have crashed by themselves, as XRootD 5.5.3 does now and then.
func (w *world) serveAbroad() {
	for _, x := range w.strangers {
		if x.server == nil || !x.mu.TryLock() {
			continue
		}
		if len(x.server.Pids()) == 0 {
			w.n.fallen.Add(1)
			w.mend(x.server.Restart(w.t.Context()))
		}
		x.mu.Unlock()
	}
}

// root returns the folder of a site.
func (w *world) root(site string) string {
	if s := w.strangers[site]; s != nil {
		return s.dir
	}
	return w.Root(site)
}

// abroadParts returns the temporary files of weir at sites without agents.
func (w *world) abroadParts() (left []string) {
	for _, s := range w.strangers {
		_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(d.Name(), ".part") {
				left = append(left, s.name+": "+path)
			}
			return nil
		})
	}
	return left
}

// judgeAbroad checks that no temporary files are left at sites without agents, and that no token
// was sent to the wrong host.
func (w *world) judgeAbroad() {
	left := w.abroadParts()
	for end := time.Now().Add(4 * time.Minute); len(left) > 0 && time.Now().Before(end); left = w.abroadParts() {
		time.Sleep(500 * time.Millisecond)
	}
	for _, one := range left {
		w.t.Error("left: ", one)
	}
	for _, s := range w.strangers {
		if s.gate != nil && len(s.gate.odd) > 0 {
			w.t.Errorf("%s was shown %d tokens of others: %.40q", s.name, len(s.gate.odd), s.gate.odd[0])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.heard {
		w.t.Error("credentials came to where the redirect led: ", one)
	}
}

// crowd registers many small files. Each of them is requested in a request of its own.
func (w *world) crowd(n int) {
	const name = "/store/crowd"
	in := transfer.NewFiles{Dataset: name, Site: "A"}
	for i := range n {
		f := &file{name: fmt.Sprintf("%s/f%04d", name, i), seed: w.seed + uint64(i), size: 100, from: []string{"A"}}
		f.sum()
		w.put(w.path("A", f), f.bytes(), true)
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: f.name, Size: f.size, Adler: f.adler}})
		w.small = append(w.small, &single{file: f})
	}
	for part := range slices.Chunk(in.Files, transfer.MaxNewFiles) {
		if _, err := w.ask.AddFiles(w.t.Context(), transfer.NewFiles{Dataset: name, Site: "A", Files: part}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A single is a file with a request of its own.
type single struct {
	*file
	id int64
}

func (w *world) submitCrowd() {
	var all sync.WaitGroup
	turns := make(chan *single)
	for range 4 {
		all.Go(func() {
			for s := range turns {
				s.id = w.insist(transfer.Submission{Key: "crowd " + s.name, Dataset: "/store/crowd", Files: []string{s.name}, To: "B", Tries: 100,
					Approve: true})
			}
		})
	}
	for _, s := range w.small {
		turns <- s
	}
	close(turns)
	all.Wait()
}

func (w *world) judgeCrowd() {
	for _, s := range w.small {
		r, err := w.ask.Request(w.t.Context(), s.id)
		if err != nil || r.Status != transfer.Completed {
			w.t.Errorf("%s: %+v, %v", s.name, r, err)
			continue
		}
		if err := w.right(filepath.Join(w.root("B"), filepath.FromSlash(s.name)), s.file); err != nil {
			w.t.Errorf("%s: %v", s.name, err)
		}
	}
}

// insist submits a request until the coordinator accepts it, with the same key.
func (w *world) insist(sub transfer.Submission) int64 {
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var r transfer.Request
		r, err = w.ask.Submit(ctx, sub)
		cancel()
		if err == nil {
			return r.ID
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Errorf("%s could not be asked for: %v", sub.Key, err)
	return 0
}

// grow adds a file to a dataset after it was requested: the file does not belong to the request.
func (w *world) grow(s *set) {
	f := &file{name: s.name + "/zz-later", seed: w.seed, size: 10}
	f.sum()
	site := s.files[0].from[0]
	if err := os.MkdirAll(filepath.Dir(w.path(site, f)), 0o755); err != nil {
		w.mend(err)
		return
	}
	if err := os.WriteFile(w.path(site, f), f.bytes(), 0o644); err != nil {
		if !errors.Is(err, syscall.ENOSPC) { // the campaign fills a disk
			w.mend(err)
		}
		return
	}
	in := transfer.NewFiles{Dataset: s.name, Site: site,
		Files: []transfer.NewFile{{File: catalog.File{Name: f.name, Size: f.size, Adler: f.adler}}}}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := w.ask.AddFiles(ctx, in)
		cancel()
		if err == nil {
			return
		}
	}
}

// copying makes third-party copies with any server.
func copying() []serve.Extension {
	return []serve.Extension{endpoint.NewCopier(endpoint.CopyOptions{Guard: tpc.Guard{Hosts: []string{"*"}, Private: true}})}
}
