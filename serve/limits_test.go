package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dial connects to s and sends text.
func dial(t *testing.T, url, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// until polls a condition for at most 10 s.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if condition() {
			return
		}
		<-tick.C
	}
	t.Fatalf("never came true: %s", what)
}

func parts(dir string) int {
	found, _ := filepath.Glob(filepath.Join(dir, hidden+"-*"+partSuffix))
	return len(found)
}

func TestAbortedPutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	for _, head := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
		c := dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n400\r\n"+made(1, 400))
		until(t, "a temporary file", func() bool { return parts(dir) == 1 })
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		until(t, "no temporary file", func() bool { return parts(dir) == 0 })
	}
	if got := names(t, dir); got != "" {
		t.Errorf("the folder has %s", got)
	}
}

func TestStalledPutEnds(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir, StallTimeout: 200 * time.Millisecond})
	c := dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout || parts(dir) != 0 {
		t.Errorf("%d, %d temporaries", resp.StatusCode, parts(dir))
	}
}

func TestStalledGetEnds(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1 << 30}}, StallTimeout: 200 * time.Millisecond})
	dial(t, s.URL(), "GET /file000000.dat HTTP/1.1\r\nHost: x\r\n\r\n") // and reads nothing
	until(t, "the request begins", func() bool { return s.metrics.payloadOut.Load() > 0 })
	until(t, "the request is given up", func() bool { return s.metrics.flying.Load() == 0 && s.metrics.open.Load() == 0 })
}

func TestSlowHeadEnds(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1}}, HeaderTimeout: 200 * time.Millisecond})
	c := dial(t, s.URL(), "GET / HTTP/1.1\r\nHost:")
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestHostileHeads(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir()})
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 200_000) + "\r\n\r\n": "431",
		"GET / HTTP/9.9\r\n\r\n":                                                                 "505",
		"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n":                                                   "400",
		"GET http://x/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n":                              "400",
		"GET ../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n":                                          "400",
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n":                                                "4",
		"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n":                               "400",
		"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":         "400",
		"PUT /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n":             "400",
		"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=" + strings.Repeat("0-0,", 9000) + "\r\n\r\n": "200",
		"PROPFIND / HTTP/1.1\r\nHost: x\r\nDepth: 0\r\nContent-Length: 3\r\n\r\n<<<":             "400",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n":                                                  "200",
	} {
		c := dial(t, s.URL(), text)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) && !strings.HasPrefix(line, "HTTP/1.0 "+want) {
			t.Errorf("%.60q: %q, %v; want %s", text, line, err, want)
		}
	}
	check(t, s, exchange{method: "GET", path: "/", code: 200}) // still there
}

// TestKilledPut kills a server process in the middle of an upload: its file
// does not appear, and the next server removes what is left of it, and no more.
func TestKilledPut(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	mine := write(t, "mine", dir, "sub", hidden+"-mine") // the prefix, but no temporary
	write(t, "old", dir, "sub", "f")
	cmd, url := startChild(t, dir)
	dial(t, url, "PUT /sub/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+made(1, 5000))
	until(t, "a temporary file", func() bool { return parts(filepath.Join(dir, "sub")) == 1 })
	second := start(t, Config{Dir: dir}) // while the first lives, its temporary is not touched
	if parts(filepath.Join(dir, "sub")) != 1 {
		t.Error("the second server removed the first one's temporary")
	}
	check(t, second, exchange{method: "PUT", path: "/sub/g", body: "g", code: 201})
	if err := second.tree.(*dirTree).left.close(); err != nil { // as if it ended
		t.Fatal(err)
	}
	second.tree.(*dirTree).left.file = nil
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // by the signal
	if read(t, dir, "sub", "f") != "old" || parts(filepath.Join(dir, "sub")) != 1 {
		t.Error("the kill changed the file, or left no temporary")
	}
	third := start(t, Config{Dir: dir})
	if n := parts(filepath.Join(dir, "sub")); n != 0 {
		t.Errorf("%d temporaries are left", n)
	}
	if read(t, mine) != "mine" {
		t.Error("a file that is no temporary was touched")
	}
	check(t, third, exchange{method: "GET", path: "/sub/f", code: 200, want: "old"})
}

// TestFullDisk uploads to a file system of 1 MiB.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("weir-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{method: "PUT", path: "/small", body: made(1, 100_000), code: 201})
	check(t, s, exchange{method: "PUT", path: "/large", body: made(1, 2_000_000), code: 507})
	check(t, s, exchange{method: "COPY", path: "/small", header: map[string]string{"Destination": "/2"}, code: 201})
	if got := names(t, dir); got != "2 small" {
		t.Errorf("the folder has %s", got)
	}
	check(t, s, exchange{method: "PUT", path: "/fits", body: made(1, 500_000), code: 201})
}

