package fts_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/fts"
	"weir/storage"
	ftsid "weir/transfer/fts"
)

// A fake is a server with FTS's routes that stores jobs and moves nothing. handle may respond to a
// request instead.
type fake struct {
	*httptest.Server
	handle func(w http.ResponseWriter, r *http.Request, body []byte) bool

	mu     sync.Mutex
	bodies []map[string]any
	jobs   map[string][]string // states of files by the id of the job
	order  []string
	asked  []string // methods and paths
}

func whoami() string {
	return `{"user_dn":"/CN=ada","vos":["weir"],"vos_id":["` + ftsid.VOID("weir") + `"],"level":{"transfer":"vo"},"method":"oauth2",` +
		`"delegation_id":"0123456789abcdef"}`
}

func startFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{jobs: map[string][]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a client that disconnects repeats the request
	f.mu.Lock()
	defer f.mu.Unlock()
	path := "/" + strings.TrimLeft(r.URL.Path, "/")
	f.asked = append(f.asked, r.Method+" "+path)
	switch {
	case f.handle != nil && f.handle(w, r, body):
	case path == "/whoami":
		_, _ = io.WriteString(w, whoami())
	case path == "/":
		_, _ = io.WriteString(w, `{"api":{"major":3,"minor":14,"patch":2}}`)
	case strings.HasPrefix(path, "/delegation/"):
		_, _ = io.WriteString(w, `{"termination_time":"2099-01-01T00:00:00"}`)
	case r.Method == http.MethodPost:
		f.submit(w, body)
	case strings.Contains(path, "/files/"):
		f.cancelFiles(path)
		_, _ = io.WriteString(w, `"CANCELED"`)
	default:
		f.show(w, r.Method == http.MethodDelete, strings.Split(strings.TrimPrefix(path, "/jobs/"), ","))
	}
}

