package webdav

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/digest"
	"weir/internal/require"
	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// TestSeveralDigestLines checks that several lines form one list.
func TestSeveralDigestLines(t *testing.T) {
	var h head
	err := h.parse([]byte("HTTP/1.1 200 OK\r\nDigest: adler32=00000001\r\nRepr-Digest: adler=:AAAAAg==:\r\nDigest: md5=xyz\r\n" +
		"Repr-Digest: sha-256=:AAAA:\r\nDigest: crc32c=00000003\r\n\r\n"))
	if want := "adler32=00000001,md5=xyz,crc32c=00000003"; err != nil || string(h.digest) != want {
		t.Errorf("Digest %q, %v, want %q", h.digest, err, want)
	}
	if want := "adler=:AAAAAg==:,sha-256=:AAAA:"; string(h.repr) != want {
		t.Errorf("Repr-Digest %q, want %q", h.repr, want)
	}
}

func FuzzHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\nContent-Range: bytes 3-5/12\r\nConnection: Keep-Alive\r\n\r\nabc"))
	f.Add([]byte("HTTP/1.0 302\nlocation: http://x/y\nDigest: adler32=1e720467\n\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := headEnd(b, 0)
		for cut := range min(len(b), 200) { // in pieces the end is found at the same place
			if n > 0 && cut < n && headEnd(b[:cut], 0) == 0 && headEnd(b, cut) != n {
				t.Fatalf("the end is at %d, but after %d bytes it is at %d", n, cut, headEnd(b, cut))
			}
		}
		if n == 0 {
			return
		}
		var h head
		if err := h.parse(b[:n]); err != nil {
			if !errors.Is(err, storage.ErrProtocol) {
				t.Errorf("error %v", err)
			}
			return
		}
		if h.status < 100 || h.status > 999 || h.length < -1 {
			t.Errorf("head %+v", h)
		}
		// If the standard library accepts the header as well, the results must be equal.
		r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b[:n])), &http.Request{Method: http.MethodGet})
		if err == nil && (r.StatusCode != h.status || !h.chunked && h.status == 200 && r.ContentLength != h.length) {
			t.Errorf("status %d, length %d; net/http has %d, %d", h.status, h.length, r.StatusCode, r.ContentLength)
		}
	})
}

// ended returns a link whose other side has closed the connection.
func ended(t testing.TB) *link {
	p := speak(t, "127.0.0.1", sayAndClose(""))
	u, err := url.Parse(p.url)
	require.NoError(t, err)
	o, err := originOf(u)
	require.NoError(t, err)
	d := tcp.NewDialer(nil)
	conn, err := d.Dial(t.Context(), o.host, o.port, time.Time{})
	require.NoError(t, err)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // the other side is gone already
		_ = d.Close()    // holds nothing
	})
	return &link{origin: o, conn: conn}
}

func FuzzChunks(f *testing.F) {
	f.Add([]byte("2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n"), 3)
	f.Add([]byte("5 \nhello\n000\n\nmore"), 1)
	f.Add([]byte("fffffffffffffff\r\n"), 100)
	l := ended(f)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if len(b) > bufferSize || size <= 0 || size > 1<<16 {
			return
		}
		var x answer
		x.Data, x.End = make([]byte, bufferSize), len(b)
		copy(x.Data, b)
		x.head = head{status: 200, chunked: true, keep: true, length: -1}
		x.body.begin(&x.head, false)
		var out []byte
		p := make([]byte, size)
		for {
			n, err := x.readBody(l, p)
			out = append(out, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				if !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, storage.ErrShort) {
					t.Errorf("error %v", err)
				}
				return
			}
			if n == 0 || len(out) > len(b) {
				t.Fatalf("%d bytes from %d", len(out), len(b))
			}
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		if err == nil && !bytes.Equal(out, want) {
			t.Errorf("%q; net/http has %q", out, want)
		}
	})
}

func FuzzMultistatus(f *testing.F) {
	f.Add(`<D:multistatus xmlns:D="DAV:"><D:response><D:href>/data/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>`)
	f.Add(`<multistatus xmlns="DAV:"><response><href>http://h/data/a%20b</href><propstat><prop><getcontentlength>12</getcontentlength></prop></propstat></response></multistatus>`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseMultistatus(strings.NewReader(text), "/data/")
		checkEntries(t, l.Entries, err)
	})
}

