package diagnose_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/diagnose"
	"weir/internal/cause"
	"weir/internal/require"
	"weir/serve"
	"weir/storage"
	"weir/storage/all"
)

// served starts weir's server and returns the URL of its folder.
func served(t *testing.T, c serve.Config) (base, dir string) {
	t.Helper()
	c.Dir, c.Listen = t.TempDir(), "127.0.0.1:0"
	s, err := serve.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := s.Listen(ctx)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-ended; _ = s.Close() })
	return s.URL(), c.Dir
}

// diagnosed makes a diagnosis of at most three seconds.
func diagnosed(t *testing.T, target string, o diagnose.Options) (*diagnose.Report, error) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	o.URL, o.Driver = u, storage.DriverNamed(all.Drivers(), storage.WebDAV)
	o.Time = 3 * time.Second
	return diagnose.Run(t.Context(), o)
}

// A diagnosis stays within its budget, and its report has the probes as text, as a page and in JSON.
func TestRead(t *testing.T) {
	t.Parallel()
	base, dir := served(t, serve.Config{})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 8<<20), 0o600))
	const budget = 10 << 20
	r, err := diagnosed(t, base+"/file", diagnose.Options{Bytes: budget})
	require.NoError(t, err)
	if r.Spent.Bytes == 0 || r.Spent.Bytes > budget || r.Spent.Requests > 150 {
		t.Errorf("spent %+v", r.Spent)
	}
	if r.Seen.Size != 8<<20 || r.Seen.Setup.Connect <= 0 || len(r.Seen.Fresh) == 0 || r.Seen.Idle.Request <= 0 {
		t.Errorf("%+v", r.Seen)
	}
	var text, page bytes.Buffer
	require.NoError(t, r.Text(&text, 80))
	require.NoError(t, r.Page(&page))
	for _, s := range r.Steps {
		if !strings.Contains(text.String(), s.Probe) || !strings.Contains(page.String(), s.Probe) {
			t.Errorf("no probe %q", s.Probe)
		}
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// A write leaves nothing behind and touches nothing of others.
func TestWrite(t *testing.T) {
	t.Parallel()
	base, dir := served(t, serve.Config{})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f0"), []byte("foreign"), 0o600))
	r, err := diagnosed(t, base+"/", diagnose.Options{Bytes: 5 << 20, Write: true})
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "weir-*"))
	require.NoError(t, err)
	foreign, err := os.ReadFile(filepath.Join(dir, "f0"))
	if len(left) > 0 || string(foreign) != "foreign" || err != nil || r.Spent.Bytes == 0 {
		t.Errorf("%v, %q, %v, %+v", left, foreign, err, r.Spent)
	}
}

// A missing file and a folder are errors, not causes.
func TestMistakes(t *testing.T) {
	t.Parallel()
	base, _ := served(t, serve.Config{})
	for _, path := range []string{"/missing", "/"} {
		if r, err := diagnosed(t, base+path, diagnose.Options{}); err == nil {
			t.Errorf("%s: %+v", path, r.Verdict)
		}
	}
}

// Hostile servers end a probe, within the budget of bytes and time.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<50))
			for r.Method == http.MethodGet {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
		"shorter than said": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte("x")) // the client sees it
		},
		"another range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 7-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("abc")) // the client sees it
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(answer)
			t.Cleanup(s.CloseClientConnections)
			const budget = 20 << 20
			r, err := diagnosed(t, s.URL+"/file", diagnose.Options{Bytes: budget})
			if err == nil && r.Verdict.Certainty == cause.Certain && name != "silent" {
				t.Errorf("%+v", r.Verdict)
			}
			if err == nil && r.Spent.Bytes > 2*budget {
				t.Errorf("spent %+v", r.Spent)
			}
		})
	}
}