func (f *fake) submit(w http.ResponseWriter, body []byte) {
	var in map[string]any
	_ = json.Unmarshal(body, &in) // what is missing fails the test
	id := ftsid.DeterministicID("weir", fmt.Sprint(in["params"].(map[string]any)["sid"]))
	if f.jobs[id] != nil {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"status":"409 Conflict","message":"The sid provided by the user is duplicated"}`)
		return
	}
	f.bodies, f.order = append(f.bodies, in), append(f.order, id)
	for range in["files"].([]any) {
		f.jobs[id] = append(f.jobs[id], "SUBMITTED")
	}
	_, _ = fmt.Fprintf(w, `{"job_id":%q}`, id)
}

func (f *fake) cancelFiles(path string) {
	job, files, _ := strings.Cut(strings.TrimPrefix(path, "/jobs/"), "/files/")
	for id := range strings.SplitSeq(files, ",") {
		for n := range f.jobs[job] {
			if fmt.Sprint(n+1) == id {
				f.jobs[job][n] = "CANCELED"
			}
		}
	}
}

func (f *fake) show(w http.ResponseWriter, cancel bool, ids []string) {
	var all []map[string]any
	for _, id := range ids {
		states := f.jobs[id]
		if states == nil {
			all = append(all, map[string]any{"job_id": id, "http_status": "404 Not Found"})
			continue
		}
		var files []map[string]any
		for n := range states {
			if cancel && (states[n] == "SUBMITTED" || states[n] == "ACTIVE") {
				states[n] = "CANCELED"
			}
			one := map[string]any{"file_id": n + 1, "file_index": n, "file_state": states[n], "reason": nil, "start_time": nil}
			if states[n] == "FAILED" {
				one["reason"] = "DESTINATION [28] No space left on device"
			}
			files = append(files, one)
		}
		all = append(all, map[string]any{"job_id": id, "http_status": "200 Ok", "files": files})
	}
	if len(all) == 1 {
		if all[0]["files"] == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(all[0])
		return
	}
	_ = json.NewEncoder(w).Encode(all)
}

// end gives all files of all jobs a state.
func (f *fake) end(state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, states := range f.jobs {
		for n := range states {
			states[n] = state
		}
	}
}

func (f *fake) count() (jobs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.jobs)
}

// rigAt returns a rig without servers, whose service is a fake.
func rigAt(t *testing.T, f *fake) *rig {
	t.Helper()
	r := &rig{t: t, news: map[int64][]inject.Report{}}
	r.plan = &challenge.Challenge{Name: "test", Timeout: unit.Duration(time.Minute), Verify: true,
		Inject: challenge.Injection{By: challenge.FTS, URL: f.URL, Activity: "Data Challenge"},
		Sites:  []challenge.Site{{Name: "X", URL: "davs://x.example.org/c"}, {Name: "Y", URL: "davs://y.example.org:1094/c"}},
		Links:  []challenge.Link{{From: "X", To: "Y", SciTag: 129, Streams: 4}, {From: "Y", To: "X"}}}
	r.conf = inject.Config{Challenge: r.plan, Dir: t.TempDir(), Report: r.report,
		Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }}
	return r
}

func someCopies(first, n int64, link int) (all []inject.Copy) {
	for id := first; id < first+n; id++ {
		all = append(all, inject.Copy{ID: id, Link: link, Source: inject.File{Path: "s p", Size: 10, Sum: "adler32:00010001"},
			Dest: fmt.Sprintf("d%d", id)})
	}
	return all
}

// Copies become jobs of one link with at most 100 files. The results are reported once, with the
// class and the site of failures.
func TestJobs(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	r := rigAt(t, f)
	i, _ := r.open()
	require.NoError(t, i.Check(t.Context()))
	copies := append(someCopies(1, 250, 0), someCopies(1001, 20, 1)...)
	require.NoError(t, i.Start(t.Context(), copies[:10]))
	require.NoError(t, i.Start(t.Context(), copies[10:]))
	require.NoError(t, i.Start(t.Context(), copies[:10])) // known copies are not copied again
	require.Eventually(t, "all are submitted", func() bool { return f.count() == 4 })
	f.end("FAILED")
	for id, got := range r.final(ids(copies)...) {
		if got.State != inject.Failed || got.Class != storage.ServerFailed || got.Site != []string{"Y", "X"}[id/1000] {
			t.Fatalf("%+v", got)
		}
	}
	files := 0
	for _, b := range f.bodies {
		n := len(b["files"].([]any))
		files += n
		if n > 100 {
			t.Errorf("a job has %d files", n)
		}
	}
	if files != len(copies) {
		t.Errorf("%d files were submitted", files)
	}
}

// A service that is overloaded, and one whose response is lost, gets the same job again, and makes
// it once. A refused job fails.
func TestSubmissionsAreRepeated(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "waits for repeated requests")
	f := startFake(t)
	n := 0
	f.handle = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method != http.MethodPost {
			return false
		}
		switch n++; n {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			f.submit(httptest.NewRecorder(), body)
			panic(http.ErrAbortHandler) // the response is lost
		case 4:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":"400 Bad Request","message":"no, because"}`)
		default:
			return false
		}
		return true
	}
	r := rigAt(t, f)
	i, _ := r.open()
	require.NoError(t, i.Start(t.Context(), someCopies(1, 3, 0)))
	require.Eventually(t, "the response arrives", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return n == 3 })
	if h := i.Health(); !h.Busy || h.Failed < 2 || h.Reason == "" {
		t.Errorf("%+v", h)
	}
	f.end("FINISHED")
	for _, got := range r.final(1, 2, 3) {
		if got.State != inject.Done || got.Moved != 10 || !got.Verified || !got.Label {
			t.Errorf("%+v", got)
		}
	}
	if f.count() != 1 {
		t.Errorf("%d jobs", f.count())
	}
	require.NoError(t, i.Start(t.Context(), someCopies(4, 1, 0)))
	if got := r.final(4)[4]; got.State != inject.Failed || !strings.Contains(got.Reason, "no, because") {
		t.Errorf("%+v", got)
	}
}