// FuzzPage checks that the entries of any page are names in the folder itself.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		`<a href="a.root">a.root</a>`, `<A HREF='b%20c.dat'>`, `<a class=x href=./amp&amp;%3cx%3e.dat>`, `<a href="/data/sub%20dir/">`,
		`<a href="../">`, `<a href="%2e%2e">`, `<a href="a%2fb">`, `<a href="?C=N;O=D">`, `<a href="http://evil.example/data/x">`,
		`<a href="//evil.example/data/x">`,
		`<a href="sub/../../x">`, `<a href="..hidden">`, `<!-- <a href="no"> --><script>"<a href='no'>"</script ><a href="yes">`,
		`<a href="a"b`, `<a href`, `<a href=`, `<a =x href=y>`, `<a href="javascript:alert(1)">`, `<a href="a:b.dat">`, `<a href="%00">`,
		`<a href="%zz">`, "<a\x00href=x>",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parsePage(strings.NewReader(text), pageBase(t), true)
		checkEntries(t, l.Entries, err)
		for _, e := range l.Entries {
			if e.Size >= 0 || strings.ContainsAny(e.Name, "/\x00") || e.Name == ".." || e.Name == "." || e.Name == "" {
				t.Errorf("entry %+v of %q", e, text)
			}
		}
	})
}

func pageBase(t *testing.T) *url.URL {
	t.Helper()
	base, err := url.Parse("http://host.example:8080/data/")
	require.NoError(t, err)
	return base
}

