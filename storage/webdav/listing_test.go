package webdav

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/storage"
	"weir/storage/storagetest"
)

// names returns the sorted names of a listing; names of folders end in a slash.
func names(res storage.Result) (all []string) {
	for _, e := range res.Entries {
		if e.Dir {
			e.Name += "/"
		}
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

// keys returns n keys below a prefix.
func keys(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%05d", prefix, i))
	}
	return all
}

// fakeBucket is a service of S3 with flat listings, whose pages lack the parts selected by the
// fields.
type fakeBucket struct {
	keys      []string
	page      int    // names of a page
	says      int    // MaxKeys, 0: same as page
	truncated string // IsTruncated of pages before the last; "": left out of all
	token     string // "": tokens that work; "-": no token; any other text: this token, always
	deaf      bool   // continuations are ignored
	first     bool   // only the first version of the request is supported
	count     int    // KeyCount; 0: left out
	raw       bool   // encoding-type is ignored
	asked     atomic.Int32
}

func (s *fakeBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	q := r.URL.Query()
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	if s.first {
		after = q.Get("marker")
	}
	if s.deaf {
		after = ""
	}
	left := s.keys[len(s.keys):]
	if i := slices.IndexFunc(s.keys, func(k string) bool { return k > after }); i >= 0 {
		left = s.keys[i:]
	}
	page := left[:min(len(left), s.page)]
	var b strings.Builder
	b.WriteString("<ListBucketResult>")
	most := s.page
	if s.says > 0 {
		most = s.says
	}
	fmt.Fprintf(&b, "<MaxKeys>%d</MaxKeys>", most)
	if s.count > 0 {
		fmt.Fprintf(&b, "<KeyCount>%d</KeyCount>", s.count)
	}
	more := len(page) < len(left) || s.deaf
	switch {
	case s.truncated != "" && more:
		fmt.Fprintf(&b, "<IsTruncated>%s</IsTruncated>", s.truncated)
	case s.truncated != "":
		b.WriteString("<IsTruncated>false</IsTruncated>")
	}
	if s.token == "" && more {
		fmt.Fprintf(&b, "<NextContinuationToken>%s</NextContinuationToken>", page[len(page)-1])
	} else if s.token != "-" {
		fmt.Fprintf(&b, "<NextContinuationToken>%s</NextContinuationToken>", s.token)
	}
	for _, key := range page {
		if !s.raw {
			key = url.QueryEscape(key)
		}
		b.WriteString("<Contents><Key>" + html.EscapeString(key) + "</Key><Size>3</Size></Contents>")
	}
	if !s.raw {
		b.WriteString("<EncodingType>url</EncodingType>")
	}
	b.WriteString("</ListBucketResult>")
	_, _ = w.Write([]byte(b.String())) // the client may have closed the connection
}

// list returns the listing of a bucket of the service.
func (s *fakeBucket) list(t *testing.T) (storage.Result, error) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	cred := storage.Credentials{Method: storage.S3Auth, User: "u", Password: "p"}
	return do(t, storagetest.TargetOf(t, srv.URL+"/b", cred), storage.Op{Kind: storage.List})
}

// TestS3ListingsAreWhole checks that listings of S3 are continued in a way that the service
// supports, or refused: an incomplete listing is never used.
func TestS3ListingsAreWhole(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*fakeBucket{
		"tokens":                              {truncated: "true"},
		"tokens without IsTruncated":          {},
		"truncated without a token":           {truncated: "true", token: "-"},
		"the first version of the request":    {truncated: "true", token: "-", first: true},
		"full pages that say they are all":    {truncated: "false", token: "-"},
		"full pages that say nothing":         {token: "-"},
		"pages below the limit that they say": {truncated: "false", token: "-", page: 500, says: 1000},
		"fewer than the count":                {truncated: "false", token: "-", page: 777, says: 1000, count: 2500},
	} {
		s.keys = keys("k", 2500)
		if s.page == 0 {
			s.page = 1000
		}
		if res, err := s.list(t); err != nil || !slices.Equal(names(res), s.keys) {
			t.Errorf("%s: %d names, %v", name, len(res.Entries), err)
		}
	}
	for name, s := range map[string]*fakeBucket{
		"a token again":                    {truncated: "true", token: "t", deaf: true},
		"a token again, without truncated": {token: "t", deaf: true},
		"a token again, truncated: false":  {truncated: "false", token: "t", deaf: true},
		"full and deaf":                    {truncated: "false", token: "-", deaf: true},
		"full, silent and deaf":            {token: "-", deaf: true},
		"truncated, deaf, without a token": {truncated: "true", token: "-", deaf: true},
	} {
		s.keys, s.page = keys("k", 2500), 1000
		if res, err := s.list(t); !errors.Is(err, storage.ErrProtocol) || len(res.Entries) > 0 || s.asked.Load() > 3 {
			t.Errorf("%s: %d names, %v, after %d requests", name, len(res.Entries), err, s.asked.Load())
		}
	}
	whole := &fakeBucket{keys: keys("k", 1000), page: 1000, truncated: "true"}
	if res, err := whole.list(t); err != nil || len(res.Entries) != 1000 {
		t.Errorf("exactly one page: %d names, %v", len(res.Entries), err)
	}
}

