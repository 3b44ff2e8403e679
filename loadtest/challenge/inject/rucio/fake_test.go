package rucio_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/rucio"
	"weir/storage"
)

// A fake is a server with Rucio's routes that keeps rules and replicas. handle may respond to a request
// instead.
type fake struct {
	*httptest.Server
	handle func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	logins   int
	rules    map[string]map[string]any // by id
	replicas map[string]bool           // "RSE name"
	ended    []string                  // names of files whose rules were ended
}

func startFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{rules: map[string]map[string]any{}, replicas: map[string]bool{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	body, _ := io.ReadAll(r.Body) // a client that disconnects repeats the request
	_ = json.Unmarshal(body, &in) // what is missing fails the test
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/auth/userpass" {
		f.logins++
		w.Header().Set("X-Rucio-Auth-Token", fmt.Sprint("token", f.logins))
		w.Header().Set("X-Rucio-Auth-Token-Expires", time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 UTC"))
		return
	}
	if r.Header.Get("X-Rucio-Auth-Token") != fmt.Sprint("token", max(f.logins, 2)) { // the first token is refused
		refuse(w, http.StatusUnauthorized, "CannotAuthenticate")
		return
	}
	if f.handle != nil && f.handle(w, r) {
		return
	}
	switch path := r.URL.Path; {
	case path == "/rules/" && r.Method == http.MethodPost:
		f.addRules(w, in)
	case path == "/rules/":
		for id, rule := range f.rules {
			rule["id"] = id
			_ = json.NewEncoder(w).Encode(rule)
		}
	case strings.HasPrefix(path, "/rules/"):
		id := strings.TrimPrefix(path, "/rules/")
		f.ended = append(f.ended, fmt.Sprint(f.rules[id]["name"]))
		delete(f.replicas, fmt.Sprint(f.rules[id]["rse_expression"], " ", f.rules[id]["name"]))
		delete(f.rules, id)
	case path == "/replicas/list":
		for _, d := range in["dids"].([]any) {
			name, rses := fmt.Sprint(d.(map[string]any)["name"]), map[string]string{}
			if f.replicas[fmt.Sprint(in["rse_expression"], " ", name)] {
				rses[fmt.Sprint(in["rse_expression"])] = "AVAILABLE"
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "states": rses})
		}
	case strings.HasPrefix(path, "/rses/"):
		_, _ = io.WriteString(w, `{"deterministic":false,"availability_read":true,"availability_write":true}`)
	default:
		_, _ = io.WriteString(w, `{}`)
	}
}

// addRules adds rules, of which all are refused if one exists.
func (f *fake) addRules(w http.ResponseWriter, in map[string]any) {
	var ids []string
	for _, d := range in["dids"].([]any) {
		name := fmt.Sprint(d.(map[string]any)["name"])
		id := fmt.Sprint(in["rse_expression"], "-", name)
		if f.rules[id] != nil {
			refuse(w, http.StatusConflict, "DuplicateRule")
			return
		}
		ids = append(ids, id)
	}
	for n, d := range in["dids"].([]any) {
		name := fmt.Sprint(d.(map[string]any)["name"])
		f.rules[ids[n]] = map[string]any{"name": name, "rse_expression": in["rse_expression"], "state": "REPLICATING"}
		f.replicas[fmt.Sprint(in["rse_expression"], " ", name)] = true
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(ids)
}

func refuse(w http.ResponseWriter, status int, class string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"ExceptionClass":%q,"ExceptionMessage":"no"}`, class)
}

// set gives the rules at Y a state.
func (f *fake) set(state, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if rule["rse_expression"] == "Y" {
			rule["state"], rule["error"] = state, text
		}
	}
}

func rigAt(t *testing.T, f *fake) *rig {
	t.Helper()
	r := &rig{t: t, news: map[int64][]inject.Report{}}
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("secret"), 0o600))
	r.plan = &challenge.Challenge{Name: "test", Timeout: unit.Duration(time.Hour),
		Inject: challenge.Injection{By: challenge.Rucio, URL: f.URL, Account: "root", Scope: scope,
			Auth: storage.Auth{Method: storage.BasicAuth, User: "ddmlab", PasswordFile: password}},
		Sites: []challenge.Site{{Name: "A", RSE: "X", URL: "davs://x/store"}, {Name: "B", RSE: "Y", URL: "davs://y/store"}},
		Links: []challenge.Link{{From: "A", To: "B", Protocol: challenge.WebDAV}}}
	r.conf = inject.Config{Challenge: r.plan, Dir: filepath.Join(t.TempDir(), "inject"), Report: r.report}
	return r
}

func copyOf(id int64, name string) inject.Copy {
	return inject.Copy{ID: id, Source: inject.File{Path: rucio.Path(scope, name), Size: 10, Sum: "adler32:00010001"}}
}

// A refused token is renewed. A rule whose response is lost is taken over. A stuck rule has failed, and
// the next copy of the file begins when its replica is gone.
func TestRules(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "waits for rounds of requests")
	f := startFake(t)
	lost := false
	f.handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/rules/" || len(f.rules) != 2 || lost { // the sources have rules
			return false
		}
		lost = true
		for _, name := range []string{"a", "b"} {
			f.rules["Y-"+name] = map[string]any{"name": name, "rse_expression": "Y", "state": "REPLICATING"}
			f.replicas["Y "+name] = true
		}
		panic(http.ErrAbortHandler) // the response is lost
	}
	r := rigAt(t, f)
	i, _ := r.open()
	require.NoError(t, i.Check(t.Context()))
	require.NoError(t, i.Start(t.Context(), []inject.Copy{copyOf(1, "a"), copyOf(2, "b"), copyOf(3, "a")}))
	r.until(time.Minute, "the rules are known", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.news) == 2 })
	f.set("STUCK", "MissingSourceReplica: DESTINATION [28] No space left on device")
	for id, got := range r.ended(time.Minute, 1, 2) {
		if got.State != inject.Failed || got.Site != "B" || got.Class != storage.ServerFailed {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
	r.until(time.Minute, "the third copy begins", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.news[3]) == 1 })
	f.set("OK", "")
	if got := r.ended(time.Minute, 3)[3]; got.State != inject.Done || got.Moved != 10 {
		t.Errorf("%+v", got)
	}
	require.NoError(t, i.Remove(t.Context(), []int64{3}))
	r.until(time.Minute, "the copy is removed", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.rules) == 2 && len(f.ended) == 3
	})
	require.NoError(t, i.Clean(t.Context()))
	if len(f.rules) != 0 || f.logins != 2 || !lost {
		t.Errorf("%d rules are left, %d logins, lost %v", len(f.rules), f.logins, lost)
	}
}

// Copies that wait for their place are cancelled at once; a rule is ended.
func TestCancelled(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.replicas["Y a"] = true // of an earlier challenge
	r := rigAt(t, f)
	i, _ := r.open()
	require.NoError(t, i.Start(t.Context(), []inject.Copy{copyOf(1, "a"), copyOf(2, "b")}))
	r.until(time.Minute, "b is requested", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.news[2]) == 1 })
	begun := time.Now()
	require.NoError(t, i.Cancel(t.Context(), []int64{1, 2}))
	for id, got := range r.ended(time.Minute, 1, 2) {
		if got.State != inject.Cancelled {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
	t.Logf("cancelled after %s", time.Since(begun))
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ended) != 1 || f.ended[0] != "b" {
		t.Errorf("%v", f.ended)
	}
}
