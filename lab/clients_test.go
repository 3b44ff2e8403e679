package lab_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

func TestNginxAnswersItsClients(t *testing.T) {
	labtest.Need(t, "curl", "gfal-copy", "openssl")
	s := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Workers: 2, SlowRate: 100_000})
	want := payload()
	local := filepath.Join(t.TempDir(), "local")
	require.NoError(t, os.WriteFile(local, want, 0o644))
	run(t, nil, "curl", "-sSf", "-T", local, s.URL+"/new/folder/up.dat")
	same(t, filepath.Join(s.Data, "new/folder/up.dat"), want)
	part := run(t, nil, "curl", "-sSf", "-r", "100-199", s.URL+"/new/folder/up.dat")
	if part != string(want[100:200]) {
		t.Error("a range brings other bytes")
	}
	if list := run(t, nil, "curl", "-sSf", s.URL+"/new/folder/"); !strings.Contains(list, `"name":"up.dat"`) {
		t.Errorf("listing is not JSON with the file: %s", list)
	}
	dest := filepath.Join(t.TempDir(), "tls")
	run(t, nil, "curl", "-sSf", "--cacert", s.CAFile, "-o", dest, s.URLs["https"]+"/new/folder/up.dat")
	same(t, dest, want)
	hash := strings.TrimSpace(run(t, nil, "openssl", "x509", "-in", s.CAFile, "-noout", "-subject_hash"))
	if _, err := os.Stat(filepath.Join(s.CADir, hash+".0")); err != nil {
		t.Errorf("openssl looks for another name: %v", err)
	}
	dest = filepath.Join(t.TempDir(), "gfal")
	run(t, append(gfal(), "X509_CERT_DIR="+s.CADir), "gfal-copy", s.URLs["https"]+"/new/folder/up.dat", "file://"+dest)
	same(t, dest, want)
	run(t, nil, "curl", "-sSf", "-X", "DELETE", s.URL+"/new/folder/up.dat")
	for _, code := range []int{401, 403, 404, 429, 500, 503} {
		got := run(t, nil, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", fmt.Sprintf("%s/%d/any/file", s.URLs["code"], code))
		if got != fmt.Sprint(code) {
			t.Errorf("code %d answers %s", code, got)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "curl", "-sS", s.URLs["code"]+"/444/x").CombinedOutput(); err == nil {
		t.Errorf("code 444 answers %q", out)
	}
	if workers := run(t, nil, "ps", "-o", "pid=", "--ppid", fmt.Sprint(s.Pids()[0])); len(strings.Fields(workers)) != 2 {
		t.Errorf("want 2 workers, got %q", workers)
	}
}

func TestNginxAsksForAPassword(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{User: "ada", Password: "s3cret word"})
	require.NoError(t, s.WriteFile("f", []byte("x")))
	for _, c := range []struct {
		user, password string
		want           int
	}{{"", "", 401}, {"ada", "wrong", 401}, {"ada", "s3cret word", 200}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/f", nil)
		require.NoError(t, err)
		if c.user != "" {
			req.SetBasicAuth(c.user, c.password)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%q %q: %d, want %d", c.user, c.password, resp.StatusCode, c.want)
		}
	}
}

func TestNginxSlow(t *testing.T) {
	const rate = 100_000
	s := labtest.Start(t, lab.NginxConfig{SlowRate: rate})
	require.NoError(t, s.WriteFile("f", make([]byte, 2*rate)))
	start := time.Now()
	if n := len(labtest.Get(t, s.URLs["slow"]+"/f")); n != 2*rate {
		t.Fatalf("%d bytes", n)
	}
	// Never faster than its rate, except for the burst at the beginning.
	if d := time.Since(start); d < time.Second {
		t.Errorf("2 seconds' worth of bytes came in %v", d)
	}
}