func TestPage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]storage.Entry{
		`<a href="a.root">`:                               {{Name: "a.root", Size: -1}},
		`<A CLASS=x HREF='b%20c.dat'>`:                    {{Name: "b c.dat", Size: -1}},
		`<a href=./amp&amp;%3cx%3e.dat>`:                  {{Name: "amp&<x>.dat", Size: -1}},
		`<a href="/data/sub%20dir/">`:                     {{Name: "sub dir", Size: -1, Dir: true}},
		`<a href="/data/sub//">`:                          {{Name: "sub", Size: -1, Dir: true}},
		`<a href="/%64ata/x">`:                            {{Name: "x", Size: -1}},
		`<a href="http://host.example:8080/data/x">`:      {{Name: "x", Size: -1}},
		`<a href="x"><a href="x/"><a href="x">`:           {{Name: "x", Size: -1, Dir: true}},
		`<a href="x"><a href="x">`:                        {{Name: "x", Size: -1}},
		`<a href="%"><a href="a%b">`:                      {{Name: "%", Size: -1}, {Name: "a%b", Size: -1}},
		`<a href="2024-01-01T00:00:00.root">`:             {{Name: "2024-01-01T00:00:00.root", Size: -1}},
		`<a href="run:1.root"><a href="mailto:x@y">`:      {{Name: "run:1.root", Size: -1}},
		`<a href="x"><base href="/data//"><a href="y">`:   {{Name: "x", Size: -1}, {Name: "y", Size: -1}},
		`<base href="/data/"><base href="/z/"><a href=x>`: {{Name: "x", Size: -1}},
		`<base href="/other/"><a href="x">`:               nil,
		`<a href="/data//x"><a href="/./data/y">`:         {{Name: "x", Size: -1}, {Name: "y", Size: -1}},
		`<a href="../"><a href="/"><a href="">`:           nil,
		`<a href="%2e%2e"><a href="a%2fb">`:               nil,
		`<a href="sub/x"><a href="../other/x">`:           nil,
		`<a href="?C=N;O=D"><a href="x?y"><a href="#z">`:  nil,
		`<a href="https://host.example:8080/data/x">`:     nil,
		`<a href="http://host.example/data/x">`:           nil,
		`<a href="//evil.example/data/x">`:                nil,
		`<a href="http://u@host.example:8080/data/x">`:    nil,
		`<a href="javascript:x"><abbr href="x">`:          nil,
		`<!-- <a href="no"> --><STYLE><a href="no"></style><script>'<a href="no">'</SCRIPT><a href="yes">`: {{Name: "yes", Size: -1}},
	} {
		got, err := parsePage(strings.NewReader(text), pageBase(t), true)
		if err != nil || !cmp.Equal(got.Entries, want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := parsePage(&forever{text: "<a href=x>", n: new(int64)}, pageBase(t), true); !errors.Is(err, storage.ErrProtocol) {
		t.Errorf("a page without an end: %v", err)
	}
}

func TestIndexOfCaddy(t *testing.T) {
	got, err := parseIndex(strings.NewReader(`[{"name":"sub dir/","size":4096,"url":"./sub%20dir/","is_dir":true,"is_symlink":false},{"name":"a","size":7,"is_dir":false,"is_symlink":false},{"name":"l","size":9,"is_dir":false,"is_symlink":true}]`))
	want := []storage.Entry{{Name: "sub dir", Size: -1, Dir: true}, {Name: "a", Size: 7}, {Name: "l", Size: -1}}
	if err != nil || !cmp.Equal(got.Entries, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(`[{"name":"a","type":"file","mtime":"x","size":12},{"name":"d","type":"directory"}]`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseIndex(strings.NewReader(text))
		checkEntries(t, l.Entries, err)
	})
}

func checkEntries(t *testing.T, entries []storage.Entry, err error) {
	t.Helper()
	if err != nil && entries != nil {
		t.Errorf("entries beside error %v", err)
	}
	for _, e := range entries {
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || e.Size < -1 || e.Dir && e.Size >= 0 {
			t.Errorf("entry %+v", e)
		}
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("adler32=972bffa7", "")
	f.Add("md5=b1kCrCNwJL3QwXbLkwY9xA==,adler32=bffa7", "adler=:Hm4EZw==:")
	f.Fuzz(func(t *testing.T, digestLine, repr string) {
		h := &head{digest: []byte(digestLine), repr: []byte(repr)}
		for _, alg := range digest.Algorithms() {
			sum, err := h.sum(alg)
			if hex, ok := strings.CutPrefix(sum, alg.Name+":"); err == nil &&
				(!ok || len(hex) != 2*alg.Size || strings.Trim(hex, "0123456789abcdef") != "") {
				t.Errorf("sum %q", sum)
			}
			if err != nil && (sum != "" || !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, errors.ErrUnsupported)) {
				t.Errorf("sum %q, error %v", sum, err)
			}
		}
	})
}

func FuzzReference(f *testing.F) {
	f.Add("http://[::1%25eth0]:8080/a%20b?x=y")
	f.Add("//other/x")
	f.Add("/data/ü b")
	home := &origin{host: "h", port: 80, name: "h:80", authority: "h"}
	f.Fuzz(func(t *testing.T, location string) {
		u, err := parseReference(location, home, "/data/x?token=1")
		if err != nil {
			return
		}
		o, err := originOf(u)
		if err != nil {
			return
		}
		line := string(append(appendPrintable(nil, u.EscapedPath()), queryOf(u)...)) + o.authority
		for _, c := range []byte(line) {
			if c <= ' ' || c >= 0x7f {
				t.Errorf("location %q makes %q", location, line)
			}
		}
	})
}

func TestDigest(t *testing.T) {
	all := digest.Algorithms()
	adler, crc, md5 := all[0], all[1], all[2]
	tests := []struct {
		digest, repr string
		alg          digest.Algorithm
		want         string // "" for an error
	}{
		{"adler32=972bffa7", "", adler, "adler32:972bffa7"},
		{"ADLER32=972BFFA7", "", adler, "adler32:972bffa7"},
		{"adler32=bffa7", "", adler, "adler32:000bffa7"},
		{"adler32=1", "", adler, "adler32:00000001"},
		{"md5=b1kCrCNwJL3QwXbLkwY9xA==, adler32=bffa7", "", adler, "adler32:000bffa7"},
		{"md5=b1kCrCNwJL3QwXbLkwY9xA==", "", md5, "md5:6f5902ac237024bdd0c176cb93063dc4"},
		{"md5=6f5902ac237024bdd0c176cb93063dc4", "", md5, "md5:6f5902ac237024bdd0c176cb93063dc4"},
		{"crc32c=8P9ykg==", "", crc, "crc32c:f0ff7292"},
		{"", "adler=:Hm4EZw==:", adler, "adler32:1e6e0467"},
		{"adler32=00000001", "md5=:b1kCrCNwJL3QwXbLkwY9xA==:, adler=:Hm4EZw==:", adler, "adler32:1e6e0467"},
		{"adler32=972bffa7a", "", adler, ""},
		{"adler32=xyz", "", adler, ""},
		{"adler32=", "", adler, ""},
		{"md5=b1kC", "", adler, ""},
		{"", "", adler, ""},
	}
	for _, tt := range tests {
		got, err := (&head{digest: []byte(tt.digest), repr: []byte(tt.repr)}).sum(tt.alg)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q, %q: sum %q, error %v, want %q", tt.digest, tt.repr, got, err, tt.want)
		}
	}
}

