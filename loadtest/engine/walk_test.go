package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/local"
	"weir/storage/webdav"
)

// prepared returns the paths that Prepare finds, sorted, and its warnings.
func prepared(t *testing.T, d storage.Driver, target string, w workload.Work, f scenario.Files, listed ...workload.File) (paths,
	warnings []string, err error) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	s, err := d.Open(t.Context(), storage.Target{URL: u})
	require.NoError(t, err)
	defer s.Close()
	sink := &notes{}
	files, err := Prepare(t.Context(), Config{Service: s, Sink: sink, Plan: &scenario.Plan{Work: w, Target: target, Files: f}}, listed, nil)
	for _, one := range files {
		paths = append(paths, one.Path)
	}
	slices.Sort(paths)
	for _, e := range sink.events {
		warnings = append(warnings, e.Text)
	}
	return paths, warnings, err
}

// page serves files of 1000 bytes below a folder, with pages that link folders without a slash and
// redirect them to the path with a slash. The denied file is listed, and refused.
func page(t *testing.T, denied string, files ...string) string {
	t.Helper()
	folders := map[string][]string{}
	for _, file := range files {
		parts := strings.Split(file, "/")
		for i := range parts {
			above := "/" + strings.Join(parts[:i], "/")
			if !slices.Contains(folders[above], parts[i]) {
				folders[above] = append(folders[above], parts[i])
			}
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := "/" + strings.Trim(r.URL.Path, "/")
		names, folder := folders[path]
		switch {
		case r.Method == "PROPFIND":
			w.WriteHeader(http.StatusNotImplemented)
		case denied != "" && strings.Contains(path, denied):
			w.WriteHeader(http.StatusForbidden)
		case folder && !strings.HasSuffix(r.URL.Path, "/"):
			w.Header()["Location"] = []string{path + "/"}
			w.WriteHeader(http.StatusFound)
		case folder:
			w.Header().Set("Content-Type", "text/html")
			for _, name := range append([]string{".."}, names...) {
				fmt.Fprintf(w, "<a href=%q>%s</a>\n", name, name)
			}
		case slices.Contains(files, path[1:]):
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(make([]byte, 1000)) // HEAD has no body
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Folders that a page links without a slash are listed, and a list of files that contains a folder
// is refused.
func TestFoldersWithoutSlashes(t *testing.T) {
	t.Parallel()
	want := []string{"100%/f02.bin", "f01.bin", "sub/deep/f03.bin", "sub/f00.bin"}
	target := page(t, "", want...)
	for _, w := range []workload.Work{whole, inParts} {
		got, warnings, err := prepared(t, webdav.Driver(), target, w, scenario.Files{Listing: true})
		if err != nil || !slices.Equal(got, want) || len(warnings) > 0 {
			t.Errorf("%v: %q, %q, %v", w.Part, got, warnings, err)
		}
	}
	got, _, err := prepared(t, webdav.Driver(), target, whole, scenario.Files{Listing: true, Include: []string{"sub/*.bin", "f*1.bin"}})
	if err != nil || !slices.Equal(got, []string{"f01.bin", "sub/f00.bin"}) {
		t.Errorf("some: %q, %v", got, err)
	}
	for _, size := range []int64{-1, 1000} {
		_, _, err = prepared(t, webdav.Driver(), target, inParts, scenario.Files{List: "list"}, workload.File{Path: "f01.bin", Size: 1000},
			workload.File{Path: "sub", Size: size})
		if !errors.Is(err, syscall.EISDIR) {
			t.Errorf("a list with a folder and the size %d: %v", size, err)
		}
	}
}

// Files that may not be read are left out with a warning; if no other file is left, it is an error.
func TestDeniedFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	target := page(t, "secret", "a", "b", "secret", "secrets/x", "sub/secret1")
	got, warnings, err := prepared(t, webdav.Driver(), target, inParts, scenario.Files{Listing: true})
	if err != nil || !slices.Equal(got, []string{"a", "b"}) || len(warnings) != 1 {
		t.Errorf("a listing: %q, %q, %v", got, warnings, err)
	}
	list := []workload.File{{Path: "a", Size: -1}, {Path: "secret", Size: -1}}
	got, warnings, err = prepared(t, webdav.Driver(), target, inParts, scenario.Files{List: "list"}, list...)
	if err != nil || !slices.Equal(got, []string{"a"}) || len(warnings) != 1 {
		t.Errorf("a list: %q, %q, %v", got, warnings, err)
	}
	_, _, err = prepared(t, webdav.Driver(), target, inParts, scenario.Files{List: "list"}, workload.File{Path: "secret", Size: -1})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("all denied: %v", err)
	}
	_, _, err = prepared(t, webdav.Driver(), page(t, "", "a", "b"), inParts, scenario.Files{List: "list"}, workload.File{Path: "a", Size: -1},
		workload.File{Path: "none", Size: -1})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list with a file that is not there: %v", err)
	}
}

// A folder that may not be listed is left out with a warning, as are links that lead nowhere.
func TestClosedFoldersAreLeftOut(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`[{"name":"a","size":1},{"name":"closed","type":"directory"},{"name":"link","is_symlink":true},{"name":"x/y"}]`))
		case "/closed/":
			w.WriteHeader(http.StatusForbidden)
		case "/a":
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	got, warnings, err := prepared(t, webdav.Driver(), s.URL, workload.Work{Kind: "read", Chunk: 10}, scenario.Files{Listing: true})
	if err != nil || !slices.Equal(got, []string{"a"}) || len(warnings) != 3 {
		t.Errorf("%q, %q, %v", got, warnings, err)
	}
}

// Patterns choose files of lists and listings, and a sample is the same for the same seed.
func TestSelectedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var list []workload.File
	for i := range 100 {
		for _, ext := range []string{"root", "txt"} {
			name := fmt.Sprintf("sub/f%02d.%s", i, ext)
			list = append(list, workload.File{Path: name})
			path := filepath.Join(dir, name)
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)))
		}
	}
	listing := scenario.Files{Listing: true, Include: []string{"*.root"}, Exclude: []string{"f1*"}, Sample: 10}
	found, _, err := prepared(t, local.Driver(), "file://"+dir, whole, listing)
	require.NoError(t, err)
	listing.Listing, listing.List = false, "list"
	slices.Reverse(list)
	named, _, err := prepared(t, local.Driver(), "file://"+dir, whole, listing, list...)
	if err != nil || len(found) != 10 || !slices.Equal(found, named) {
		t.Errorf("%q, of a list %q, %v", found, named, err)
	}
	for _, path := range found {
		if !strings.HasSuffix(path, ".root") || strings.HasPrefix(path, "sub/f1") {
			t.Errorf("%q", path)
		}
	}
	if _, _, err := prepared(t, local.Driver(), "file://"+dir, whole, scenario.Files{Listing: true, Include: []string{"*.dat"}}); err == nil {
		t.Error("no file matches, and no error says so")
	}
}
