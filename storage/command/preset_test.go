package command_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/command"
)

// services are the three services of package lab, started once for all their tests.
type services struct{ nginx, xrootd, gridftp *lab.System }

func start(t *testing.T) services {
	t.Helper()
	t.Setenv("RES_OPTIONS", "timeout:1 attempts:1") // see TestConformance
	return services{
		labtest.Start(t, lab.NginxConfig{}),
		labtest.Start(t, lab.XRootDConfig{}),
		labtest.Start(t, lab.GridFTPConfig{}),
	}
}

type pair struct {
	preset string
	system *lab.System
	url    string
}

func (p pair) String() string { return p.preset + " " + strings.SplitN(p.url, ":", 2)[0] }

func (s services) pairs() []pair {
	return []pair{
		{"curl", s.nginx, s.nginx.URL}, {"curl", s.xrootd, s.xrootd.URLs["http"]},
		{"xrdcp", s.xrootd, s.xrootd.URL},
		{"globus-url-copy", s.gridftp, s.gridftp.URL},
		{"gfal-copy", s.nginx, s.nginx.URL}, {"gfal-copy", s.xrootd, s.xrootd.URL}, {"gfal-copy", s.gridftp, s.gridftp.URL},
	}
}

func file(seed uint64, size int64) []byte {
	b := make([]byte, size)
	content.Fill(b, seed, 0)
	return b
}

// hostile returns names with special characters for a shell, a URL or a listing. Names that a
// protocol cannot express are not used with it.
func hostile(p pair) []string {
	names := []string{"with space", `quo'te"s`, "-dash", "--help", "per%20cent", "plus+amp&eq=", "br{a}[c]$x`y`;z", `back\slash`, "ast*",
		"ha#sh", "~tilde", "$(touch x)"}
	if p.system.Name != "gridftp" {
		names = append(names, "new\nline", "ünï 漢字")
	}
	if p.system.Name != "xrootd" { // an escaped dash is taken for the start of options, in HTTP as well
		names = append(names, "que?stion")
	}
	return names
}

func TestHostileNames(t *testing.T) {
	s := start(t)
	for _, p := range s.pairs() {
		t.Run(p.String(), func(t *testing.T) {
			of(t, p.preset)
			c := client(t, p.url, p.preset)
			for i, name := range hostile(p) {
				name = fmt.Sprintf("d%d/%s", i, name)
				want := file(uint64(i), int64(1000+i))
				require.NoError(t, p.system.WriteFile(name, want))
				sum, err := content.Sum("adler32", uint64(i), 0, int64(len(want)))
				require.NoError(t, err)
				var h heard
				res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: name, Size: -1, Sum: "adler32", Timeout: time.Minute}, &h)
				if err != nil || res.Sum != sum || h.moved != int64(len(want)) {
					t.Errorf("read %q: %d bytes, %s, %v; want %s", name, h.moved, res.Sum, err, sum)
				}
			}
		})
	}
}

func TestQuestionMarkCannotStandInXRootDsURLs(t *testing.T) {
	of(t, "xrdcp")
	c := client(t, "root://localhost:9//data", "xrdcp")
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a?b", Size: 1}, &heard{})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestErrorClasses checks that failures are classified correctly for every program and its error
// texts.
func TestErrorClasses(t *testing.T) {
	s := start(t)
	for _, p := range s.pairs() {
		t.Run(p.String(), func(t *testing.T) {
			of(t, p.preset)
			closed := "closed to " + p.preset
			for _, name := range []string{"there", closed} {
				require.NoError(t, p.system.WriteFile(name, file(1, 1000)))
			}
			require.NoError(t, os.Chmod(filepath.Join(p.system.Data, closed), 0))
			fails := func(url string, op storage.Op, want storage.Class) {
				t.Helper()
				if op.Timeout == 0 {
					op.Timeout = time.Minute
				}
				var h heard
				_, err := client(t, url, p.preset).Do(t.Context(), &op, &h)
				for range 3 { // on a busy machine gfal2 occasionally loses its own session, and reports that
					if err == nil || !strings.Contains(err.Error(), "GLOBUS_FTP_CLIENT_IDLE") {
						break
					}
					_, err = client(t, url, p.preset).Do(t.Context(), &op, &h)
				}
				if storage.Classify(err) != want || h.moved > 0 && op.Kind == storage.Read {
					t.Errorf("%s %s: class %s, %d bytes, want %s: %v", op.Kind, op.Path, storage.Classify(err), h.moved, want, err)
				}
			}
			for _, sum := range []string{"", "md5"} {
				fails(p.url, storage.Op{Kind: storage.Read, Path: "missing", Size: 10, Sum: sum}, storage.NotFound)
				fails(p.url, storage.Op{Kind: storage.Read, Path: "missing", Size: -1, Sum: sum}, storage.NotFound)
				fails(p.url, storage.Op{Kind: storage.Read, Path: closed, Size: 1000, Sum: sum}, storage.Denied)
			}
			fails(p.url, storage.Op{Kind: storage.Read, Path: "there", Size: 1000, Timeout: time.Millisecond}, storage.Timeout)
			dead := elsewhere(t, p.url)
			fails(dead, storage.Op{Kind: storage.Read, Path: "there", Size: 1000}, storage.Refused)
			fails(dead, storage.Op{Kind: storage.Write, Path: "new", Size: 1000}, storage.Refused)
		})
	}
}

// elsewhere returns the same URL with a port without a listener.
func elsewhere(t *testing.T, where string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u := parse(t, where)
	u.Host = l.Addr().String()
	require.NoError(t, l.Close())
	return u.String()
}

func TestServerGoesAndComesBack(t *testing.T) {
	s := start(t)
	for _, p := range s.pairs()[1:4] {
		t.Run(p.String(), func(t *testing.T) {
			of(t, p.preset)
			require.NoError(t, p.system.WriteFile("f", file(1, 1000)))
			c := client(t, p.url, p.preset)
			op := storage.Op{Kind: storage.Read, Path: "f", Size: 1000, Timeout: time.Minute}
			if _, err := c.Do(t.Context(), &op, &heard{}); err != nil {
				t.Fatal(err)
			}
			p.system.Kill()
			if _, err := c.Do(t.Context(), &op, &heard{}); storage.Classify(err) != storage.Refused {
				t.Errorf("while it is down: %v", err)
			}
			require.NoError(t, p.system.Restart(t.Context()))
			if _, err := c.Do(t.Context(), &op, &heard{}); err != nil {
				t.Errorf("after it came back: %v", err)
			}
		})
	}
}

func TestHTTPStatus(t *testing.T) {
	s := start(t)
	for _, preset := range []string{"curl", "gfal-copy"} {
		of(t, preset)
		for code, want := range map[int]storage.Class{401: storage.Denied, 403: storage.Denied, 404: storage.NotFound, 429: storage.Busy,
			503: storage.Busy, 500: storage.ServerFailed, 444: storage.Reset} {
			c := client(t, fmt.Sprintf("%s/%d", s.nginx.URLs["code"], code), preset)
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 1, Timeout: time.Minute}, &heard{})
			if storage.Classify(err) != want {
				t.Errorf("%s, status %d: class %s, want %s: %v", preset, code, storage.Classify(err), want, err)
			}
		}
	}
}

