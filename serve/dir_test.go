package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestGetOfAFolder(t *testing.T) {
	dir := t.TempDir()
	big := requests.Content(1, 3<<20)
	requests.Write(t, "0123456789", dir, "ten")
	requests.Write(t, "", dir, "empty")
	requests.Write(t, big, dir, "big")
	requests.Write(t, "x", dir, hidden+"-1-1.part")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub dir/ü"), 0o755))
	s := start(t, Config{Dir: dir})
	resp, _ := do(t, s, exchange{Method: "HEAD", Path: "/ten"})
	tag, date := resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	for _, x := range []exchange{
		{Method: "GET", Path: "/ten", Code: 200, Want: "0123456789", Answer: map[string]string{"Content-Length": "10", "Accept-Ranges": "bytes",
			"Content-Type": "application/octet-stream"}},
		{Method: "GET", Path: "//ten", Code: 200, Want: "0123456789"},
		{Method: "GET", Path: "/ten?a=b", Code: 200, Want: "0123456789"},
		{Method: "GET", Path: "/empty", Code: 200, Answer: map[string]string{"Content-Length": "0"}},
		{Method: "GET", Path: "/big", Code: 200, Want: big},
		{Method: "HEAD", Path: "/big", Code: 200, Answer: map[string]string{"Content-Length": "3145728"}},
		{Method: "GET", Path: "/big", Header: map[string]string{"Range": "bytes=1000-2000000"}, Code: 206, Want: big[1000:2000001],
			Answer: map[string]string{"Content-Range": "bytes 1000-2000000/3145728"}},
		{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=2-4"}, Code: 206, Want: "234"},
		{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=-3"}, Code: 206, Want: "789"},
		{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=8-"}, Code: 206, Want: "89"},
		{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=10-"}, Code: 416,
			Answer: map[string]string{"Content-Range": "bytes */10"}},
		{Method: "GET", Path: "/ten", Header: map[string]string{"If-None-Match": tag}, Code: 304},
		{Method: "GET", Path: "/ten", Header: map[string]string{"If-Match": `"other"`}, Code: 412},
		{Method: "GET", Path: "/ten", Header: map[string]string{"If-Modified-Since": date}, Code: 304},
		{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=0-0", "If-Range": `"other"`}, Code: 200, Want: "0123456789"},
		{Method: "GET", Path: "/", Code: 200, Want: "big\nempty\nsub dir/\nten\n"},
		{Method: "GET", Path: "/sub%20dir/", Code: 200, Want: "ü/\n"},
		{Method: "GET", Path: "/none", Code: 404},
		{Method: "GET", Path: "/ten/", Code: 404},
		{Method: "GET", Path: "/ten/below", Code: 404},
		{Method: "GET", Path: "/" + hidden + "-1-1.part", Code: 404},
		{Method: "GET", Path: "/" + strings.Repeat("n", 300), Code: 414},
		{Method: "PATCH", Path: "/ten", Code: 405},
		{Method: "OPTIONS", Path: "/ten", Code: 200, Answer: map[string]string{"Dav": "1"}},
	} {
		if x.Want == "big\nempty\nsub dir/\nten\n" { // in the folder's own order
			_, got := do(t, s, x)
			for _, line := range strings.SplitAfter(x.Want, "\n") {
				if !strings.Contains(got, line) || len(got) != len(x.Want) {
					t.Errorf("listing %q, want the lines of %q", got, x.Want)
				}
			}
			continue
		}
		check(t, s, x)
	}
}

func TestMultipleRanges(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, "0123456789", dir, "ten")
	s := start(t, Config{Dir: dir})
	resp, body := do(t, s, exchange{Method: "GET", Path: "/ten", Header: map[string]string{"Range": "bytes=0-1,5-6"}})
	if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, part := range []string{"bytes 0-1/10", "\r\n\r\n01\r\n", "bytes 5-6/10", "\r\n\r\n56\r\n"} {
		if !strings.Contains(body, part) {
			t.Errorf("no %q in %q", part, body)
		}
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir, Sync: true})
	big := requests.Content(9, 2<<20)
	to := func(p string, more ...string) map[string]string {
		h := map[string]string{"Destination": s.URL() + p}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, x := range []exchange{
		{Method: "PUT", Path: "/a", Body: "one", Code: 201},
		{Method: "PUT", Path: "/a", Body: "two", Code: 204},
		{Method: "GET", Path: "/a", Code: 200, Want: "two"},
		{Method: "PUT", Path: "/big", Body: big, Code: 201},
		{Method: "GET", Path: "/big", Code: 200, Want: big},
		{Method: "PUT", Path: "/a", Body: "x", Header: map[string]string{"If-None-Match": "*"}, Code: 412},
		{Method: "PUT", Path: "/a", Body: "x", Header: map[string]string{"If-Match": `"no"`}, Code: 412},
		{Method: "PUT", Path: "/nowhere", Body: "x", Header: map[string]string{"If-Match": `*`}, Code: 412},
		{Method: "PUT", Path: "/a", Body: "x", Header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, Code: 412},
		{Method: "PUT", Path: "/a", Body: "x", Header: map[string]string{"Content-Range": "bytes 0-0/3"}, Code: 400},
		{Method: "PUT", Path: "/no/a", Body: "x", Code: 409},
		{Method: "PUT", Path: "/a/b", Body: "x", Code: 409},
		{Method: "PUT", Path: "/d/", Body: "x", Code: 405},
		{Method: "PUT", Path: "/" + hidden + "x", Body: "x", Code: 404},
		{Method: "MKCOL", Path: "/d", Code: 201},
		{Method: "MKCOL", Path: "/d/", Code: 405},
		{Method: "MKCOL", Path: "/a", Code: 405},
		{Method: "MKCOL", Path: "/x/y", Code: 409},
		{Method: "MKCOL", Path: "/a/y", Code: 409},
		{Method: "MKCOL", Path: "/e", Body: "<x/>", Code: 415},
		{Method: "PUT", Path: "/d", Body: "x", Code: 405},
		{Method: "MOVE", Path: "/a", Header: to("/d/a"), Code: 201},
		{Method: "GET", Path: "/a", Code: 404},
		{Method: "PUT", Path: "/b", Body: "bee", Code: 201},
		{Method: "MOVE", Path: "/b", Header: to("/d/a", "Overwrite", "F"), Code: 412},
		{Method: "GET", Path: "/d/a", Code: 200, Want: "two"},
		{Method: "MOVE", Path: "/b", Header: to("/d/a", "Overwrite", "T"), Code: 204},
		{Method: "GET", Path: "/d/a", Code: 200, Want: "bee"},
		{Method: "GET", Path: "/b", Code: 404},
		{Method: "MOVE", Path: "/none", Header: to("/x"), Code: 404},
		{Method: "MOVE", Path: "/d/a", Header: to("/no/x"), Code: 409},
		{Method: "MOVE", Path: "/d/a", Header: to("/d/a"), Code: 403},
		{Method: "MOVE", Path: "/d", Header: to("/d/e"), Code: 409},
		{Method: "MOVE", Path: "/d/a", Header: to("/../x"), Code: 403},
		{Method: "MOVE", Path: "/d/a", Header: to("/%2e%2e/x"), Code: 403},
		{Method: "MOVE", Path: "/d/a", Header: map[string]string{"Destination": "http://elsewhere.example/x"}, Code: 502},
		{Method: "MOVE", Path: "/d/a", Code: 400},
		{Method: "MOVE", Path: "/d/a", Header: to("/x", "Overwrite", "maybe"), Code: 400},
		{Method: "MOVE", Path: "/d/a", Header: map[string]string{"Destination": "/c"}, Code: 201},
		{Method: "COPY", Path: "/c", Header: to("/c2"), Code: 201},
		{Method: "COPY", Path: "/big", Header: to("/c2", "Overwrite", "F"), Code: 412},
		{Method: "GET", Path: "/c2", Code: 200, Want: "bee"},
		{Method: "COPY", Path: "/big", Header: to("/c2"), Code: 204},
		{Method: "GET", Path: "/c2", Code: 200, Want: big},
		{Method: "COPY", Path: "/d", Header: to("/d2"), Code: 403},
		{Method: "PUT", Path: "/d/last", Body: "1", Code: 201},
		{Method: "DELETE", Path: "/d", Code: 409},
		{Method: "DELETE", Path: "/d/last/", Code: 404},
		{Method: "DELETE", Path: "/d/last", Code: 204},
		{Method: "DELETE", Path: "/d/", Code: 204},
		{Method: "DELETE", Path: "/d", Code: 404},
		{Method: "DELETE", Path: "/", Code: 403},
		{Method: "PUT", Path: "/sum", Body: "abc", Header: map[string]string{"Digest": "adler32=024d0127", "Want-Digest": "adler32"}, Code: 201,
			Answer: map[string]string{"Digest": "adler32=024d0127"}},
		{Method: "PUT", Path: "/sum", Body: "abd", Header: map[string]string{"Digest": "adler32=024d0127"}, Code: 400},
		{Method: "GET", Path: "/sum", Code: 200, Want: "abc"},
	} {
		check(t, s, x)
	}
	if diff := cmp.Diff("big c c2 sum", requests.Names(t, dir)); diff != "" {
		t.Errorf("left in the folder (-want +got):\n%s", diff)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, "x", dir, "x")
	s := start(t, Config{Dir: dir, ReadOnly: true})
	for _, m := range []string{"PUT", "DELETE", "MKCOL", "MOVE", "COPY"} {
		check(t, s, exchange{Method: m, Path: "/x", Code: 405, Answer: map[string]string{"Allow": "OPTIONS, GET, HEAD, PROPFIND"}})
	}
	check(t, s, exchange{Method: "GET", Path: "/x", Code: 200, Want: "x"})
}

// TestNoWayOut tries to reach a secret outside the folder.
func TestNoWayOut(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	secret := requests.Write(t, "secret", top, "secret")
	requests.Write(t, "inside", dir, "inside")
	for link, target := range map[string]string{"absolute": secret, "relative": "../secret", "up": "..", "sub/far": "../../secret",
		"fine": "inside", "loop": "loop", "dangling": "nothing"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{Method: "GET", Path: "/fine", Code: 200, Want: "inside"})
	refused := []string{"/../secret", "/%2e%2e/secret", "/%2E%2E%2Fsecret", "/sub/../../secret", "/sub/%2e%2e/%2e%2e/secret",
		"/..%5csecret", `/..\secret`, "/up/secret", "/inside%00", "/%00", secret, "/" + secret, "/./secret"}
	for _, p := range refused {
		for _, method := range []string{"GET", "HEAD", "PROPFIND", "PUT", "DELETE", "MKCOL", "MOVE", "COPY"} {
			notServed(t, s, method, p)
		}
	}
	for _, p := range []string{"/absolute", "/relative", "/sub/far", "/dangling", "/loop", "/up", "/.../secret", "/%252e%252e/secret",
		"/..;/secret"} {
		for _, method := range []string{"GET", "HEAD", "PROPFIND", "MKCOL", "COPY"} {
			notServed(t, s, method, p)
		}
	}
	// A PUT replaces a link instead of following it.
	for _, p := range []string{"/absolute", "/relative", "/sub/far", "/dangling"} {
		check(t, s, exchange{Method: "PUT", Path: p, Body: "mine", Code: 204})
		check(t, s, exchange{Method: "GET", Path: p, Code: 200, Want: "mine"})
	}
	if got := requests.Read(t, secret); got != "secret" {
		t.Errorf("the secret became %q", got)
	}
	if got := requests.Names(t, top); got != "secret served" {
		t.Errorf("outside the folder there is %s", got)
	}
}

// notServed checks that a request is refused and that the response contains no secret.
func notServed(t *testing.T, s *Server, method, path string) {
	t.Helper()
	resp, body := do(t, s, exchange{Method: method, Path: path, Header: map[string]string{"Depth": "0", "Destination": "/moved"}})
	if resp.StatusCode < 400 || strings.Contains(body, "secret\n") || body == "secret" {
		t.Errorf("%s %s: %d %.100q", method, path, resp.StatusCode, body)
	}
}

func TestConcurrentPutsOfOneName(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			resp, _ := do(t, s, exchange{Method: "PUT", Path: "/same", Body: requests.Content(uint64(i), 300_000+i)})
			if resp.StatusCode != 201 && resp.StatusCode != 204 {
				t.Errorf("PUT: %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	got := requests.Read(t, dir, "same")
	if i := len(got) - 300_000; i < 0 || i > 15 || got != requests.Content(uint64(i), len(got)) {
		t.Errorf("%d bytes that are no file that was put", len(got))
	}
	if got := requests.Names(t, dir); got != "same" {
		t.Errorf("the folder has %s", got)
	}
}

func TestExclusivePutsOfOneName(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir()})
	var mu sync.Mutex
	codes := map[int]int{}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			resp, _ := do(t, s, exchange{Method: "PUT", Path: "/same", Body: fmt.Sprint(i), Header: map[string]string{"If-None-Match": "*"}})
			mu.Lock()
			defer mu.Unlock()
			codes[resp.StatusCode]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{201: 1, 412: 15}, codes); diff != "" {
		t.Error(diff)
	}
}