func TestMultistatus(t *testing.T) {
	const one = `<D:response><D:href>%</D:href><D:propstat><D:prop><D:getcontentlength>12</D:getcontentlength></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`
	const self = `<D:response><D:href>/data/x/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`
	const missing = `<D:propstat><D:prop><D:getcontentlength>99</D:getcontentlength></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>`
	list := func(items ...string) string {
		return `<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">` + strings.Join(items, "") + `</D:multistatus>`
	}
	file := func(href string) string { return strings.Replace(one, "%", href, 1) }
	tests := map[string]struct {
		text    string
		want    []storage.Entry
		err     bool
		omitted int
	}{
		"empty folder": {text: list(self)},
		"a file":       {text: list(self, file("/data/x/a")), want: []storage.Entry{{Name: "a", Size: 12}}},
		"escaped":      {text: list(self, file("/data/x/a%20%25b")), want: []storage.Entry{{Name: "a %b", Size: 12}}},
		"unescaped":    {text: list(self, file("/data/x/a 100%25")), want: []storage.Entry{{Name: "a 100%25", Size: 12}}},
		"whole URL":    {text: list(self, file("https://h:1/data/x/a?b")), want: []storage.Entry{{Name: "a?b", Size: 12}}},
		"a folder": {text: list(self, strings.ReplaceAll(self, "/data/x/", "/data/x/d/")),
			want: []storage.Entry{{Name: "d", Size: -1, Dir: true}}},
		"unknown size": {text: list(self, `<D:response><D:href>/data/x/f</D:href>`+missing+`</D:response>`),
			want: []storage.Entry{{Name: "f", Size: -1}}},
		"a file asked": {text: list(strings.Replace(one, "%", "/data/x", 1)), err: true},
		"dots": {text: list(self, file("/data/x/.."), file("/data/x/a%2Fb"), file("/data/x/b")),
			want: []storage.Entry{{Name: "b", Size: 12}}, omitted: 2},
		"other folder": {text: list(self, file("/data/y/a"), file("/data/x/a/b"), file("/data/x/b")),
			want: []storage.Entry{{Name: "b", Size: 12}}, omitted: 2},
		"spelled": {text: list(strings.ReplaceAll(self, "/data/x/", "//data/./%78"), file("/data//x/a")),
			want: []storage.Entry{{Name: "a", Size: 12}}},
		"relative": {text: list(self, file("a")), want: []storage.Entry{{Name: "a", Size: 12}}},
		"behind a proxy": {text: list(strings.ReplaceAll(self, "/data/x/", "/store/"), file("/store/a"), file("/data/b")),
			want: []storage.Entry{{Name: "a", Size: 12}}, omitted: 1},
		"a file behind a proxy": {text: list(file("/store/x")), err: true},
		"control characters": {text: list(self, file("/data/x/a&#1;"), file("/data/x/b\x02\xff"), file("/data/x/c&#x41;&amp;")),
			want: []storage.Entry{{Name: "cA&", Size: 12}}, omitted: 2},
		"status of an entry": {text: list(self, file("/data/x/a"), `<D:response><D:href>/data/x/b</D:href><D:status>HTTP/1.1 403 Forbidden</D:status></D:response>`),
			want: []storage.Entry{{Name: "a", Size: 12}}, omitted: 1},
		"limit of the server": {text: list(self, file("/data/x/a"), `<D:response><D:href>/data/x/</D:href><D:status>HTTP/1.1 507 Insufficient Storage</D:status></D:response>`),
			err: true},
		"nothing": {err: true},
		"cut off": {text: list(self)[:100], err: true},
		"no XML":  {text: "<html><br></html>", err: true},
	}
	for name, tt := range tests {
		got, err := parseMultistatus(strings.NewReader(tt.text), "/data/x/")
		if (err != nil) != tt.err {
			t.Errorf("%s: error %v", name, err)
		}
		if d := cmp.Diff(tt.want, got.Entries); d != "" || got.Omitted != tt.omitted || (got.Reason != nil) != (tt.omitted > 0) {
			t.Errorf("%s: %s %d entries are left out, %v", name, d, got.Omitted, got.Reason)
		}
	}
}

