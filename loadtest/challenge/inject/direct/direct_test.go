package direct

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/token"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/storage"
	"weir/storage/all"
)

// Copies are pulled and pushed between two servers, each of which needs its own token, and the
// reports follow them.
func TestCopies(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	const size = 3_000_000
	file := write(t, size, a, "f")
	write(t, 0, a, "empty")
	sites := []challenge.Site{
		{Name: "A", URL: start(t, serve.Config{Dir: a, Token: "one"}).URL(), Auth: secret(t, "one")},
		{Name: "B", URL: start(t, serve.Config{Dir: b, Token: "two"}).URL(), Auth: secret(t, "two")},
	}
	r := newRig(t, sites, challenge.Link{From: "A", To: "B"}, challenge.Link{From: "A", To: "B", Mode: challenge.Push, SciTag: 129})
	require.NoError(t, r.in.Check(t.Context()))
	for link := range 2 {
		name := fmt.Sprintf("g%d", link)
		last := r.copy(link, "f", name, size)
		if last.State != inject.Done || last.Moved != size || last.Begin.IsZero() || last.Label != (link == 1) || last.Class != storage.None {
			t.Errorf("link %d: %+v", link, last)
		}
		same(t, file, filepath.Join(b, name))
		if last = r.copy(link, "empty", name+"0", 0); last.State != inject.Done || last.Moved != 0 {
			t.Errorf("link %d: an empty file: %+v", link, last)
		}
		again := r.copy(link, "f", name, size)
		if again.State != inject.Failed || again.Site != "B" || !again.Exists {
			t.Errorf("link %d: over a file that is there: %+v", link, again)
		}
		missing := r.copy(link, "none", "x", size)
		if missing.State != inject.Failed || missing.Class != storage.NotFound || missing.Site != "A" || missing.Expired || missing.Exists {
			t.Errorf("link %d: of a file that is not there: %+v", link, missing)
		}
	}
	h := r.in.Health()
	if h.Requests != 8 || h.Failed == 0 || h.Latency <= 0 || h.Reason == "" || r.in.Health() != (inject.Health{}) {
		t.Errorf("health: %+v", h)
	}
	if got := names(t, b); strings.Contains(got, "x") {
		t.Errorf("left: %s", got)
	}
}

// A challenge whose sites cannot be used is refused before the first copy, with place and remedy.
func TestSitesThatCannotBeUsed(t *testing.T) {
	byRoot := challenge.Link{From: "A", To: "B", Protocol: challenge.XRootD}
	for name, tt := range map[string]struct {
		a, b string // URLs
		link challenge.Link
		says string
	}{
		"no root":   {"https://a/", "root://b//", byRoot, "site A has no URL for the protocol root"},
		"no davs":   {"https://a/", "root://b//", challenge.Link{From: "A", To: "B"}, "site B has no URL for the protocol davs"},
		"unknown":   {"https://a/", "https://b/", challenge.Link{From: "A", To: "C"}, `no site "C"`},
		"no copies": {"ftp://a/", "ftp://b/", challenge.Link{From: "A", To: "B"}, "no third-party copies"},
	} {
		sites := []challenge.Site{{Name: "A", URL: tt.a}, {Name: "B", URL: tt.b}}
		c := &challenge.Challenge{Sites: sites, Links: []challenge.Link{tt.link}}
		_, err := New(t.Context(), inject.Config{Challenge: c, Drivers: all.Drivers(),
			Credentials: func(string) (storage.Credentials, error) { return storage.Credentials{}, nil }})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := start(t, serve.Config{Dir: t.TempDir()}).URL()
	locked := start(t, serve.Config{Dir: t.TempDir(), Token: "secret"}).URL()
	r := newRig(t, []challenge.Site{{Name: "A", URL: good}, {Name: "B", URL: locked}}, challenge.Link{From: "A", To: "B"})
	if err := r.in.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "site B") {
		t.Errorf("check: %v", err)
	}
	s, err := serve.New(serve.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	requests.Serve(t, s)
	without := []challenge.Site{{Name: "A", URL: good}, {Name: "B", URL: s.URL()}}
	for push, want := range map[challenge.Mode]bool{challenge.Pull: false, challenge.Push: true} {
		err := newRig(t, without, challenge.Link{From: "A", To: "B", Mode: push}).in.Check(t.Context())
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "site B: B makes no such third-party copies") {
			t.Errorf("a site without copies, %s: %v", push, err)
		}
	}
}

// slowSource is a passive site with a file of size bytes, of which it sends half; then it waits for
// release.
type slowSource struct {
	*httptest.Server
	size    int64
	sent    chan struct{} // a value for each file of which half was sent
	broken  atomic.Int32  // downloads that the destination broke off
	release chan struct{} // closed: the other half is sent
}