func TestCredentials(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 10}}, User: "joe", Password: "pa:ss", Token: "tok"})
	for _, c := range []struct {
		authorization string
		code          int
	}{
		{"", 401}, {"Basic am9lOnBhOnNz", 200}, {"Basic am9lOndyb25n", 401}, {"Basic !!", 401}, {"Bearer tok", 200}, {"bearer tok", 200},
		{"Bearer tok2", 401}, {"Bearer ", 401}, {"tok", 401}, {"Basic tok", 401},
	} {
		h := map[string]string{}
		if c.authorization != "" {
			h["Authorization"] = c.authorization
		}
		for _, p := range []string{"/file000000.dat", "/metrics"} {
			check(t, s, exchange{method: "GET", path: p, header: h, code: c.code})
		}
	}
	resp, _ := do(t, s, exchange{method: "PUT", path: "/x", body: "x"})
	if got := resp.Header.Values("Www-Authenticate"); len(got) != 2 {
		t.Errorf("challenges %q", got)
	}
}

func TestConfigRefuses(t *testing.T) {
	dir := t.TempDir()
	set := []Set{{1, 1}}
	for _, c := range []Config{
		{}, {Dir: dir, Synthetic: set}, {Dir: filepath.Join(dir, "none")}, {Dir: write(t, "", dir, "file")}, {Synthetic: []Set{{0, 1}}},
		{Dir: dir, CertFile: "x"}, {Dir: dir, User: "x"}, {Dir: dir, Rate: -1}, {Dir: dir, Delay: -1},
	} {
		if s, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
			_ = s.Close()
		}
	}
	for _, c := range []Config{
		{Synthetic: set, Listen: "0.0.0.0:0"}, {Synthetic: set, Listen: ":0"}, {Synthetic: set, Listen: "[::]:0"}, {Synthetic: set, Listen: "192.0.2.1:0"},
		{Synthetic: set, Listen: "example.org:80"}, {Synthetic: set, Listen: "127.0.0.1"}, {Synthetic: set, Listen: ":0", Token: "x"}, {Synthetic: set, Listen: "127.0.0.1:99999"},
	} {
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil {
			t.Errorf("Listen %s is accepted", c.Listen)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	start(t, Config{Synthetic: set, Listen: "0.0.0.0:0", Public: true})
	start(t, Config{Synthetic: set, Listen: "localhost:0"})
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	mustRun(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert)
	const size = 5_000_000
	s := start(t, Config{Synthetic: []Set{{1, size}}, CertFile: cert, KeyFile: key})
	out := filepath.Join(dir, "out")
	mustRun(t, need(t, "curl"), "-sSf", "--cacert", cert, "-o", out, s.URL()+"/file000000.dat")
	mustRun(t, need(t, "curl"), "-sSf", "--cacert", cert, "-T", out, s.URL()+"/up")
	if sum := strings.Fields(mustRun(t, "curl", "-sSf", "--cacert", cert, s.URL()+"/metrics")); len(sum) == 0 {
		t.Error("no metrics")
	}
	if got := s.metrics.payloadOut.Load(); got != size {
		t.Errorf("%d bytes counted, want %d", got, size)
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true} //nolint:gosec // must be refused
	if c, err := (&tls.Dialer{Config: old}).DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
		t.Error("TLS 1.1 is accepted")
		_ = c.Close()
	}
	if s, err := New(Config{Synthetic: []Set{{1, 1}}, CertFile: key, KeyFile: key}); err != nil {
		t.Error(err)
	} else if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a key as a certificate: %v", err)
	}
}

