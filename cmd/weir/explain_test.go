package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/run"
	"weir/storage/diagnosis"
)

// certified serves h with a certificate of its own for localhost that is valid for two days and
// expires at until. It returns the URL and the file with which clients trust the certificate.
// changes modify the certificate and the configuration of TLS first.
func certified(t *testing.T, h http.Handler, until time.Time, changes ...func(*x509.Certificate, *tls.Config)) (target, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		Subject: pkix.Name{CommonName: "localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{}
	for _, change := range changes {
		change(cert, s.TLS)
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	require.NoError(t, err)
	s.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ca, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), 0o600))
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return "https://localhost:" + port, ca
}

// difficult serves responses that prevent a run from beginning.
func difficult(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/login":
		w.Header().Add("WWW-Authenticate", `Basic realm="data"`)
		w.Header().Add("WWW-Authenticate", `Bearer scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
	case "/token":
		w.Header().Add("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	case "/negotiate":
		w.Header().Add("WWW-Authenticate", "Negotiate")
		w.WriteHeader(http.StatusUnauthorized)
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "/s3":
		answerPage(w, http.StatusForbidden, "application/xml", "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
	case "/certificate": // of nginx
		answerPage(w, http.StatusBadRequest, "text/html", "<html><head><title>400 No required SSL certificate was sent</title></head></html>")
	case "/busy":
		w.WriteHeader(http.StatusTooManyRequests)
	case "/broken":
		answerPage(w, http.StatusInternalServerError, "text/html", "<title>500 Internal Server Error</title><h1>Cannot open the index</h1>")
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
	case "/sizes/a": // content made on demand: its length is not known in advance
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

func answerPage(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// unwritable serves folders that take no writes: the first segment of the path is the status of
// MKCOL, the second segment is the status of PUT.
func unwritable(w http.ResponseWriter, r *http.Request) {
	var mkcol, put int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d/%d/", &mkcol, &put) // 0 if the path has no status
	switch r.Method {
	case "MKCOL":
		w.WriteHeader(mkcol)
	case http.MethodPut:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(put)
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// A contact is a target with keys of a scenario or options, and the kind of the error that ends the
// run.
type contact struct {
	kind   diagnosis.Kind
	target string
	sets   []string
}

// Each error that ends a run at its first contact has a kind, and a line of its own with advice.
func TestErrorsSayWhatToDo(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
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
	contacts := []contact{
		{diagnosis.SpeaksTLS, strings.Replace(good, "https", "http", 1) + "/data", nil},
		{diagnosis.SpeaksNoTLS, strings.Replace(web.URL, "http", "davs", 1) + "/data", nil},
		{diagnosis.UnknownCA, good, nil},
		{diagnosis.Expired, old, []string{"auth.ca_file=" + oldCA}},
		{diagnosis.OtherName, strings.Replace(good, "localhost", "127.0.0.1", 1), []string{"auth.ca_file=" + ca}},
		{diagnosis.Credentials, web.URL + "/login", nil},
		{diagnosis.Forbidden, web.URL + "/forbidden", nil},
		{diagnosis.NoListing, web.URL + "/unlisted", nil},
		{diagnosis.NoFiles, web.URL + "/empty", nil},
		{diagnosis.NoFiles, "file://" + folder + "/empty", nil},
		{diagnosis.IsFile, "file://" + folder + "/file", []string{"workload.kind=write", "workload.size=1KiB"}},
		{diagnosis.Redirected, web.URL + "/moved", nil},
		{diagnosis.NoSizes, web.URL + "/sizes", []string{parts}},
		{diagnosis.WrongSize, "file://" + folder, []string{parts, "files.list=" + list}},
		{diagnosis.Missing, web.URL + "/nothing", nil},
		{diagnosis.Missing, "file://" + folder + "/nothing", nil},
		{diagnosis.Refused, "http://127.0.0.1:1/data", nil},
		{diagnosis.UnknownHost, "http://no-such-host.invalid/data", nil},
	}
	contacts = append(contacts, furtherContacts(t, folder)...)
	texts := make([]string, len(contacts))
	t.Run("contacts", func(t *testing.T) { // it ends when all contacts have ended
		for i, c := range contacts {
			t.Run(string(c.kind), func(t *testing.T) {
				t.Parallel() // most contacts wait
				texts[i] = explained(t, c.target, c.kind, c.sets, folder)
			})
		}
	})
	golden(t, "testdata/errors.golden", strings.Join(texts, ""))
}

// explained returns the error of the first contact with a target, without the parts that differ
// each time, and fails t unless the error has the given kind.
func explained(t *testing.T, target string, kind diagnosis.Kind, sets []string, folder string) string {
	t.Helper()
	err := firstError(t, target, sets)
	var e *run.Explained
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("%s: %v, want kind %q", target, err, kind)
		return ""
	}
	if _, code := outcome(err); code != exitError || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%s: exit code %d, %q", target, code, err)
	}
	text := regexp.MustCompile(`127\.0\.0\.1:\d{3,}|localhost:\d{3,}`).ReplaceAllString(strings.ReplaceAll(err.Error(), folder, "/folder"),
		"HOST:PORT")
	text = regexp.MustCompile(` on [0-9.:\[\]a-f]+:53|current time \S+ is (after|before) \S+`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`weir-\d{8}-\d{6}-[0-9a-f]{6}`).ReplaceAllString(text, "weir-RUN")
	text = regexp.MustCompile(`\S+/ca\.pem`).ReplaceAllString(text, "/folder/ca.pem")
	return fmt.Sprintf("[%s]\n%s\n\n", kind, text)
}

// firstError runs the command on a target and returns its error.
func firstError(t *testing.T, target string, sets []string) error {
	t.Helper()
	args := []string{"run", target, "--clients", "1", "--duration", "1s", "-q", "--out", filepath.Join(t.TempDir(), "run")}
	for _, set := range sets {
		if strings.HasPrefix(set, "--") {
			args = append(args, set)
		} else {
			args = append(args, "--set", set)
		}
	}
	root := newRoot(streams{out: io.Discard, err: io.Discard})
	root.SetArgs(args)
	return root.ExecuteContext(t.Context())
}

// golden compares text with a file, or writes it if WEIR_UPDATE is set.
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

// The protocol of one real server is used with the port of another.
func TestProtocolsMixedUp(t *testing.T) {
	t.Parallel()
	nginx := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}})
	xrd := labtest.Start(t, lab.XRootDConfig{})
	ftp := labtest.Start(t, lab.GridFTPConfig{})
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
	for _, scheme := range []string{"root", "http"} {
		if err := firstError(t, xrd.URLs[scheme]+"/"+only(t, xrd.Data), []string{"--fail-on=never"}); err != nil {
			t.Errorf("a file at XRootD as the target, by %s: %v", scheme, err)
		}
	}
}

// TestRefusalsOfRealServers: refusals because of missing or wrong credentials, certificates and
// paths have their own kinds, and a hint that names the cause.
func TestRefusalsOfRealServers(t *testing.T) {
	t.Parallel()
	_, ca := certified(t, http.NotFoundHandler(), time.Now().Add(time.Hour))
	nginx := labtest.Start(t, lab.NginxConfig{User: "ada", Password: "secret", Extra: "location /plain { auth_basic off; autoindex on; }"})
	ztn := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	strict := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true},
		Extra: "ssl_verify_client on; ssl_client_certificate " + ztn.CAFile + ";"})
	ftp := labtest.Start(t, lab.ProFTPDConfig{})
	s3 := labtest.Start(t, lab.S3Config{})
	xrd := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(nginx.Data), "plain"), 0o755))
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("wrong"), 0o600))
	right := filepath.Join(t.TempDir(), "right")
	require.NoError(t, os.WriteFile(right, []byte("secret"), 0o600))
	auth := func(method string) []string { return []string{"auth={" + method + "_file: " + secret + "}"} }
	write := []string{"workload.kind=write", "workload.size=1KiB"}
	for _, tt := range []struct {
		target string
		sets   []string
		kind   diagnosis.Kind
		hint   string
	}{
		{nginx.URL, nil, diagnosis.Credentials, "asks for Basic"},
		{nginx.URL, auth("method: basic, user: ada, password"), diagnosis.Credentials, "refused user ada with the password in " + secret},
		{nginx.URL, auth("method: token, token"), diagnosis.Credentials, "asks for Basic"},
		{strings.Replace(nginx.URL, "/data", "/plain", 1), write, diagnosis.NoWrites, "takes no writes"},
		{strict.URLs["https"], []string{"auth.ca_file=" + strict.CAFile}, diagnosis.ClientCert, "asks for a client certificate"},
		{strict.URLs["https"], []string{"auth={ca_file: " + strict.CAFile + ", method: x509, cert_file: " + ca + "}"},
			diagnosis.ClientCert, "refused the certificate in " + ca},
		{ftp.URL, nil, diagnosis.Credentials, "anonymous login"},
		{ftp.URL, auth("method: basic, user: ada, password"), diagnosis.Credentials, "refused user ada with the password in " + secret},
		{ftp.URL + "/nothing", []string{"auth={method: basic, user: ada, password_file: " + right + "}"}, diagnosis.Missing, "path"},
		{s3.URL, nil, diagnosis.Credentials, "auth.method: s3"},
		{s3.URL, auth("method: s3, user: nobody, password"), diagnosis.Credentials, "refused access key nobody"},
		{s3.URL, auth("method: s3, user: " + s3.Settings[lab.S3Key] + ", password"), diagnosis.Credentials, "with the secret key in " + secret},
		{ztn.URL, auth("ca_file: " + ztn.CAFile + ", method: token, token"), diagnosis.Forbidden, "refused the token in " + secret},
		{xrd.URLs["root"] + "/nothing", nil, diagnosis.Missing, "path"},
	} {
		var e *run.Explained
		if err := firstError(t, tt.target, tt.sets); !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Hint(), tt.hint) {
			t.Errorf("%s: %v, want kind %q and %q", tt.target, err, tt.kind, tt.hint)
		}
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