func TestOrigin(t *testing.T) {
	tests := map[string]struct{ authority, name string }{
		"http://Example.org/x":         {"example.org", "example.org:80"},
		"https://example.org":          {"example.org", "example.org:443"},
		"davs://example.org:8443/":     {"example.org:8443", "example.org:8443"},
		"dav://[::1]/":                 {"[::1]", "[::1]:80"},
		"http://[fe80::1%25eth0]:1094": {"[fe80::1]:1094", "[fe80::1%eth0]:1094"},
		"http://":                      {},
		"http://x:0/":                  {},
		"http://x:66000/":              {},
		"ftp://x/":                     {},
		"x":                            {},
	}
	for text, want := range tests {
		u, err := url.Parse(text)
		require.NoError(t, err)
		o, err := originOf(u)
		if (err != nil) != (want.name == "") {
			t.Errorf("%s: error %v", text, err)
		}
		if err == nil && (o.authority != want.authority || o.name != want.name) {
			t.Errorf("%s: authority %q, name %q, want %+v", text, o.authority, o.name, want)
		}
	}
}

// forever repeats a text endlessly.
type forever struct {
	text string
	at   int
	n    *int64
}

func (f *forever) Read(b []byte) (int, error) {
	n := copy(b, f.text[f.at:])
	f.at = (f.at + n) % len(f.text)
	*f.n += int64(n)
	return n, nil
}

// TestListingsWithoutEndAreRefused checks that a name or nested elements without end are refused
// long before they fill the memory.
func TestListingsWithoutEndAreRefused(t *testing.T) {
	const head = `<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">`
	for name, c := range map[string]struct {
		head, again string
		parse       func(io.Reader) (wireclient.Listing, error)
	}{
		"name":      {head + "<d:response><d:href>", "a", multistatus},
		"nest":      {"", "<a>", multistatus},
		"attribute": {head + `<d:x y="`, "a", multistatus},
		"comment":   {head + "<!--", "a", multistatus},
		"space":     {head, " ", multistatus},
		"JSON name": {`[{"name":"`, "a", parseIndex},
		"JSON nest": {`[{"x":`, "[", parseIndex},
	} {
		t.Run(name, func(t *testing.T) {
			var n int64
			_, err := c.parse(io.MultiReader(strings.NewReader(c.head), &forever{text: c.again, n: &n}))
			if !errors.Is(err, storage.ErrProtocol) || n > 2*maxEntry {
				t.Errorf("error %v after %d bytes", err, n)
			}
		})
	}
}

func multistatus(r io.Reader) (wireclient.Listing, error) { return parseMultistatus(r, "/data/") }

// TestLongListingsAreRead checks that many entries of ordinary length are not taken for a long
// entry.
func TestLongListingsAreRead(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">`)
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&b, "<d:response><d:href>/data/f%0100d</d:href></d:response>", i)
	}
	b.WriteString("</d:multistatus>")
	l, err := multistatus(strings.NewReader(b.String()))
	if err != nil || len(l.Entries) != n {
		t.Errorf("%d entries of %d, error %v", len(l.Entries), n, err)
	}
}
