package engine

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/webdav"
)

// listingOf returns the files that Prepare finds at target for work.
func listingOf(t *testing.T, target string, w workload.Work) ([]workload.File, error) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	s, err := webdav.Driver().Open(t.Context(), storage.Target{URL: u})
	require.NoError(t, err)
	defer s.Close()
	return Prepare(t.Context(), Config{Service: s, Plan: &scenario.Plan{Work: w, Target: target, Files: scenario.Files{Listing: true}}}, nil,
		nil)
}

// plant makes files with names that are difficult for listings, and returns their sizes.
func plant(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files := map[string]int64{
		"a.root": 123_456, "b c.dat": 1, "per%cent#?.dat": 2000, "amp&<x>.dat": 3, `quo"te.dat`: 4, "über.dat": 5, "plus+.dat": 6, "..two": 7,
		"semi;colon.dat": 8, "a:b.dat": 9, strings.Repeat("long", 40): 10, "%2e%2e": 11, "sub dir/deep/f": 12_345, "sub dir/%41": 0,
	}
	for name, size := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, size), 0o644)))
	}
	return files
}

// Files are found, with their real sizes, at servers without PROPFIND.
func TestListingsForBrowsers(t *testing.T) {
	found := func(t *testing.T, dir, target string, hides bool) {
		t.Helper()
		want := plant(t, dir)
		if hides {
			delete(want, "..two")
		}
		files, err := listingOf(t, target, inParts)
		require.NoError(t, err)
		got := map[string]int64{}
		for _, f := range files {
			got[f.Path] = f.Size
		}
		for name, size := range want {
			if s, ok := got[name]; !ok || s != size {
				t.Errorf("%q: %d bytes (found: %v), want %d", name, s, ok, size)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("too many: %v", got)
		}
		files, err = listingOf(t, target+"/a.root", inParts)
		if err != nil || len(files) != 1 || files[0] != (workload.File{Size: 123_456}) {
			t.Errorf("a file as the target: %v, %v", files, err)
		}
		_, err = listingOf(t, target+"/missing", inParts)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing folder as the target: %v", err)
		}
	}
	for _, server := range labtest.ListingServers() {
		t.Run(server, func(t *testing.T) {
			s := labtest.Start(t, lab.FolderConfig{Server: server})
			found(t, s.Data, s.URL, server == "lighttpd")
		})
	}
	for _, format := range []string{"json", "html"} {
		t.Run("nginx "+format, func(t *testing.T) {
			s := labtest.Start(t, lab.NginxConfig{Extra: "location /data/x { autoindex on; autoindex_exact_size off; autoindex_format " +
				format + "; }"})
			found(t, filepath.Join(s.Data, "x"), s.URL+"/x", true)
		})
	}
}

// A page that is no listing is reported as such, whichever form it has.
func TestNoListings(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{Extra: `
		location /data/off { autoindex off; }
		location /data/page/ { default_type text/html; return 200 '<a href="login">log in</a>'; }
		location /data/page/login { return 404; }
		location /data/text/ { default_type text/plain; return 200 'hello'; }
		location /data/away { if ($host = 127.0.0.1) { return 302 http://localhost:$server_port$request_uri; } default_type text/html; return 200 "<a href=x>"; }
		location = /data/login/ { return 302 /data/; }
		location /data/empty { autoindex on; autoindex_format html; }`})
	for _, dir := range []string{"off", "empty"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.Data, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Data, "a.json"), []byte(`{"not": "a listing"}`), 0o644))
	for path, want := range map[string]error{
		"off": storage.ErrNoListing, "page": storage.ErrNoListing, "text": storage.ErrNoListing, "empty": ErrNoFiles,
		"away": storage.ErrRedirected, "login": storage.ErrRedirected,
	} {
		if _, err := listingOf(t, s.URL+"/"+path, whole); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}
