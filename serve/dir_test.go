package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGetOfAFolder(t *testing.T) {
	dir := t.TempDir()
	big := made(1, 3<<20)
	write(t, "0123456789", dir, "ten")
	write(t, "", dir, "empty")
	write(t, big, dir, "big")
	write(t, "x", dir, hidden+"-1-1.part")
	if err := os.MkdirAll(filepath.Join(dir, "sub dir/ü"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Dir: dir})
	resp, _ := do(t, s, exchange{method: "HEAD", path: "/ten"})
	tag, date := resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	for _, x := range []exchange{
		{method: "GET", path: "/ten", code: 200, want: "0123456789", answer: map[string]string{"Content-Length": "10", "Accept-Ranges": "bytes",
			"Content-Type": "application/octet-stream"}},
		{method: "GET", path: "//ten", code: 200, want: "0123456789"},
		{method: "GET", path: "/ten?a=b", code: 200, want: "0123456789"},
		{method: "GET", path: "/empty", code: 200, answer: map[string]string{"Content-Length": "0"}},
		{method: "GET", path: "/big", code: 200, want: big},
		{method: "HEAD", path: "/big", code: 200, answer: map[string]string{"Content-Length": "3145728"}},
		{method: "GET", path: "/big", header: map[string]string{"Range": "bytes=1000-2000000"}, code: 206, want: big[1000:2000001],
			answer: map[string]string{"Content-Range": "bytes 1000-2000000/3145728"}},
		{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=2-4"}, code: 206, want: "234"},
		{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=-3"}, code: 206, want: "789"},
		{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=8-"}, code: 206, want: "89"},
		{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=10-"}, code: 416,
			answer: map[string]string{"Content-Range": "bytes */10"}},
		{method: "GET", path: "/ten", header: map[string]string{"If-None-Match": tag}, code: 304},
		{method: "GET", path: "/ten", header: map[string]string{"If-Match": `"other"`}, code: 412},
		{method: "GET", path: "/ten", header: map[string]string{"If-Modified-Since": date}, code: 304},
		{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=0-0", "If-Range": `"other"`}, code: 200, want: "0123456789"},
		{method: "GET", path: "/", code: 200, want: "big\nempty\nsub dir/\nten\n"},
		{method: "GET", path: "/sub%20dir/", code: 200, want: "ü/\n"},
		{method: "GET", path: "/none", code: 404},
		{method: "GET", path: "/ten/", code: 404},
		{method: "GET", path: "/ten/below", code: 404},
		{method: "GET", path: "/" + hidden + "-1-1.part", code: 404},
		{method: "GET", path: "/" + strings.Repeat("n", 300), code: 414},
		{method: "PATCH", path: "/ten", code: 405},
		{method: "OPTIONS", path: "/ten", code: 200, answer: map[string]string{"Dav": "1"}},
	} {
		if x.want == "big\nempty\nsub dir/\nten\n" { // in the folder's own order
			_, got := do(t, s, x)
			for _, line := range strings.SplitAfter(x.want, "\n") {
				if !strings.Contains(got, line) || len(got) != len(x.want) {
					t.Errorf("listing %q, want the lines of %q", got, x.want)
				}
			}
			continue
		}
		check(t, s, x)
	}
}

func TestMultipleRanges(t *testing.T) {
	dir := t.TempDir()
	write(t, "0123456789", dir, "ten")
	s := start(t, Config{Dir: dir})
	resp, body := do(t, s, exchange{method: "GET", path: "/ten", header: map[string]string{"Range": "bytes=0-1,5-6"}})
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
	big := made(9, 2<<20)
	to := func(p string, more ...string) map[string]string {
		h := map[string]string{"Destination": s.URL() + p}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, x := range []exchange{
		{method: "PUT", path: "/a", body: "one", code: 201},
		{method: "PUT", path: "/a", body: "two", code: 204},
		{method: "GET", path: "/a", code: 200, want: "two"},
		{method: "PUT", path: "/big", body: big, code: 201},
		{method: "GET", path: "/big", code: 200, want: big},
		{method: "PUT", path: "/a", body: "x", header: map[string]string{"If-None-Match": "*"}, code: 412},
		{method: "PUT", path: "/a", body: "x", header: map[string]string{"If-Match": `"no"`}, code: 412},
		{method: "PUT", path: "/nowhere", body: "x", header: map[string]string{"If-Match": `*`}, code: 412},
		{method: "PUT", path: "/a", body: "x", header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, code: 412},
		{method: "PUT", path: "/a", body: "x", header: map[string]string{"Content-Range": "bytes 0-0/3"}, code: 400},
		{method: "PUT", path: "/no/a", body: "x", code: 409},
		{method: "PUT", path: "/a/b", body: "x", code: 409},
		{method: "PUT", path: "/d/", body: "x", code: 405},
		{method: "PUT", path: "/" + hidden + "x", body: "x", code: 404},
		{method: "MKCOL", path: "/d", code: 201},
		{method: "MKCOL", path: "/d/", code: 405},
		{method: "MKCOL", path: "/a", code: 405},
		{method: "MKCOL", path: "/x/y", code: 409},
		{method: "MKCOL", path: "/a/y", code: 409},
		{method: "MKCOL", path: "/e", body: "<x/>", code: 415},
		{method: "PUT", path: "/d", body: "x", code: 405},
		{method: "MOVE", path: "/a", header: to("/d/a"), code: 201},
		{method: "GET", path: "/a", code: 404},
		{method: "PUT", path: "/b", body: "bee", code: 201},
		{method: "MOVE", path: "/b", header: to("/d/a", "Overwrite", "F"), code: 412},
		{method: "GET", path: "/d/a", code: 200, want: "two"},
		{method: "MOVE", path: "/b", header: to("/d/a", "Overwrite", "T"), code: 204},
		{method: "GET", path: "/d/a", code: 200, want: "bee"},
		{method: "GET", path: "/b", code: 404},
		{method: "MOVE", path: "/none", header: to("/x"), code: 404},
		{method: "MOVE", path: "/d/a", header: to("/no/x"), code: 409},
		{method: "MOVE", path: "/d/a", header: to("/d/a"), code: 403},
		{method: "MOVE", path: "/d", header: to("/d/e"), code: 409},
		{method: "MOVE", path: "/d/a", header: to("/../x"), code: 403},
		{method: "MOVE", path: "/d/a", header: to("/%2e%2e/x"), code: 403},
		{method: "MOVE", path: "/d/a", header: map[string]string{"Destination": "http://elsewhere.example/x"}, code: 502},
		{method: "MOVE", path: "/d/a", code: 400},
		{method: "MOVE", path: "/d/a", header: to("/x", "Overwrite", "maybe"), code: 400},
		{method: "MOVE", path: "/d/a", header: map[string]string{"Destination": "/c"}, code: 201},
		{method: "COPY", path: "/c", header: to("/c2"), code: 201},
		{method: "COPY", path: "/big", header: to("/c2", "Overwrite", "F"), code: 412},
		{method: "GET", path: "/c2", code: 200, want: "bee"},
		{method: "COPY", path: "/big", header: to("/c2"), code: 204},
		{method: "GET", path: "/c2", code: 200, want: big},
		{method: "COPY", path: "/d", header: to("/d2"), code: 403},
		{method: "PUT", path: "/d/last", body: "1", code: 201},
		{method: "DELETE", path: "/d", code: 409},
		{method: "DELETE", path: "/d/last/", code: 404},
		{method: "DELETE", path: "/d/last", code: 204},
		{method: "DELETE", path: "/d/", code: 204},
		{method: "DELETE", path: "/d", code: 404},
		{method: "DELETE", path: "/", code: 403},
		{method: "PUT", path: "/sum", body: "abc", header: map[string]string{"Digest": "adler32=024d0127", "Want-Digest": "adler32"}, code: 201,
			answer: map[string]string{"Digest": "adler32=024d0127"}},
		{method: "PUT", path: "/sum", body: "abd", header: map[string]string{"Digest": "adler32=024d0127"}, code: 400},
		{method: "GET", path: "/sum", code: 200, want: "abc"},
	} {
		check(t, s, x)
	}
	if diff := cmp.Diff("big c c2 sum", names(t, dir)); diff != "" {
		t.Errorf("left in the folder (-want +got):\n%s", diff)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, "x", dir, "x")
	s := start(t, Config{Dir: dir, ReadOnly: true})
	for _, m := range []string{"PUT", "DELETE", "MKCOL", "MOVE", "COPY"} {
		check(t, s, exchange{method: m, path: "/x", code: 405, answer: map[string]string{"Allow": "OPTIONS, GET, HEAD, PROPFIND"}})
	}
	check(t, s, exchange{method: "GET", path: "/x", code: 200, want: "x"})
}

// TestNoWayOut tries to reach a secret beside the folder.
func TestNoWayOut(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	secret := write(t, "secret", top, "secret")
	write(t, "inside", dir, "inside")
	for link, target := range map[string]string{"absolute": secret, "relative": "../secret", "up": "..", "sub/far": "../../secret",
		"fine": "inside", "loop": "loop", "dangling": "nothing"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{method: "GET", path: "/fine", code: 200, want: "inside"})
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
		check(t, s, exchange{method: "PUT", path: p, body: "mine", code: 204})
		check(t, s, exchange{method: "GET", path: p, code: 200, want: "mine"})
	}
	if got := read(t, secret); got != "secret" {
		t.Errorf("the secret became %q", got)
	}
	if got := names(t, top); got != "secret served" {
		t.Errorf("outside the folder there is %s", got)
	}
}

// notServed checks that a request is refused and tells no secret.
func notServed(t *testing.T, s *Server, method, path string) {
	t.Helper()
	resp, body := do(t, s, exchange{method: method, path: path, header: map[string]string{"Depth": "0", "Destination": "/moved"}})
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
			resp, _ := do(t, s, exchange{method: "PUT", path: "/same", body: made(uint64(i), 300_000+i)})
			if resp.StatusCode != 201 && resp.StatusCode != 204 {
				t.Errorf("PUT: %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	got := read(t, dir, "same")
	if i := len(got) - 300_000; i < 0 || i > 15 || got != made(uint64(i), len(got)) {
		t.Errorf("%d bytes that are no file that was put", len(got))
	}
	if got := names(t, dir); got != "same" {
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
			resp, _ := do(t, s, exchange{method: "PUT", path: "/same", body: fmt.Sprint(i), header: map[string]string{"If-None-Match": "*"}})
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
