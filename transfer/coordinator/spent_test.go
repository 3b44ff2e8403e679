package coordinator

import (
	"encoding/base64"
	"encoding/pem"
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

	"weir/internal/require"
	"weir/internal/tape"
	"weir/internal/tpc"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer/access"
	"weir/transfer/sites"
)

// A tokenServer serves a folder to requests with any token, except for some refused tokens. A copy
// to it writes five bytes, from any source. Its tape system refuses all tokens.
type tokenServer struct {
	dir, url, pem string
	onCopy        func() // after a copy

	mu      sync.Mutex
	refused []string
	asked   int
}

func startTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	s := &tokenServer{dir: t.TempDir()}
	to, err := url.Parse(servetest.Start(t, serve.Config{Dir: s.dir}))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		no := r.Method != http.MethodOptions && (raw == "" || slices.Contains(s.refused, raw))
		if r.Method != http.MethodOptions {
			s.asked++
		}
		s.mu.Unlock()
		switch {
		case r.URL.Path == tape.WellKnown:
			answerJSON(w, map[string]any{"sitename": "x", "endpoints": []any{map[string]any{"uri": s.url + "/api/v1/", "version": "v1"}}})
		case no, strings.HasPrefix(r.URL.Path, "/api/"):
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == "COPY":
			if err := os.WriteFile(filepath.Join(s.dir, r.URL.Path), []byte("hello"), 0o600); err != nil {
				t.Error(err)
			}
			if s.onCopy != nil {
				s.onCopy()
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte("success: Created\n"))
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	s.pem = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(s.pem, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return s
}

// refuse makes the server refuse exactly these tokens.
func (s *tokenServer) refuse(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = tokens
}

func (s *tokenServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// expiring returns a token that expires after a time, which may have passed. With 0 it does not
// expire. Its signature is invalid.
func expiring(name string, after time.Duration) string {
	if after == 0 {
		return "macaroon-" + name
	}
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256"}`)) + "." + part(fmt.Appendf(nil, `{"iss":"https://iam.example.org/","sub":%q,"exp":%d}`, name,
		time.Now().Add(after).Unix())) + "." + part(make([]byte, 64))
}

// A file whose token has expired and is not renewed fails when an endpoint refuses the token,
// without further waiting: before the copy, after it, at each end. Its temporary file is removed as
// soon as the endpoint allows that.
func TestSpentTokensFailAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read, write time.Duration // until the tokens expire; 0: never
		refused     string        // token that is refused before the copy
		after       string        // token that is refused after the copy
		asks        bool          // requests are sent
		left        int64         // temporary files
	}{
		"of the destination, after the copy":  {0, -time.Millisecond, "", "w", true, 1},
		"of the destination, before the copy": {0, -time.Second, "w", "", true, 0},
		"of the source":                       {-time.Second, 0, "r", "", true, 0},
		"of the destination, an hour ago":     {0, -time.Hour, "", "", false, 0},
		"of the source, an hour ago":          {-time.Hour, 0, "", "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startTokenServer(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, "f"), []byte("hello"), 0o600))
			d := startTokenServer(t)
			read, write := expiring("r", c.read), expiring("w", c.write)
			of := map[string][]string{"r": {read}, "w": {write}}
			s.refuse(of[c.refused]...)
			d.refuse(of[c.refused]...)
			d.onCopy = func() { d.refuse(of[c.after]...) }
			h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, SiteCA: s.pem})
			u := h.ftsUser("ada", access.MaySubmit)
			j := u.ended(u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"filesize":5,"source_tokens":[%q],
				"destination_tokens":[%q]}],"params":{"unmanaged_tokens":true,"overwrite":true}}`, s.url+"/f", d.url+"/g", read, write)))
			if j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "the token of https://iam.example.org/ expired") {
				t.Errorf("%s: %+v", j.State, j.Files)
			}
			if asked := s.requests()+d.requests() > 0; asked != c.asks {
				t.Errorf("requests with tokens: %v", asked)
			}
			if n := h.leftovers(); n != c.left {
				t.Errorf("%d temporary files are looked for, want %d", n, c.left)
			}
			parts := func() int {
				all, err := filepath.Glob(filepath.Join(d.dir, ".weir*"))
				require.NoError(t, err)
				return len(all)
			}
			if c.left == 0 {
				return
			}
			if parts() != 1 {
				t.Errorf("%d temporary files, which the endpoint does not allow to remove", parts())
			}
			d.refuse()
			require.NoError(t, h.db.Exec(t.Context(), "UPDATE leftover SET due = 0"))
			require.NoError(t, h.copier.SweepSite(t.Context(), siteOfURL(t, d.url)))
			if parts() != 0 {
				t.Error("the temporary file is there")
			}
		})
	}
}

// If the token of a file has expired and is not renewed, its staging or archiving fails before the
// time limit of its job.
func TestSpentTokensOfTape(t *testing.T) {
	t.Parallel()
	for params, c := range map[string]struct {
		read, write time.Duration // as above
		reason      string
	}{
		`"bring_online":3600`:    {-time.Second, 0, "STAGING [95]"},
		`"archive_timeout":3600`: {0, -time.Second, "ARCHIVING [95]"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := startTokenServer(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, "f"), []byte("hello"), 0o600))
			d := startTokenServer(t)
			h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, SiteCA: s.pem})
			u := h.ftsUser("ada", access.MaySubmit)
			j := u.ended(u.submit(fmt.Sprintf(`{"files":[{"sources":[%q],"destinations":[%q],"filesize":5,"source_tokens":[%q],
				"destination_tokens":[%q]}],"params":{"unmanaged_tokens":true,%s}}`, s.url+"/f", d.url+"/g", expiring("r", c.read), expiring("w", c.write),
				params)))
			if reason := j.Files[0].Reason; j.State != "FAILED" || !strings.HasPrefix(reason, c.reason) || !strings.Contains(reason, "expired") {
				t.Errorf("%s: %+v", j.State, j.Files)
			}
		})
	}
}

// siteOfURL returns the name of the site for the endpoint of a URL.
func siteOfURL(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return sites.NameOf(u)
}

// If the token of one source has expired, a source with a valid token is used.
func TestSpentTokenOfOneSource(t *testing.T) {
	t.Parallel()
	a, b, d := startTokenServer(t), startTokenServer(t), startTokenServer(t)
	for _, s := range []*tokenServer{a, b} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "f"), []byte("hello"), 0o600))
	}
	spent := expiring("r", -time.Hour)
	a.refuse(spent)
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, SiteCA: a.pem})
	u := h.ftsUser("ada", access.MaySubmit)
	j := u.ended(u.submit(fmt.Sprintf(`{"files":[{"sources":[%q,%q],"destinations":[%q],"filesize":5,"source_tokens":[%q,"good"],
		"destination_tokens":["w"],"selection_strategy":"orderly"}],"params":{"unmanaged_tokens":true,"retry_delay":1}}`, a.url+"/f",
		b.url+"/f", d.url+"/g", spent)))
	if j.State != "FINISHED" || a.requests() == 0 {
		t.Errorf("%s: %+v", j.State, j.Files)
	}
}
