package serve

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	requests.MustRun(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
		"/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert)
	const size = 5_000_000
	s := start(t, Config{Synthetic: []Set{{1, size}}, CertFile: cert, KeyFile: key})
	out := filepath.Join(dir, "out")
	requests.MustRun(t, "curl", "-sSf", "--cacert", cert, "-o", out, s.URL()+"/file000000.dat")
	requests.MustRun(t, "curl", "-sSf", "--cacert", cert, "-T", out, s.URL()+"/up")
	if sum := strings.Fields(requests.MustRun(t, "curl", "-sSf", "--cacert", cert, s.URL()+"/metrics")); len(sum) == 0 {
		t.Error("no metrics")
	}
	if got := s.metrics.payloadOut.Load(); got != size {
		t.Errorf("%d bytes counted, want %d", got, size)
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
	if c, err := (&tls.Dialer{Config: old}).DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
		t.Error("TLS 1.1 is accepted")
		_ = c.Close()
	}
	if s, err := New(Config{Synthetic: []Set{{1, 1}}, CertFile: key, KeyFile: key}); err != nil {
		t.Error(err)
	} else if l, err := s.Listen(t.Context()); err != nil {
		t.Error(err)
	} else if err := s.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a key as a certificate: %v", err)
	}
}

func TestCurl(t *testing.T) {
	curl := requests.Program(t, "curl")
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s := start(t, Config{Dir: dir})
	local := requests.Write(t, requests.Content(3, 3_000_000), top, "local")
	requests.MustRun(t, curl, "-sSf", "-T", local, s.URL()+"/up")
	requests.MustRun(t, curl, "-sSf", "-o", filepath.Join(top, "down"), s.URL()+"/up")
	requests.MustRun(t, curl, "-sSf", "-r", "100-1999999", "-o", filepath.Join(top, "part"), s.URL()+"/up")
	requests.MustRun(t, curl, "-sSf", "-C", "2000000", "-o", filepath.Join(top, "rest"), s.URL()+"/up")
	whole := requests.Read(t, local)
	if requests.Read(t, top, "down") != whole || requests.Read(t, dir, "up") != whole ||
		requests.Read(t, top, "part") != whole[100:2_000_000] || requests.Read(t, top, "rest") != whole[2_000_000:] {
		t.Error("curl got or put other bytes")
	}
	requests.MustRun(t, curl, "-sSf", "-X", "MOVE", "-H", "Destination: "+s.URL()+"/moved", s.URL()+"/up")
	if out, err := requests.Run(t, curl, "-sSf", "--path-as-is", s.URL()+"/../local"); err == nil {
		t.Errorf("../local is served: %.100q", out)
	}
}

func TestGfal(t *testing.T) {
	copyTool, list := requests.Program(t, "gfal-copy"), requests.Program(t, "gfal-ls")
	if os.Getenv("GFAL_PYTHONBIN") == "" { // its modules are packaged for the distribution's python
		t.Setenv("GFAL_PYTHONBIN", "/usr/bin/python3")
	}
	top := t.TempDir()
	dir := filepath.Join(top, "served")
	require.NoError(t, os.Mkdir(dir, 0o755))
	s := start(t, Config{Dir: dir})
	local := requests.Write(t, requests.Content(3, 3_000_000), top, "local")
	url := "dav" + strings.TrimPrefix(s.URL(), "http")
	requests.MustRun(t, copyTool, "-p", "-K", "adler32", "file://"+local, url+"/sub/up")
	requests.MustRun(t, copyTool, "-K", "adler32", url+"/sub/up", "file://"+filepath.Join(top, "down"))
	if whole := requests.Read(t, local); requests.Read(t, top, "down") != whole || requests.Read(t, dir, "sub", "up") != whole {
		t.Error("gfal-copy got or put other bytes")
	}
	if out := requests.MustRun(t, list, "-l", url+"/sub/"); !strings.Contains(out, "3000000") || !strings.Contains(out, "up") {
		t.Errorf("gfal-ls: %s", out)
	}
}