// TestOddKeysOfS3AreLeftOut checks that keys that a path cannot have are left out and counted, with
// encoded and raw names.
func TestOddKeysOfS3AreLeftOut(t *testing.T) {
	t.Parallel()
	for _, raw := range []bool{false, true} {
		s := &fakeBucket{keys: []string{"/", "..", "a b+c", "d&e", "x//", "y/z"}, page: 1000, truncated: "true", raw: raw}
		res, err := s.list(t)
		if d := cmp.Diff([]string{"a b+c", "d&e"}, names(res)); err != nil || d != "" || res.Omitted != 4 {
			t.Errorf("raw %v: %s %v, %d left out: %v", raw, d, err, res.Omitted, res.Omission)
		}
	}
	const odd = "a\x01b"
	s := &fakeBucket{keys: []string{odd, "c"}, page: 1000, truncated: "true"}
	if res, err := s.list(t); err != nil || !slices.Equal(names(res), s.keys) {
		t.Errorf("encoded: %q, %v", names(res), err)
	}
	s = &fakeBucket{keys: []string{odd, "c", "\xff"}, page: 1000, truncated: "true", raw: true}
	if res, err := s.list(t); err != nil || !slices.Equal(names(res), []string{"c"}) || res.Omitted != 2 {
		t.Errorf("raw: %q, %v, %v", names(res), err, res.Omission)
	}
}

// TestListingsCutOff checks that listings that end too early are refused, in each format.
func TestListingsCutOff(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"HTML before its length":     "Content-Type: text/html\r\nContent-Length: 100\r\n\r\n<html><a href=x>x</a>",
		"HTML in a chunk":            "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n<html><a href=x>x</a>",
		"HTML until the end":         "Content-Type: text/html\r\n\r\n<html><a href=x>x</a>",
		"HTML until the end, a link": "Content-Type: text/html\r\n\r\n<a href=x>x</a><a hre",
		"JSON before its length":     "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n[{\"name\":\"x\"}",
		"JSON until the end":         "Content-Type: application/json\r\n\r\n[{\"name\":\"x\"}",
	} {
		p := speak(t, "127.0.0.1", sayAndClose("HTTP/1.1 200 OK\r\n"+answer))
		res, err := do(t, storagetest.TargetOf(t, p.url, storage.Credentials{}), storage.Op{Kind: storage.List})
		if err == nil || len(res.Entries) > 0 {
			t.Errorf("%s: %v, %v", name, res.Entries, err)
		}
	}
	whole := speak(t, "127.0.0.1", sayAndClose("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><a href=x>x</a></html>\n"))
	if res, err := do(t, storagetest.TargetOf(t, whole.url, storage.Credentials{}), storage.Op{Kind: storage.List}); err != nil ||
		len(res.Entries) != 1 {
		t.Errorf("a whole page: %v, %v", res.Entries, err)
	}
}

// TestRedirectsToFolders checks that a name is a folder if it is redirected to the same name with a
// slash, in any spelling; other redirects are followed.
func TestRedirectsToFolders(t *testing.T) {
	t.Parallel()
	var location atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") || strings.HasSuffix(r.URL.Path, "file") {
			w.Header().Set("Content-Length", "4")
			_, _ = w.Write([]byte("page")) // HEAD has no body
			return
		}
		w.Header()["Location"] = []string{location.Load().(string)}
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for to, folder := range map[string]bool{
		"/data/sub/": true, "sub/": true, s.URL + "/data/sub/": true, "https://127.0.0.1/data/sub/?x=y": true, "/data//s%75b/": true,
		"//127.0.0.1:" + port + "/data/sub/": true, "/other/file": false, "/data/sub2/": false, "http://localhost:" + port + "/data/sub/": false,
	} {
		location.Store(to)
		target := storagetest.TargetOf(t, s.URL+"/data", storage.Credentials{})
		res, err := do(t, target, storage.Op{Kind: storage.Stat, Path: "sub"})
		if err != nil || res.Folder != folder || folder == (res.Size >= 0) {
			t.Errorf("%s: stat %+v, %v", to, res, err)
		}
		if _, err = do(t, target, storage.Op{Kind: storage.Read, Path: "sub", Size: -1}); errors.Is(err, syscall.EISDIR) != folder {
			t.Errorf("%s: read %v", to, err)
		}
	}
	location.Store("/data/100%/") // not escaped
	target := storagetest.TargetOf(t, s.URL+"/data", storage.Credentials{})
	if _, err := do(t, target, storage.Op{Kind: storage.Read, Path: "100%", Size: -1}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a percent sign: %v", err)
	}
}

// TestFileAsTarget checks that the target of a read can be a file.
func TestFileAsTarget(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/data/f.root" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(1000))
		_, _ = w.Write(make([]byte, 1000)) // HEAD has no body
	}))
	defer s.Close()
	target := storagetest.TargetOf(t, s.URL+"/data/f.root", storage.Credentials{})
	for _, op := range []storage.Op{{Kind: storage.Stat}, {Kind: storage.Read, Size: -1}, {Kind: storage.Read, Size: 1000}} {
		if res, err := do(t, target, op); err != nil || res.Size != 1000 {
			t.Errorf("%v: %+v, %v", op.Kind, res, err)
		}
	}
}