func newSlowSource(t testing.TB) *slowSource {
	s := &slowSource{size: 2_000_000, sent: make(chan struct{}, 100), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(s.size))
		if r.Method != http.MethodGet {
			return
		}
		_, _ = w.Write(make([]byte, s.size/2))
		_ = http.NewResponseController(w).Flush()
		s.sent <- struct{}{}
		select {
		case <-s.release:
			_, _ = w.Write(make([]byte, s.size/2))
		case <-r.Context().Done():
			s.broken.Add(1)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A copy reports its progress while it runs. Cancel ends it within 10 s, and nothing is left; the
// other copies continue.
func TestCancel(t *testing.T) {
	tier.Slow(t, "waits for markers")
	t.Parallel()
	source, dir := newSlowSource(t), t.TempDir()
	r := newRig(t, []challenge.Site{{Name: "A", URL: source.URL}, {Name: "B", URL: start(t, serve.Config{Dir: dir}).URL()}},
		challenge.Link{From: "A", To: "B"})
	ids := []int64{r.start(0, "f", "g1", source.size), r.start(0, "f", "g2", source.size), r.start(0, "f", "g3", source.size)}
	for range ids {
		<-source.sent
	}
	for _, id := range ids {
		require.Eventually(t, "the copy reports half of its bytes", func() bool {
			all := r.reports(id)
			last := all[len(all)-1]
			return last.State == inject.Running && last.Moved == source.size/2
		})
	}
	begun := time.Now()
	require.NoError(t, r.in.Cancel(t.Context(), append(ids[:2:2], 99)))
	for _, id := range ids[:2] {
		if last := r.final(id); last.State != inject.Cancelled || last.Class != storage.Canceled || time.Since(begun) > 10*time.Second {
			t.Errorf("%+v after %v", last, time.Since(begun))
		}
	}
	require.Eventually(t, "the destination gives the copies up", func() bool { return source.broken.Load() == 2 })
	close(source.release)
	if last := r.final(ids[2]); last.State != inject.Done || last.Moved != source.size {
		t.Errorf("%+v", last)
	}
	require.Eventually(t, "nothing is left", func() bool { return names(t, dir) == "g3" })
}

// If the connection between the sites breaks, no site is blamed; a source that accepts no connections
// is. Nothing is left. A copy that does not proceed ends after its time.
func TestSourceThatDies(t *testing.T) {
	tier.Slow(t, "waits for markers")
	t.Parallel()
	source, dir := newSlowSource(t), t.TempDir()
	r := newRig(t, []challenge.Site{{Name: "A", URL: source.URL}, {Name: "B", URL: start(t, serve.Config{Dir: dir}).URL()}},
		challenge.Link{From: "A", To: "B"})
	id := r.start(0, "f", "g", source.size)
	<-source.sent
	source.CloseClientConnections()
	if last := r.final(id); last.State != inject.Failed || last.Class != storage.Reset || last.Site != "" || last.Reason == "" {
		t.Errorf("%+v", last)
	}
	r.c.Timeout = unit.Duration(2 * time.Second)
	if last := r.copy(0, "f", "g", source.size); last.State != inject.Failed || last.Class != storage.Timeout {
		t.Errorf("%+v", last)
	}
	source.Close()
	if last := r.copy(0, "f", "g", source.size); last.State != inject.Failed || last.Class != storage.Refused || last.Site != "A" {
		t.Errorf("%+v", last)
	}
	require.Eventually(t, "nothing is left", func() bool { return names(t, dir) == "" })
}

// Copies that fail because tokens ended are marked: a token whose time is over, and a token without
// a known end that was accepted before. Other refusals are not. A renewed token is used by the next
// copy.
func TestTokensThatEnd(t *testing.T) {
	var good atomic.Value
	good.Store("one")
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer(r) != good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Length", "3")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("abc"))
		}
	}))
	t.Cleanup(source.Close)
	auth := secret(t, "one")
	dest := start(t, serve.Config{Dir: t.TempDir()}).URL()
	r := newRig(t, []challenge.Site{{Name: "A", URL: source.URL, Auth: auth}, {Name: "B", URL: dest}}, challenge.Link{From: "A", To: "B"})
	if last := r.copy(0, "f", "g1", 3); last.State != inject.Done {
		t.Fatalf("%+v", last)
	}
	good.Store("two")
	if last := r.copy(0, "f", "g2", 3); last.State != inject.Failed || !last.Expired || last.Site != "A" || last.Class != storage.Denied {
		t.Errorf("a token that was accepted before: %+v", last)
	}
	requests.Write(t, "two", auth.TokenFile)
	require.Eventually(t, "the renewed token is used", func() bool {
		return r.copy(0, "f", fmt.Sprintf("g%d", r.next+1), 3).State == inject.Done
	})
	now := time.Now().Add(-2 * time.Hour)
	i, err := token.Keep(filepath.Join(t.TempDir(), "issuer.pem"), "https://issuer.example", func() time.Time { return now })
	require.NoError(t, err)
	for _, life := range []time.Duration{time.Hour, 100 * time.Hour} {
		raw, err := i.Mint(token.Grant{Subject: "test", Audience: []string{token.Any}, Scopes: []string{"storage.read:/"}, Life: life})
		require.NoError(t, err)
		late := newRig(t, []challenge.Site{{Name: "A", URL: source.URL, Auth: secret(t, raw)}, {Name: "B", URL: dest}},
			challenge.Link{From: "A", To: "B"})
		last := late.copy(0, "f", "late", 3)
		if last.State != inject.Failed || last.Expired != (life == time.Hour) || last.Class != storage.Denied ||
			strings.Contains(last.Reason, raw) {
			t.Errorf("a token of %v from 2 h ago: %+v", life, last)
		}
	}
}