func TestXRootDAnswersItsClients(t *testing.T) {
	labtest.Need(t, "xrdcp", "xrdfs", "gfal-copy", "curl")
	s := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	want := payload()
	dir := t.TempDir()
	local := filepath.Join(dir, "local")
	require.NoError(t, os.WriteFile(local, want, 0o644))
	run(t, nil, "xrdcp", "-s", local, s.URL+"/up.dat")
	same(t, filepath.Join(s.Data, "up.dat"), want)
	run(t, []string{"X509_CERT_DIR=" + s.CADir}, "xrdcp", "-s", s.URLs["roots"]+"/up.dat", filepath.Join(dir, "tls"))
	same(t, filepath.Join(dir, "tls"), want)
	run(t, gfal(), "gfal-copy", s.URL+"/up.dat", "file://"+filepath.Join(dir, "gfal"))
	same(t, filepath.Join(dir, "gfal"), want)
	run(t, nil, "curl", "-sSf", "-o", filepath.Join(dir, "http"), s.URLs["http"]+"/up.dat")
	same(t, filepath.Join(dir, "http"), want)
	run(t, nil, "curl", "-sSf", "--cacert", s.CAFile, "-o", filepath.Join(dir, "https"), s.URLs["https"]+"/up.dat")
	same(t, filepath.Join(dir, "https"), want)
	server := strings.TrimSuffix(s.URL, "//data")
	for _, sum := range []string{"adler32", "md5", "crc32c"} {
		out := run(t, nil, "xrdfs", server, "query", "checksum", "/data/up.dat?cks.type="+sum)
		if !strings.HasPrefix(out, sum+" ") {
			t.Errorf("checksum %s: %q", sum, out)
		}
		head := run(t, nil, "curl", "-sSf", "-I", "-H", "Want-Digest: "+sum, s.URLs["http"]+"/up.dat")
		if !strings.Contains(head, "Digest: "+sum+"=") {
			t.Errorf("digest %s: %q", sum, head)
		}
	}
	run(t, nil, "xrdfs", server, "rm", "/data/up.dat")
}

// XRootD cannot be configured to listen on one address only.
func TestXRootDRefusesOtherHosts(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	tried := 0
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		tried++
		if err := lab.AskXRootD(net.JoinHostPort(ip.IP.String(), s.Ports()[0].String()))(t.Context()); err == nil {
			t.Errorf("answers a client that comes from %s", ip.IP)
		}
	}
	if tried == 0 {
		t.Skip("this machine has no address besides loopback")
	}
}

func TestGridFTPAnswersItsClients(t *testing.T) {
	labtest.Need(t, "globus-url-copy", "gfal-copy", "gfal-ls")
	s := labtest.Start(t, lab.GridFTPConfig{})
	want := payload()
	dir := t.TempDir()
	local := filepath.Join(dir, "local")
	require.NoError(t, os.WriteFile(local, want, 0o644))
	run(t, nil, "globus-url-copy", "file://"+local, s.URL+"/up.dat")
	same(t, filepath.Join(s.Data, "up.dat"), want)
	run(t, nil, "globus-url-copy", "-p", "4", s.URL+"/up.dat", "file://"+filepath.Join(dir, "streams"))
	same(t, filepath.Join(dir, "streams"), want)
	run(t, gfal(), "gfal-copy", s.URL+"/up.dat", "file://"+filepath.Join(dir, "gfal"))
	same(t, filepath.Join(dir, "gfal"), want)
	if out := run(t, gfal(), "gfal-ls", s.URL); strings.TrimSpace(out) != "up.dat" {
		t.Errorf("gfal-ls says %q", out)
	}
	outside := "ftp://" + s.Ports()[0].Address() + "/etc/passwd"
	if out, err := exec.CommandContext(t.Context(), "globus-url-copy", outside, "file://"+
		filepath.Join(dir, "passwd")).CombinedOutput(); err == nil {
		t.Errorf("a file outside its data was served: %s", out)
	}
}

func same(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s differs: %d bytes of %d, %v", path, len(got), len(want), err)
	}
}