// TestProgressOfCurl checks that during a slow download of a large file its bytes are reported,
// with and without discarding them, and never more bytes than exist.
func TestProgressOfCurl(t *testing.T) {
	of(t, "curl")
	const size, rate = 6 << 20, 2 << 20
	n := labtest.Start(t, lab.NginxConfig{SlowRate: rate})
	require.NoError(t, n.WriteFile("f", file(3, size)))
	for _, op := range []storage.Op{{Size: size}, {Size: -1}, {Size: size, Sum: "crc32c"}} {
		op.Kind, op.Path, op.Timeout = storage.Read, "f", time.Minute
		var h heard
		res, err := client(t, n.URLs["slow"], "curl").Do(t.Context(), &op, &h)
		if err != nil || h.moved != size || h.calls < 2 || res.Size != size {
			t.Errorf("read %+v: %v, %d bytes in %d calls, size %d", op, err, h.moved, h.calls, res.Size)
		}
	}
}

// TestProgressOfAnUpload uses a service that stops in the middle of an upload: the test lets it
// continue only after the bytes sent by then were reported.
func TestProgressOfAnUpload(t *testing.T) {
	of(t, "curl")
	const size = 64 << 20
	n := labtest.Start(t, lab.NginxConfig{})
	require.NoError(t, n.Signal(syscall.SIGSTOP))
	var h heard
	early := int64(0)
	h.onMoved = func() {
		if early == 0 {
			early = h.moved
			if err := n.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
	}
	op := storage.Op{Kind: storage.Write, Path: "f", Size: size, Seed: 5, Timeout: time.Minute}
	_, err := client(t, n.URL, "curl").Do(t.Context(), &op, &h)
	if err != nil || h.moved != size || early >= size {
		t.Errorf("%v: %d bytes, the first report after %d of %d", err, h.moved, early, size)
	}
	got, err := os.ReadFile(filepath.Join(n.Data, "f"))
	if err != nil || len(got) != size || !content.Equal(got, 5, 0) {
		t.Errorf("the file is not what was to be written: %d bytes, %v", len(got), err)
	}
}

// TestCredentialsAreKept checks that a password or token reaches the program, but is not part of a
// command line or an error.
func TestCredentialsAreKept(t *testing.T) {
	of(t, "curl")
	const password = `s3cret "word\`
	n := labtest.Start(t, lab.NginxConfig{User: "ada", Password: password, SlowRate: 100_000})
	require.NoError(t, n.WriteFile("f", file(3, 150_000)))
	cred := storage.Credentials{Method: "basic", User: "ada", Password: password}
	c := clientOf(t, storage.Target{URL: parse(t, n.URLs["slow"]), Command: []string{"curl"}, Cred: cred})
	seen := make(chan bool)
	stop := make(chan struct{})
	go func() {
		found := false
		for {
			select {
			case <-stop:
				seen <- found
				return
			default:
				found = found || onACommandLine(`s3cret`)
			}
		}
	}()
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 150_000, Timeout: time.Minute}, &heard{})
	close(stop)
	if err != nil || <-seen {
		t.Errorf("%v, or the password was seen", err)
	}
	cred.Password = "wrong"
	c = clientOf(t, storage.Target{URL: parse(t, n.URL), Command: []string{"curl"}, Cred: cred})
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 1}, &heard{}); storage.Classify(err) != storage.Denied {
		t.Errorf("a wrong password: %v", err)
	}
	c = clientOf(t, storage.Target{URL: parse(t, n.URL),
		Command: []string{"sh", "-c", `echo "have $BEARER_TOKEN $X509_USER_PROXY $X509_CERT_DIR $LC_ALL $XrdSecPROTOCOL" >&2; exit 1`},
		Cred:    storage.Credentials{Method: "token", Token: "t0ken", From: storage.Auth{ProxyFile: "/p", CADir: "/ca"}}})
	_, err = c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 1}, &heard{})
	if err == nil || !strings.HasSuffix(err.Error(), "have *** /p /ca C ztn") {
		t.Errorf("the program sees %v", err)
	}
	_, err = command.Driver().Open(t.Context(), storage.Target{URL: parse(t, "root://localhost/"), Command: []string{"xrdcp"}, Cred: cred})
	if err == nil || !strings.Contains(err.Error(), "curl") {
		t.Errorf("xrdcp with a password: %v", err)
	}
}

func onACommandLine(word string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && strings.Contains(string(line), word) {
			return true
		}
	}
	return false
}

// TestTLS uses TLS with an authority of its own, with the settings of the common tools.
func TestTLS(t *testing.T) {
	t.Setenv("RES_OPTIONS", "timeout:1 attempts:1") // see TestConformance
	x := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	require.NoError(t, x.WriteFile("f", file(3, 5000)))
	for preset, scheme := range map[string]string{"curl": "https", "gfal-copy": "https", "xrdcp": "roots"} {
		of(t, preset)
		for _, trusted := range []bool{true, false} {
			cred := storage.Credentials{}
			if trusted {
				cred.From = storage.Auth{CAFile: x.CAFile, CADir: x.CADir}
			}
			c := clientOf(t, storage.Target{URL: parse(t, x.URLs[scheme]), Command: []string{preset}, Cred: cred})
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: 5000, Sum: "md5", Timeout: time.Minute}, &heard{})
			if (err == nil) != trusted {
				t.Errorf("%s, authority known %v: %v", preset, trusted, err)
			}
		}
	}
}

// TestTheNullDeviceSurvives checks that a tool that removes its destination first does not reach
// the device.
func TestTheNullDeviceSurvives(t *testing.T) {
	before, err := os.Lstat(os.DevNull)
	require.NoError(t, err)
	s := start(t)
	for _, p := range s.pairs() {
		of(t, p.preset)
		require.NoError(t, p.system.WriteFile("f", file(1, 1000)))
		for _, op := range []storage.Op{{Path: "f", Size: 1000}, {Path: "f", Size: -1}, {Path: "missing", Size: 5}} {
			op.Kind, op.Timeout = storage.Read, time.Minute
			_, err := client(t, p.url, p.preset).Do(t.Context(), &op, &heard{})
			if (err == nil) != (op.Path == "f") {
				t.Errorf("%s: %v", p, err)
			}
		}
		after, err := os.Lstat(os.DevNull)
		if err != nil || !os.SameFile(before, after) {
			t.Fatalf("%s replaced %s: %v, %v", p, os.DevNull, after, err)
		}
	}
}

// TestGfalCopyDiscards checks that data that gfal-copy reads without a checksum is written to a
// device through a link, by each of gfal2's ways, for each read; the link remains a link, and the
// size is known without a request of its own.
func TestGfalCopyDiscards(t *testing.T) {
	s := start(t)
	for _, p := range s.pairs()[4:] {
		t.Run(p.String(), func(t *testing.T) {
			of(t, p.preset)
			const size = 3_000_000
			require.NoError(t, p.system.WriteFile("f", file(1, size)))
			null, err := os.Stat(os.DevNull)
			require.NoError(t, err)
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			c := client(t, p.url, p.preset)
			for i, want := range []int64{size, -1, -1} {
				var h heard
				res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: want, Timeout: time.Minute}, &h)
				if err != nil || h.moved != size || res.Size != size {
					t.Errorf("read %d: %d bytes moved, size %d, %v", i, h.moved, res.Size, err)
				}
				files, err := filepath.Glob(filepath.Join(dir, "weir-command-*", "client-*"))
				if err != nil || len(files) != 1 {
					t.Fatalf("read %d: the scratch folder has %q, %v; want a link only", i, files, err)
				}
				if to, err := os.Readlink(files[0]); err != nil || to != os.DevNull {
					t.Errorf("read %d: the link leads to %q, %v", i, to, err)
				}
			}
			if now, err := os.Stat(os.DevNull); err != nil || now.Mode() != null.Mode() || !os.SameFile(now, null) {
				t.Errorf("%s is another file now: %v", os.DevNull, err)
			}
		})
	}
}