// Copies are cancelled before they are submitted, with their whole jobs, and as single files.
func TestCancel(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	r := rigAt(t, f)
	i, _ := r.open()
	early := someCopies(1, 3, 0)
	require.NoError(t, i.Start(t.Context(), early))
	require.NoError(t, i.Cancel(t.Context(), ids(early)))
	r.final(ids(early)...)
	whole, part := someCopies(11, 5, 0), someCopies(21, 5, 1)
	require.NoError(t, i.Start(t.Context(), append(whole, part...)))
	require.Eventually(t, "all are submitted", func() bool { return f.count() == 2 })
	begun := time.Now()
	require.NoError(t, i.Cancel(t.Context(), append(ids(whole), 22, 24)))
	for id, got := range r.final(append(ids(whole), 22, 24)...) {
		if got.State != inject.Cancelled || got.Class != storage.Canceled {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
	t.Logf("cancelled after %s", time.Since(begun))
	f.mu.Lock()
	var left int
	for _, states := range f.jobs {
		for _, s := range states {
			if s == "SUBMITTED" {
				left++
			}
		}
	}
	f.mu.Unlock()
	if left != 3 {
		t.Errorf("%d files are left", left)
	}
	f.end("CANCELED") // by others
	for _, got := range r.final(21, 23, 25) {
		if got.State != inject.Failed {
			t.Errorf("%+v", got)
		}
	}
}

// After a kill, copies are taken over by the journal; a copy that was never submitted and a job that
// the service does not have have failed.
func TestResume(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "waits for repeated requests")
	f := startFake(t)
	r := rigAt(t, f)
	i, end := r.open()
	copies := append(someCopies(1, 3, 0), someCopies(11, 3, 1)...)
	require.NoError(t, i.Start(t.Context(), copies))
	require.Eventually(t, "all are submitted", func() bool { return f.count() == 2 })
	end()
	f.mu.Lock()
	for n, body := range f.bodies {
		if strings.HasSuffix(fmt.Sprint(body["params"].(map[string]any)["sid"]), "-11") {
			delete(f.jobs, f.order[n])
		}
	}
	f.mu.Unlock()
	f.end("FINISHED")
	r.news = map[int64][]inject.Report{}
	again, _ := r.open()
	require.NoError(t, again.Resume(t.Context(), append(copies, someCopies(21, 1, 0)...)))
	for id, got := range r.final(append(ids(copies), 21)...) {
		if want := map[bool]inject.State{true: inject.Done, false: inject.Failed}[id < 11]; got.State != want || want == inject.Failed &&
			!strings.Contains(got.Reason, "submitted") {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
}

// New refuses addresses that are none.
func TestAddress(t *testing.T) {
	for _, url := range []string{"", "fts.example.org", "davs://fts.example.org", "https://ada:secret@fts.example.org"} {
		_, err := fts.New(t.Context(), inject.Config{Challenge: &challenge.Challenge{Inject: challenge.Injection{URL: url}}, Dir: t.TempDir()})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Copies are cancelled although the service has requested a pause of a minute.
func TestCancelBusy(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	busy := false
	f.handle = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if busy && r.Method == http.MethodGet {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
			busy = false // only once
			return true
		}
		return false
	}
	r := rigAt(t, f)
	i, _ := r.open()
	require.NoError(t, i.Start(t.Context(), someCopies(1, 3, 0)))
	require.Eventually(t, "all are submitted", func() bool { return f.count() == 1 })
	f.mu.Lock()
	busy = true
	f.mu.Unlock()
	require.Eventually(t, "the service asks for a pause", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return !busy })
	begun := time.Now()
	require.NoError(t, i.Cancel(t.Context(), []int64{1, 2, 3}))
	r.final(1, 2, 3)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("after %s", took)
	}
}

// Thousands of copies need few requests: a job for 100 copies, and a poll for 100 jobs.
func TestThousands(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	r := rigAt(t, f)
	i, _ := r.open()
	copies := append(someCopies(1, 5000, 0), someCopies(10_001, 5000, 1)...)
	require.NoError(t, i.Start(t.Context(), copies))
	require.Eventually(t, "all are submitted", func() bool { return f.count() == 100 })
	f.end("FINISHED")
	r.final(ids(copies)...)
	posts, polls := 0, 0
	f.mu.Lock()
	for _, one := range f.asked {
		if strings.HasPrefix(one, "POST") {
			posts++
		} else if strings.HasPrefix(one, "GET /jobs/") {
			polls++
		}
	}
	f.mu.Unlock()
	if posts != 100 || polls > 120 { // a poll may follow each submission
		t.Errorf("%d submissions and %d polls of %d copies", posts, polls, len(copies))
	}
	t.Logf("%d submissions and %d polls of %d copies", posts, polls, len(copies))
}
