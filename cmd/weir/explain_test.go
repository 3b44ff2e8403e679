package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/run"
	"weir/storage/diagnosis"
)

// certified serves h with a certificate of its own for localhost that was valid
// until then, and returns its URL and the file that makes it trusted.
func certified(t *testing.T, h http.Handler, until time.Time) (target, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return "https://localhost:" + port, ca
}

// difficult serves what keeps a run from beginning.
func difficult(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/login":
		w.Header().Add("WWW-Authenticate", `Basic realm="data"`)
		w.Header().Add("WWW-Authenticate", `Bearer scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "/moved":
		http.Redirect(w, r, "/elsewhere/", http.StatusFound)
	case "/sizes", "/elsewhere", "/empty":
		w.Header().Set("Content-Type", "text/html")
		switch r.Method {
		case http.MethodHead, http.MethodGet:
			_, _ = io.WriteString(w, map[string]string{"/empty": "<html>"}[path]+`<a href="../">..</a><a href="`+
				map[string]string{"/sizes": "a", "/elsewhere": "a"}[path]+`">`)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	case "/sizes/a": // content made on demand: its length is not known before
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "on demand")
	case "/file":
		if strings.HasSuffix(r.URL.Path, "/") {
			w.WriteHeader(http.StatusNotFound)
		}
	case "/unlisted":
		w.WriteHeader(map[string]int{http.MethodGet: http.StatusForbidden, http.MethodHead: http.StatusForbidden,
			"PROPFIND": http.StatusMethodNotAllowed}[r.Method])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Each error that ends a run at its first contact is known by its kind, and says what
// to do in a line of its own.
func TestErrorsSayWhatToDo(t *testing.T) {
	lab.Slow(t, "waits for time limits")
	day := 24 * time.Hour
	web := httptest.NewServer(http.HandlerFunc(difficult))
	t.Cleanup(web.Close)
	good, ca := certified(t, http.HandlerFunc(difficult), time.Now().Add(day))
	old, oldCA := certified(t, http.HandlerFunc(difficult), time.Now().Add(-day))
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "empty"), 0o700))
	list := filepath.Join(folder, "list.txt")
	require.NoError(t, os.WriteFile(list, []byte("file 5\n"), 0o600))
	parts := "workload.part={size: 4KiB, count: 8}"
	var told strings.Builder
	for _, tt := range []struct {
		kind   diagnosis.Kind
		target string
		sets   []string
	}{
		{diagnosis.SpeaksTLS, strings.Replace(good, "https", "http", 1) + "/data", nil},
		{diagnosis.SpeaksNoTLS, strings.Replace(web.URL, "http", "davs", 1) + "/data", nil},
		{diagnosis.OtherProtocol, strings.Replace(web.URL, "http", "root", 1) + "//data", nil},
		{diagnosis.UnknownCA, good, nil},
		{diagnosis.Expired, old, []string{"auth.ca_file=" + oldCA}},
		{diagnosis.OtherName, strings.Replace(good, "localhost", "127.0.0.1", 1), []string{"auth.ca_file=" + ca}},
		{diagnosis.Credentials, web.URL + "/login", nil},
		{diagnosis.Forbidden, web.URL + "/forbidden", nil},
		{diagnosis.NoListing, web.URL + "/unlisted", nil},
		{diagnosis.NoFiles, web.URL + "/empty", nil},
		{diagnosis.NoFiles, "file://" + folder + "/empty", nil},
		{diagnosis.IsFile, web.URL + "/file", nil},
		{diagnosis.IsFile, "file://" + folder + "/file", nil},
		{diagnosis.Redirected, web.URL + "/moved", nil},
		{diagnosis.NoSizes, web.URL + "/sizes", []string{parts}},
		{diagnosis.WrongSize, "file://" + folder, []string{parts, "files.list=" + list}},
		{diagnosis.Missing, web.URL + "/nothing", nil},
		{diagnosis.Missing, "file://" + folder + "/nothing", nil},
		{diagnosis.Refused, "http://127.0.0.1:1/data", nil},
		{diagnosis.UnknownHost, "http://no-such-host.invalid/data", nil},
	} {
		err := firstError(t, tt.target, tt.sets)
		var e *run.Explained
		if !errors.As(err, &e) || e.Kind != tt.kind {
			t.Errorf("%s: %v, want kind %q", tt.target, err, tt.kind)
			continue
		}
		if _, code := outcome(err); code != exitError || strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", tt.target, code, err)
		}
		text := regexp.MustCompile(`127\.0\.0\.1:\d{3,}|localhost:\d{3,}`).ReplaceAllString(strings.ReplaceAll(err.Error(), folder, "/folder"),
			"HOST:PORT")
		text = regexp.MustCompile(` on [0-9.:\[\]a-f]+:53|current time \S+ is after \S+`).ReplaceAllString(text, "")
		fmt.Fprintf(&told, "[%s]\n%s\n\n", tt.kind, text)
	}
	golden(t, "testdata/errors.golden", told.String())
}

// firstError runs the command on a target and returns its error.
func firstError(t *testing.T, target string, sets []string) error {
	t.Helper()
	args := []string{"run", target, "--clients", "1", "--duration", "1s", "-q", "--out", filepath.Join(t.TempDir(), "run")}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	root := newRoot(streams{out: io.Discard, err: io.Discard})
	root.SetArgs(args)
	return root.ExecuteContext(t.Context())
}

// golden compares text with a file, or writes it where WEIR_UPDATE is set.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if os.Getenv("WEIR_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(want, []byte(text)) {
		t.Errorf("%s differs (WEIR_UPDATE=1 writes it), %v:\n%s", path, err, text)
	}
}

// Ports and protocols of real servers mixed up.
func TestProtocolsMixedUp(t *testing.T) {
	t.Parallel()
	nginx := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}})
	xrd := lab.StartXRootD(t, lab.XRootDConfig{})
	ftp := lab.StartGridFTP(t, lab.GridFTPConfig{})
	as := func(scheme, of string) string {
		u, err := url.Parse(of)
		require.NoError(t, err)
		return scheme + "://" + u.Host + "//data"
	}
	for _, tt := range []struct {
		target string
		kind   diagnosis.Kind
	}{
		{as("http", nginx.URLs["https"]), diagnosis.SpeaksTLS},
		{as("https", nginx.URL), diagnosis.SpeaksNoTLS},
		{as("root", nginx.URLs["https"]), diagnosis.OtherProtocol},
		{as("roots", nginx.URL), diagnosis.OtherProtocol},
		{as("roots", xrd.URLs["root"]), diagnosis.SpeaksNoTLS},
		{as("https", ftp.URL), diagnosis.OtherProtocol},
		{as("http", ftp.URL), diagnosis.OtherProtocol},
		{as("root", ftp.URL), diagnosis.OtherProtocol},
	} {
		var e *run.Explained
		if err := firstError(t, tt.target, nil); !errors.As(err, &e) || e.Kind != tt.kind {
			t.Errorf("%s: %v, want kind %q", tt.target, err, tt.kind)
		}
	}
	fill(t, xrd.Data, 1, 1000)
	file := firstError(t, xrd.URLs["root"]+"/"+only(t, xrd.Data), nil)
	var e *run.Explained
	if !errors.As(file, &e) || e.Kind != diagnosis.IsFile {
		t.Errorf("a file at XRootD as the target: %v", file)
	}
}

// only returns the name of the only file in dir.
func only(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries[0].Name()
}