func TestEndsGracefully(t *testing.T) {
	s, err := New(Config{Synthetic: []Set{{1, 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	resp, err := http.Get(s.URL() + "/file000000.dat")
	if err != nil {
		t.Fatal(err)
	}
	cancel() // in the middle of the answer
	n, err := io.Copy(io.Discard, resp.Body)
	if n != 64<<20 || err != nil {
		t.Errorf("the answer under way ended after %d bytes: %v", n, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := s.Serve(ctx, l); err == nil {
		t.Error("a Server serves twice")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestEndsFirmly(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Config{Dir: dir, Grace: 50 * time.Millisecond, Delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	dial(t, s.URL(), "") // says nothing
	until(t, "a temporary file", func() bool { return parts(dir) == 1 })
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := parts(dir); n != 0 {
		t.Errorf("%d temporaries are left", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	write(t, made(1, 200_000), dir, "f")
	s := start(t, Config{Dir: dir})
	check(t, s, exchange{method: "GET", path: "/f", code: 200})
	check(t, s, exchange{method: "GET", path: "/f", header: map[string]string{"Range": "bytes=0-99"}, code: 206})
	check(t, s, exchange{method: "HEAD", path: "/f", code: 200})
	check(t, s, exchange{method: "GET", path: "/none", code: 404})
	check(t, s, exchange{method: "PUT", path: "/g", body: made(2, 70_000), code: 201})
	check(t, s, exchange{method: "BREW", path: "/f", code: 405})
	check(t, s, exchange{method: "PROPFIND", path: "/", header: map[string]string{"Depth": "1"}, code: 207})
	_, text := do(t, s, exchange{method: "GET", path: "/metrics"})
	for _, line := range []string{
		"weir_serve_payload_sent_bytes_total 200100", "weir_serve_payload_received_bytes_total 70000", "weir_serve_requests_in_flight 1",
		`weir_serve_requests_total{method="GET",code="200"} 1`, `weir_serve_requests_total{method="GET",code="206"} 1`, `weir_serve_requests_total{method="GET",code="404"} 1`,
		`weir_serve_requests_total{method="HEAD",code="200"} 1`, `weir_serve_requests_total{method="PUT",code="201"} 1`, `weir_serve_requests_total{method="other",code="405"} 1`,
		`weir_serve_request_duration_seconds_count{method="GET"} 3`, `weir_serve_request_duration_seconds_bucket{method="GET",le="+Inf"} 3`,
		"# TYPE weir_serve_request_duration_seconds histogram", "# TYPE process_cpu_seconds_total counter",
	} {
		if !strings.Contains(text, line+"\n") && !strings.HasPrefix(line, "#") || !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	m := newMetrics()
	if n := testing.AllocsPerRun(100, func() { m.count("GET", 200, time.Millisecond); m.payloadOut.Add(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPacer(t *testing.T) {
	p, now := newPacer(1000), time.Unix(1000, 0)
	for i, want := range []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		if got := p.take(now, 500); got != want {
			t.Errorf("take %d waits %v, want %v", i, got, want)
		}
	}
	if got := p.take(now.Add(time.Hour), 500); got != 0 {
		t.Errorf("after a pause it waits %v", got)
	}
	if n := newPacer(20_000_000).quantum(1 << 20); n != 64<<10 {
		t.Errorf("quantum %d", n)
	}
	if n := newPacer(100).quantum(1 << 20); n != 1024 {
		t.Errorf("quantum %d", n)
	}
	if none := newPacer(0); none.take(now, 1<<30) != 0 || none.quantum(77) != 77 {
		t.Error("no limit limits")
	}
}

func TestRatesLeaveBytesAlone(t *testing.T) {
	const size = 300_000
	s := start(t, Config{Synthetic: []Set{{1, size}}, Rate: 3_000_000, TotalRate: 2_000_000, Delay: time.Millisecond})
	begin := time.Now()
	_, body := do(t, s, exchange{method: "GET", path: "/file000000.dat"})
	if took := time.Since(begin); took < 100*time.Millisecond { // 150 ms less the first quantum; never sooner
		t.Errorf("%d bytes at 2 MB/s in %v", size, took)
	}
	check(t, s, exchange{method: "PUT", path: "/up", body: body, code: 201})
	check(t, s, exchange{method: "GET", path: "/up", code: 200, want: body})
}

func TestCurl(t *testing.T) {
	curl := need(t, "curl")
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Dir: dir})
	local := write(t, made(3, 3_000_000), top, "local")
	mustRun(t, curl, "-sSf", "-T", local, s.URL()+"/up")
	mustRun(t, curl, "-sSf", "-o", filepath.Join(top, "down"), s.URL()+"/up")
	mustRun(t, curl, "-sSf", "-r", "100-1999999", "-o", filepath.Join(top, "part"), s.URL()+"/up")
	mustRun(t, curl, "-sSf", "-C", "2000000", "-o", filepath.Join(top, "rest"), s.URL()+"/up")
	whole := read(t, local)
	if read(t, top, "down") != whole || read(t, dir, "up") != whole || read(t, top, "part") != whole[100:2_000_000] || read(t, top, "rest") != whole[2_000_000:] {
		t.Error("curl got or put other bytes")
	}
	mustRun(t, curl, "-sSf", "-X", "MOVE", "-H", "Destination: "+s.URL()+"/moved", s.URL()+"/up")
	if out, err := run(t, curl, "-sSf", "--path-as-is", s.URL()+"/../local"); err == nil {
		t.Errorf("../local is served: %.100q", out)
	}
}

func TestGfal(t *testing.T) {
	copyTool, list := need(t, "gfal-copy"), need(t, "gfal-ls")
	if os.Getenv("GFAL_PYTHONBIN") == "" { // its modules are packaged for the distribution's python
		t.Setenv("GFAL_PYTHONBIN", "/usr/bin/python3")
	}
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Dir: dir})
	local := write(t, made(3, 3_000_000), top, "local")
	url := "dav" + strings.TrimPrefix(s.URL(), "http")
	mustRun(t, copyTool, "-p", "-K", "adler32", "file://"+local, url+"/sub/up")
	mustRun(t, copyTool, "-K", "adler32", url+"/sub/up", "file://"+filepath.Join(top, "down"))
	if sha(read(t, local)) != sha(read(t, top, "down")) || sha(read(t, local)) != sha(read(t, dir, "sub", "up")) {
		t.Error("gfal-copy got or put other bytes")
	}
	if out := mustRun(t, list, "-l", url+"/sub/"); !strings.Contains(out, "3000000") || !strings.Contains(out, "up") {
		t.Errorf("gfal-ls: %s", out)
	}
}

// TestFileThatShrinks cuts a file while it is sent: the client must not take
// what it got for the whole.
func TestFileThatShrinks(t *testing.T) {
	dir := t.TempDir()
	p := write(t, made(1, 64<<20), dir, "f")
	s := start(t, Config{Dir: dir})
	resp, err := http.Get(s.URL() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := os.Truncate(p, 1000); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d bytes and no error", n)
	}
}

func FuzzNames(f *testing.F) {
	for _, p := range []string{"/", "/a/b", "//a/", "/../x", "/a/./b", "/\x00", `/a\b`, "a", "/.weir-serve-x", "http://x/a", "//x/../y", "/%2e%2e"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		name, _, err := cleanName(p)
		if err == nil && !(name == "." || filepath.IsLocal(name) && !strings.Contains("/"+name, "/"+hidden) && filepath.Clean(name) == name) {
			t.Errorf("%q becomes %q", p, name)
		}
		to, err := destination(p, "x")
		if err == nil && to != "." && !filepath.IsLocal(to) {
			t.Errorf("Destination %q becomes %q", p, to)
		}
	})
}

// FuzzRange gives any Range and conditions to a file and looks whether the
// answer has as many bytes as it says.
func FuzzRange(f *testing.F) {
	f.Add("bytes=0-1", "")
	f.Add("bytes=-5,1-", `"x"`)
	f.Add("bytes=9999999999999999999-", "*")
	s := start(f, Config{Synthetic: []Set{{1, 100_000}}})
	client := &http.Client{Transport: &http.Transport{}}
	f.Fuzz(func(t *testing.T, ranges, match string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/file000000.dat", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", ranges)
		req.Header.Set("If-Range", match)
		resp, err := client.Do(req)
		if err != nil {
			t.Skip("no header: " + fmt.Sprint(err)) // refused by the client
		}
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil || resp.ContentLength >= 0 && n != resp.ContentLength || n > 200_000 && resp.StatusCode == 206 || resp.StatusCode >= 500 {
			t.Errorf("Range %q: %d with %d bytes, %v", ranges, resp.StatusCode, n, err)
		}
	})
}
