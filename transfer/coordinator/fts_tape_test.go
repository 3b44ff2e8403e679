package coordinator

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/tape"
	"weir/internal/tier"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
)

// A tapeServer is a storage endpoint with a tape system: a real server behind the WLCG Tape REST
// API, version 1. Files can be read only while they are on disk.
type tapeServer struct {
	*httptest.Server
	mu       sync.Mutex
	onDisk   map[string]bool
	onTape   map[string]bool
	broken   map[string]string // reasons why files cannot be brought online
	requests map[string][]string
	asked    []map[string]any // files of all stage requests
	released []string
	canceled []string
	polls    int

	check   func(raw string) error // checks the token of a request to the tape system; nil: no token is needed
	tokens  map[string]bool        // accepted tokens
	refused int
}

// startTape starts a tapeServer in front of a server. If it checks tokens, it uses TLS with the
// certificate of that server.
func startTape(t *testing.T, before *lab.System, check func(raw string) error) *tapeServer {
	t.Helper()
	to, err := url.Parse(before.URLs["https"])
	if err != nil {
		t.Fatal(err)
	}
	pool, err := trust.WithSystem(before.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &tapeServer{onDisk: map[string]bool{}, onTape: map[string]bool{}, broken: map[string]string{}, requests: map[string][]string{},
		check: check, tokens: map[string]bool{}}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	pass := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host // Host is kept: MOVE compares it
		if lent := r.In.Header.Values("Transferheaderauthorization"); len(lent) > 0 {
			r.Out.Header["TransferHeaderAuthorization"] = lent // XRootD before 5.7 recognizes only the spelling of the sender
			r.Out.Header.Del("Transferheaderauthorization")
		}
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+tape.WellKnown, func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, map[string]any{"sitename": "lab-tape", "endpoints": []any{
			map[string]any{"uri": "http://other.example.org/v0", "version": "v0"},
			map[string]any{"uri": s.URL + "/api/v1/", "version": "v1"}}})
	})
	mux.HandleFunc("POST /api/v1/stage", s.stage)
	mux.HandleFunc("GET /api/v1/stage/{id}", s.progress)
	mux.HandleFunc("POST /api/v1/stage/{id}/cancel", s.subset(&s.canceled))
	mux.HandleFunc("POST /api/v1/release/{id}", s.subset(&s.released))
	mux.HandleFunc("POST /api/v1/archiveinfo", s.places)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		offline := r.Method == http.MethodGet && s.onTape[tape.Clean(r.URL.Path)] && !s.onDisk[tape.Clean(r.URL.Path)]
		s.mu.Unlock()
		if offline {
			http.Error(w, "the file is not online", http.StatusConflict)
			return
		}
		pass.ServeHTTP(w, r)
	})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = tape.Clean(r.URL.Path)
		if check != nil && strings.HasPrefix(r.URL.Path, "/api/") && !s.admits(r) {
			http.Error(w, "the token is not valid", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	if check == nil {
		s.Start()
	} else {
		id, err := tls.LoadX509KeyPair(before.HostFiles())
		if err != nil {
			t.Fatal(err)
		}
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{id}}
		s.StartTLS()
	}
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// admits reports whether the token of a request is valid, and records the result.
func (s *tapeServer) admits(r *http.Request) bool {
	raw := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	err := s.check(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.refused++
		return false
	}
	s.tokens[raw] = true
	return true
}

func answerJSON(w http.ResponseWriter, out any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (s *tapeServer) stage(w http.ResponseWriter, r *http.Request) {
	var in struct{ Files []map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("request-%d", len(s.requests))
	for _, f := range in.Files {
		s.requests[id] = append(s.requests[id], fmt.Sprint(f["path"]))
		s.asked = append(s.asked, f)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"requestId": id})
}

func (s *tapeServer) progress(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	files := []any{}
	for i, path := range s.requests[r.PathValue("id")] {
		f := map[string]any{"path": path, "state": "STARTED"}
		switch {
		case s.broken[path] != "":
			f["state"], f["error"] = "FAILED", s.broken[path]
		case s.onDisk[path] && i%2 == 0:
			f["state"] = "COMPLETED"
		case s.onDisk[path]: // both forms are in the specification
			f = map[string]any{"path": path, "onDisk": true}
		}
		files = append(files, f)
	}
	answerJSON(w, map[string]any{"id": r.PathValue("id"), "createdAt": 1, "startedAt": 1, "files": files})
}

// subset returns a handler that records the paths of a request about files of a stage request.
func (s *tapeServer) subset(to *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Paths []string }
		err := json.NewDecoder(r.Body).Decode(&in)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, path := range in.Paths {
			if !slices.Contains(s.requests[r.PathValue("id")], path) {
				err = fmt.Errorf("the file %s does not belong to the request", path)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*to = append(*to, in.Paths...)
	}
}

func (s *tapeServer) places(w http.ResponseWriter, r *http.Request) {
	var in struct{ Paths []string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	out := []any{}
	for _, path := range in.Paths {
		f := map[string]any{"path": path, "locality": "DISK"}
		if s.onTape[path] {
			f["locality"] = "DISK_AND_TAPE"
		}
		if s.broken[path] != "" {
			f = map[string]any{"path": path, "error": s.broken[path]}
		}
		out = append(out, f)
	}
	answerJSON(w, out)
}

// set changes the state of the tape system with f.
func (s *tapeServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// states returns the states of the files of a job.
func (u *ftsUser) states(id string) (states []string) {
	u.h.T.Helper()
	var files []ftsFile
	if status := u.ask("GET", "/jobs/"+id+"/files", "", &files); status != http.StatusOK {
		u.h.T.Fatalf("%d", status)
	}
	for _, f := range files {
		states = append(states, f.State)
	}
	return states
}

// Files on tape are brought online with one request, copied and released, even if the coordinator
// is restarted meanwhile. A file that cannot be brought online fails with the tape system's reason.
func TestFTSStage(t *testing.T) {
	tier.Slow(t, "waits for a tape system")
	t.Parallel()
	p := startFTS(t, "")
	s := startTape(t, p.x, nil)
	u := p.ftsUser("alice", access.MaySubmit)
	data := strings.Repeat("tape\n", 10_000)
	var files []string
	for _, name := range []string{"a", "b", "bad"} {
		p.put(p.x, "m/"+name, []byte(data))
		s.onTape["/data/m/"+name] = true
		files = append(files, fmt.Sprintf(`{"sources":["%s/data//m/%s"],"destinations":["%s/m/%s"],
			"staging_metadata":{"activity":"reprocessing"}}`, s.URL, name, p.y.URLs["https"], name))
	}
	id := u.submit(`{"files":[` + strings.Join(files, ",") + `],"params":{"bring_online":3600,"copy_pin_lifetime":60,"retry":-1}}`)
	asked := func() (n int) {
		s.set(func() { n = len(s.asked) })
		return n
	}
	until(t, "the tape system is asked", func() bool { return asked() == 3 })
	if got := u.states(id); !slices.Equal(got, []string{fts.Staging, fts.Staging, fts.Staging}) {
		t.Errorf("%q", got)
	}
	var j ftsJob
	if status := u.ask("GET", "/jobs/"+id, "", &j); status != http.StatusOK || j.State != fts.Staging {
		t.Errorf("%d %+v", status, j)
	}
	if why := p.explained(); !strings.Contains(why, "being brought online") {
		t.Error(why)
	}
	polled := func() (is bool) {
		s.set(func() { is = s.polls > 0 })
		return is
	}
	until(t, "the tape system is polled", polled)
	p.End()
	p.Begin()
	u.http.CloseIdleConnections()
	s.set(func() { s.polls = 0 })
	until(t, "the tape system is polled again", polled)
	s.set(func() {
		s.onDisk["/data/m/a"], s.onDisk["/data/m/b"], s.broken["/data/m/bad"] = true, true, "Tape backend is unreachable"
	})
	j = u.ended(id)
	if j.State != fts.FinishedDirty || j.Files[0].State != fts.Finished || j.Files[1].State != fts.Finished ||
		j.Files[2].Reason != "STAGING [5] Tape backend is unreachable" {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "m/b")); err != nil || string(got) != data {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	until(t, "the copies on disk are released", func() (is bool) {
		s.set(func() {
			slices.Sort(s.released)
			is = slices.Equal(s.released, []string{"/data/m/a", "/data/m/b"})
		})
		return is
	})
	s.set(func() {
		meta, err := json.Marshal(s.asked[0]["targetedMetadata"])
		if len(s.requests) != 1 || len(s.asked) != 3 || s.asked[0]["diskLifetime"] != "PT60S" ||
			err != nil || string(meta) != `{"lab-tape":{"activity":"reprocessing"}}` {
			t.Errorf("%d requests: %+v", len(s.requests), s.asked)
		}
	})
	var rows []map[string]any
	if status := u.ask("GET", "/jobs/"+id+"/files", "", &rows); status != http.StatusOK || rows[0]["staging_start"] == nil ||
		rows[0]["staging_finished"] == nil || rows[0]["archive_start_time"] != nil {
		t.Errorf("%d %+v", status, rows)
	}
}

// Files that are cancelled, or not online in time, are no longer brought online. Files at an
// endpoint without a tape system fail.
func TestFTSStageEnds(t *testing.T) {
	tier.Slow(t, "waits for a tape system")
	t.Parallel()
	p := startFTS(t, "")
	s := startTape(t, p.x, nil)
	u := p.ftsUser("alice", access.MaySubmit)
	job := func(source, name string, params string) string {
		return fmt.Sprintf(`{"files":[{"sources":["%s/n/%s"],"destinations":["%s/n/%s"]}],"params":{%s}}`, source, name, p.y.URLs["https"], name,
			params)
	}
	p.put(p.x, "n/a", []byte("a"))
	late := u.submit(job(s.URL+"/data", "late", `"bring_online":1`))
	cancelled := u.submit(job(s.URL+"/data", "cancelled", `"copy_pin_lifetime":5`))
	none := u.submit(job(p.x.URLs["https"], "a", `"bring_online":3600`))
	until(t, "both are asked for", func() (is bool) {
		s.set(func() { is = len(s.asked) == 2 })
		return is
	})
	var j ftsJob
	if status := u.ask("DELETE", "/jobs/"+cancelled, "", &j); status != http.StatusOK || j.State != fts.Canceled {
		t.Errorf("%d %+v", status, j)
	}
	if j := u.ended(cancelled); j.Files[0].State != fts.Canceled {
		t.Errorf("%+v", j)
	}
	if j := u.ended(late); j.State != fts.Failed || !strings.HasPrefix(j.Files[0].Reason, "STAGING [110] bring-online timeout") {
		t.Errorf("%+v", j)
	}
	if j := u.ended(none); j.State != fts.Failed || !strings.HasPrefix(j.Files[0].Reason, "STAGING [95] ") {
		t.Errorf("%+v", j)
	}
	until(t, "both are cancelled at the tape system", func() (is bool) {
		s.set(func() {
			slices.Sort(s.canceled)
			is = slices.Equal(s.canceled, []string{"/data/n/cancelled", "/data/n/late"})
		})
		return is
	})
	var no struct{ Message string }
	two := fmt.Sprintf(`{"files":[{"sources":["%s/a","https://a.example.org/a"],"destinations":["%s/b"]}],"params":{"bring_online":5}}`, s.URL,
		p.y.URLs["https"])
	if status := u.ask("POST", "/jobs", two, &no); status != http.StatusBadRequest || !strings.Contains(no.Message, "brought online") {
		t.Errorf("%d %+v", status, no)
	}
}

// Files that have been copied end when they are on tape, or fail if that takes too long.
func TestFTSArchive(t *testing.T) {
	tier.Slow(t, "waits for a tape system")
	t.Parallel()
	p := startFTS(t, "")
	s := startTape(t, p.y, nil)
	u := p.ftsUser("alice", access.MaySubmit)
	submit := func(timeout int, names ...string) string {
		t.Helper()
		var files []string
		for _, name := range names {
			p.put(p.x, "o/"+name, []byte(name))
			files = append(files, fmt.Sprintf(`{"sources":["%s/o/%s"],"destinations":["%s/data/o/%s"]}`, p.x.URLs["https"], name, s.URL, name))
		}
		return u.submit(fmt.Sprintf(`{"files":[%s],"params":{"archive_timeout":%d,"retry":-1}}`, strings.Join(files, ","), timeout))
	}
	id := submit(3600, "a", "bad")
	until(t, "both are being archived", func() bool {
		return slices.Equal(u.states(id), []string{fts.Archiving, fts.Archiving})
	})
	var j ftsJob
	if status := u.ask("GET", "/jobs/"+id, "", &j); status != http.StatusOK || j.State != fts.Archiving {
		t.Errorf("%d %+v", status, j)
	}
	if got, err := os.ReadFile(filepath.Join(p.y.Data, "o/a")); err != nil || string(got) != "a" {
		t.Errorf("%q, %v", got, err)
	}
	s.set(func() {
		s.onTape["/data/o/a"], s.onDisk["/data/o/a"], s.broken["/data/o/bad"] = true, true, "it is empty"
	})
	j = u.ended(id)
	if j.State != fts.FinishedDirty || j.Files[0].State != fts.Finished || j.Files[1].Reason != "ARCHIVING [5] it is empty" {
		t.Errorf("%+v", j)
	}
	if j := u.ended(submit(1, "late")); j.State != fts.Failed || !strings.HasPrefix(j.Files[0].Reason, "ARCHIVING [110] archive timeout") {
		t.Errorf("%+v", j)
	}
}

// Requests to tape systems contain the tokens of jobs, which an issuer signs with ECDSA, also after
// these have expired and were renewed. If a tape system refuses the token, the file fails when its
// time limit has passed.
func TestFTSTapeTokens(t *testing.T) {
	tier.Slow(t, "waits for tokens to expire")
	t.Parallel()
	const life = 10 * time.Second // busy machines need seconds to exchange a token
	p, iam, out := startIAM(t, labtest.IAMConfig{ES256: true, Life: life})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	checker, err := token.NewChecker(token.Options{Trust: []token.Trust{{Issuer: iam.URL, Keys: iam.Keys()}},
		Audience: []string{"https://wlcg.cern.ch/jwt/v1/any"}})
	if err != nil {
		t.Fatal(err)
	}
	s := startTape(t, p.x, func(raw string) error {
		claims, err := checker.Check(t.Context(), raw)
		if err == nil && !claims.May(token.Read, "/m/a") {
			err = errors.New("it is for something else")
		}
		return err
	})
	hour := map[string]any{"exp": time.Now().Add(time.Hour).Unix()}
	u := p.bearing(iam.Token("rucio", access.FTSScope, hour))
	data := []byte("with tokens, from and to tape\n")
	p.put(p.x, "m/a", data)
	p.put(p.y, "m/b", data)
	s.onTape["/data/m/a"] = true
	stage, read := iam.Token("rucio", "storage.stage:/ storage.read:/", nil), iam.Token("rucio", "storage.read:/", nil)
	write := iam.Token("rucio", "storage.modify:/ storage.read:/", nil)
	job := func(source, dest, from, params string) string {
		return u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"source_tokens":[%q],"destination_tokens":[%q]}],
			"params":{"retry":-1,%s}}`, source, dest, from, write, params))
	}
	staged := job(s.URL+"/data/m/a", p.y.URLs["https"]+"/m/a", stage, `"bring_online":60`)
	archived := job(p.y.URLs["https"]+"/m/b", s.URL+"/data/m/b", read, `"archive_timeout":60`)
	until(t, "one is being brought online, and the other being archived", func() bool {
		return slices.Equal(u.states(staged), []string{fts.Staging}) && slices.Equal(u.states(archived), []string{fts.Archiving})
	})
	over := time.Now().Add(life + time.Second)
	until(t, "the tokens expire", func() bool { return time.Now().After(over) })
	s.set(func() {
		if len(s.tokens) < 2 || s.refused > 0 {
			t.Errorf("%d tokens, %d refused", len(s.tokens), s.refused)
		}
		s.onDisk["/data/m/a"], s.onTape["/data/m/b"], s.onDisk["/data/m/b"] = true, true, true
	})
	for _, id := range []string{staged, archived} {
		if j := u.ended(id); j.State != fts.Finished {
			t.Errorf("%+v", j)
		}
	}
	s.set(func() {
		if len(s.tokens) < 3 || s.refused > 0 {
			t.Errorf("%d tokens, %d refused", len(s.tokens), s.refused)
		}
	})
	for _, file := range []string{filepath.Join(p.y.Data, "m/a"), filepath.Join(p.x.Data, "m/b")} {
		if got, err := os.ReadFile(file); err != nil || string(got) != string(data) {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	other := iam.Token("rucio", "storage.read:/other", hour)
	j := u.ended(job(s.URL+"/data/m/a", p.y.URLs["https"]+"/m/c", other, `"bring_online":1`))
	if j.State != fts.Failed || !strings.HasPrefix(j.Files[0].Reason, "STAGING [110]") || !strings.Contains(j.Files[0].Reason, "403") {
		t.Errorf("%+v", j)
	}
	noTokenIn(t, "the log", out.String(), stage, read, write, other)
}

// A tape system that does not respond does not delay the files of other tape systems.
func TestTapeSystemsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	asked, silent := make(chan struct{}, 100), make(chan struct{})
	a := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tape.WellKnown {
			asked <- struct{}{}
			<-silent
		}
	}))
	defer a.Close()
	defer close(silent)
	staged := make(chan struct{}, 100)
	var b *httptest.Server
	b = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case tape.WellKnown:
			answerJSON(w, map[string]any{"endpoints": []any{map[string]any{"uri": b.URL + "/api/v1", "version": "v1"}}})
		case "/api/v1/stage":
			staged <- struct{}{}
			answerJSON(w, map[string]any{"requestId": "one"})
		}
	}))
	defer b.Close()
	u := start(t, Config{Approve: -1, JobArea: tpc.Loopback}).ftsUser("rucio", access.MaySubmit)
	submit := func(from string) {
		t.Helper()
		u.submit(fmt.Sprintf(`{"files":[{"sources":["%s/f"],"destinations":["http://127.0.0.1:9/%s"],"filesize":1}],
			"params":{"bring_online":3600,"verify_checksum":"none"}}`, from, from[len(from)-4:]))
	}
	submit(a.URL)
	<-asked
	submit(b.URL)
	select {
	case <-staged:
	case <-time.After(30 * time.Second):
		t.Error("the second tape system was not asked")
	}
}
