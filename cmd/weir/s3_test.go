package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weir/lab"
	"weir/lab/labtest"
)

// A run on S3 reads and writes objects, verifies reads and writes by their ETags, and leaves no
// objects.
func TestRunOnS3(t *testing.T) {
	t.Parallel()
	for _, server := range labtest.S3Servers() {
		t.Run(server, func(t *testing.T) { t.Parallel(); runOnS3(t, server) })
	}
}

func runOnS3(t *testing.T, server string) {
	t.Helper()
	s := labtest.Start(t, lab.S3Config{Server: server})
	secret := writeTemp(t, s.Settings[lab.S3Secret]+"\n")
	f := measureFor(t, "--target", s.URL+"/test", "--clients", "4", "--duration", "2s", "--set", "load.ramp=100ms",
		"--set", "load.warmup=500ms", "--set", "auth={method: s3, user: "+s.Settings[lab.S3Key]+", password_file: "+secret+"}",
		"--set", "files.make={count: 20, size: 64KiB}",
		"--set", "workload={kind: mix, mix: {read: 5, write: 3, stat: 2, list: 1, mkdir: 1, remove: 2, checksum: 1}, size: 64KiB, "+
			"verify: 100%, think: 5ms}")
	for _, c := range f.Curve {
		if c.Errors > 0 || c.Done < 4 || c.Verified == 0 || c.Unverified > 0 {
			t.Errorf("%d done, %d errors %v, %d verified, %d unverifiable", c.Done, c.Errors, c.ErrorsBy, c.Verified, c.Unverified)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.Data, "test", "weir-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A markerless is an S3 service whose listings omit the marker of the listed folder, like listings
// of s3proxy. The marker is found only by its name, and by HEAD only if heads is set.
type markerless struct {
	mu    sync.Mutex
	keys  map[string]int
	made  int // markers
	heads bool
}

func (m *markerless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	size, there := m.keys[key]
	switch {
	case r.URL.Query().Has("list-type"):
		prefix, seen := r.URL.Query().Get("prefix"), map[string]bool{}
		fmt.Fprint(w, "<ListBucketResult>")
		for k, size := range m.keys {
			below, ok := strings.CutPrefix(k, prefix)
			if folder, _, deep := strings.Cut(below, "/"); ok && deep && !seen[folder] {
				seen[folder] = true
				fmt.Fprintf(w, "<CommonPrefixes><Prefix>%s%s/</Prefix></CommonPrefixes>", prefix, folder)
			} else if ok && !deep && below != "" {
				fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", k, size)
			}
		}
		fmt.Fprint(w, "</ListBucketResult>")
	case r.Method == http.MethodPut:
		if strings.HasSuffix(key, "/") {
			m.made++
		}
		n, _ := io.Copy(io.Discard, r.Body)
		m.keys[key] = int(n)
	case r.Method == http.MethodDelete:
		delete(m.keys, key)
		w.WriteHeader(http.StatusNoContent)
	case !there || strings.HasSuffix(key, "/") && !m.heads:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Length", strconv.Itoa(size))
		if r.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, size))
		}
	}
}

// Folders of a run are removed even if listings omit their markers.
func TestMarkersThatNoListingHas(t *testing.T) {
	t.Parallel()
	for _, heads := range []bool{true, false} {
		t.Run(fmt.Sprintf("HEAD %v", heads), func(t *testing.T) {
			t.Parallel()
			m := &markerless{keys: map[string]int{"f": 100, "empty/": 0}, heads: heads}
			s := httptest.NewServer(m)
			defer s.Close()
			args := []string{"run", "--quiet", "--out", filepath.Join(t.TempDir(), "run"), "--target", s.URL + "/bucket", "--clients", "2",
				"--duration", "1s", "--set", "load.ramp=50ms", "--set", "load.warmup=100ms",
				"--set", "auth={method: s3, user: x, password_file: " + writeTemp(t, "x\n") + "}",
				"--set", "workload={kind: mix, mix: {mkdir: 3, write: 1, remove: 1, stat: 1}, size: 1KiB, think: 10ms}"}
			if !heads { // then an empty folder has the same listing as a missing folder
				args = append(args, "--set", "files.list="+writeTemp(t, "f 100\n"))
			}
			code, said := weir(t, args...)
			m.mu.Lock()
			defer m.mu.Unlock()
			if delete(m.keys, "f"); len(m.keys) != 1 || m.made < 3 || code != exitFine && code != exitInvalid {
				t.Errorf("exit code %d, %d folders made, left: %v\n%s", code, m.made, m.keys, said)
			}
		})
	}
}