// Sites that break off, report impossible numbers or repeat secrets have failed copies with a reason.
func TestHostileSites(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		says   string
	}{
		"no verdict":   {"Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: 7\nEnd\n", ""},
		"nothing":      {"", ""},
		"a secret":     {"failure: no access with Bearer topsecret here\n", "(token)"},
		"a long line":  {"failure: " + strings.Repeat("long ", 10_000) + "\n", "long"},
		"control":      {"failure: a\x1b[31mb\x00c\n", "a"},
		"too many":     {"Perf Marker\nStripe Bytes Transferred: 9223372036854775807\nEnd\nfailure: no\n", "no"},
		"fewer":        {"Perf Marker\nStripe Bytes Transferred: 90\nEnd\nPerf Marker\nStripe Bytes Transferred: 10\nEnd\nfailure: no\n", "no"},
		"not a number": {"Perf Marker\nStripe Bytes Transferred: -5\nEnd\nfailure: no\n", "no"},
	} {
		active := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(tt.answer))
		}))
		r := newRig(t, []challenge.Site{{Name: "A", URL: active.URL, Auth: secret(t, "topsecret")}, {Name: "B", URL: active.URL}},
			challenge.Link{From: "A", To: "B"})
		last := r.copy(0, "f", "g", 100)
		if last.State != inject.Failed || last.Moved > 100 || len(last.Reason) > 510 || !strings.Contains(last.Reason, tt.says) ||
			strings.Contains(last.Reason, "topsecret") || strings.ContainsAny(last.Reason, "\n\x00\x1b") || last.Reason == "" {
			t.Errorf("%s: %+v", name, last)
		}
		active.Close()
	}
}

// The reason of a failed request, which becomes a warning, has no secret that a site repeats.
func TestHealth(t *testing.T) {
	var h health
	h.answered(time.Second, nil)
	h.answered(3*time.Second, errors.New("status 403: no access with\nBearer topsecret1234"))
	got := h.take()
	if got.Requests != 2 || got.Failed != 1 || got.Latency != 2*time.Second || strings.ContainsAny(got.Reason, "\n") ||
		strings.Contains(got.Reason, "topsecret") || !strings.Contains(got.Reason, "403") {
		t.Errorf("%+v", got)
	}
	if again := h.take(); again.Requests != 0 || again.Reason != "" {
		t.Errorf("%+v", again)
	}
}

// After a kill the copies are reported as failed.
func TestResume(t *testing.T) {
	there := start(t, serve.Config{Dir: t.TempDir()}).URL()
	r := newRig(t, []challenge.Site{{Name: "A", URL: there}, {Name: "B", URL: there}}, challenge.Link{From: "A", To: "B"})
	require.NoError(t, r.in.Resume(t.Context(), []inject.Copy{{ID: 7}, {ID: 9}}))
	for _, id := range []int64{7, 9} {
		if last := r.final(id); last.State != inject.Failed || last.Class != storage.Canceled || len(r.reports(id)) != 1 {
			t.Errorf("%+v", r.reports(id))
		}
	}
}

// Many copies of many links are in flight at once, and Close ends them.
func TestManyCopies(t *testing.T) {
	tier.Slow(t, "opens many connections")
	t.Parallel()
	const links, each = 300, 3
	source := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1000}}})
	dest := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1}}})
	sites := []challenge.Site{{Name: "A", URL: source.URL()}, {Name: "B", URL: dest.URL()}}
	every := make([]challenge.Link, links)
	for i := range every {
		every[i] = challenge.Link{From: "A", To: "B"}
	}
	r := newRig(t, sites, every...)
	var copies []inject.Copy
	for i := range links * each {
		copies = append(copies, inject.Copy{ID: int64(i), Link: i % links, Source: inject.File{Path: "file000000.dat", Size: 1000},
			Dest: fmt.Sprintf("c%d", i)})
	}
	require.NoError(t, r.in.Start(t.Context(), copies))
	done := 0
	for i := range copies {
		switch last := r.final(copies[i].ID); {
		case last.State == inject.Done:
			done++
		case last.Class != storage.Busy || last.Site != "B":
			t.Fatalf("%+v", last)
		}
	}
	if h := r.in.Health(); done < 100 || h.Requests != len(copies) || h.Busy != (done < len(copies)) {
		t.Errorf("%d of %d copies, %+v", done, len(copies), h)
	}
}
