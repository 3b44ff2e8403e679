package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/run"
	"weir/storage/diagnosis"
)

// furtherContacts returns first contacts that fail because of credentials, certificates, files of
// this machine and folders that refuse writes. folder contains a file and an empty folder.
func furtherContacts(t *testing.T, folder string) []contact {
	t.Helper()
	web, dav := httptest.NewServer(http.HandlerFunc(difficult)), httptest.NewServer(http.HandlerFunc(unwritable))
	bucket := httptest.NewServer(http.HandlerFunc(folders))
	t.Cleanup(bucket.Close)
	t.Cleanup(web.Close)
	t.Cleanup(dav.Close)
	secret := filepath.Join(folder, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("wrong\n"), 0o600))
	file := func(key, value string) []string { return []string{"auth={" + key + ": " + value + "}"} }
	token := file("method: token, token_file", secret)
	basic := file("method: basic, user: ada, password_file", secret)
	s3 := file("method: s3, user: AK, password_file", secret)
	write, made := []string{"workload.kind=write", "workload.size=1KiB"}, []string{"files.make={count: 1, size: 1KiB}"}
	outputs := []string{"workload={kind: job, job: {events: 1, event_size: 1KiB, output_size: 1KiB}}",
		"files.list=" + filepath.Join(folder, "jobs.txt")}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "jobs.txt"), []byte("f 5000\n"), 0o600))
	below := func(status string, kind diagnosis.Kind, sets []string) contact {
		return contact{kind, dav.URL + "/" + status + "/", sets}
	}
	nothing := filepath.Join(folder, "nothing")
	return append([]contact{
		{diagnosis.Credentials, web.URL + "/login", basic},
		{diagnosis.Credentials, web.URL + "/login", token},
		{diagnosis.Credentials, web.URL + "/token", token},
		{diagnosis.Credentials, web.URL + "/token", basic},
		{diagnosis.Credentials, web.URL + "/negotiate", nil},
		{diagnosis.Forbidden, web.URL + "/forbidden", token},
		{diagnosis.Forbidden, web.URL + "/forbidden", basic},
		{diagnosis.Credentials, web.URL + "/s3", nil},
		{diagnosis.Credentials, web.URL + "/s3", s3},
		{diagnosis.ClientCert, web.URL + "/certificate", nil},
		{diagnosis.Busy, web.URL + "/busy", nil},
		{diagnosis.ServerFailed, web.URL + "/broken", nil},
		{diagnosis.LocalFile, web.URL + "/sizes", file("method: token, token_file", nothing)},
		{diagnosis.LocalFile, web.URL + "/sizes", file("method: basic, user: ada, password_file", nothing)},
		{diagnosis.LocalFile, web.URL + "/sizes", file("ca_file", nothing)},
		{diagnosis.LocalFile, web.URL + "/sizes", file("method: x509, cert_file", nothing)},
		{diagnosis.LocalFile, "file://" + folder, file("ca_file", nothing)},
		{diagnosis.LocalFile, web.URL + "/sizes", []string{"--out=" + filepath.Join(folder, "file", "run")}},
		{diagnosis.LocalFile, web.URL + "/sizes", []string{"--out=/proc/nothing/run"}},
		below("405/405", diagnosis.NoWrites, write),
		below("201/405", diagnosis.NoWrites, made),
		below("501/501", diagnosis.NoWrites, made),
		below("403/403", diagnosis.Forbidden, write),
		below("201/403", diagnosis.Forbidden, made),
		below("201/403", diagnosis.Forbidden, write),
		below("201/401", diagnosis.Credentials, write),
		below("201/405", diagnosis.NoWrites, write),
		below("201/507", diagnosis.NoSpace, write),
		below("201/403", diagnosis.Forbidden, outputs),
		{diagnosis.Forbidden, bucket.URL + "/bucket", append(s3, write...)},
		{diagnosis.Forbidden, storeRefusing(t, "550 Permission denied."), write},
		{diagnosis.Forbidden, storeRefusing(t, "553 Could not create file."), write},
		{diagnosis.NoWrites, storeRefusing(t, "502 STOR not implemented."), write},
		below("507/507", diagnosis.NoSpace, write),
		below("201/507", diagnosis.NoSpace, made),
		below("409/409", diagnosis.Missing, write),
		below("500/500", diagnosis.ServerFailed, write),
		{diagnosis.Missing, "file://" + nothing, write},
		{diagnosis.Refused, "root://127.0.0.1:1//data", nil},
		{diagnosis.Refused, "ftp://127.0.0.1:1/data", nil},
		{diagnosis.SpeaksTLS, loginRefusing(t, "550 SSL/TLS required on the control channel"), nil},
		{diagnosis.Credentials, loginRefusing(t, "530 Login incorrect."), nil},
		{diagnosis.Credentials, loginRefusing(t, "530 Login incorrect."), basic},
		{diagnosis.Credentials, loginRefusing(t, "500 OOPS: vsftpd: refusing to run with writable root inside chroot()"), write},
		{diagnosis.Busy, loginRefusing(t, "421 There are too many connected users, please try later."), nil},
		{diagnosis.UnknownHost, "root://no-such-host.invalid//data", nil},
		{diagnosis.UnknownHost, "ftp://no-such-host.invalid/data", nil},
	}, certificates(t)...)
}

// folders serves a bucket that accepts folders and refuses files.
func folders(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && !strings.HasSuffix(r.URL.Path, "/") {
		w.WriteHeader(http.StatusForbidden)
	}
}

// loginRefusing serves FTP that refuses passwords, and returns its URL.
func loginRefusing(t *testing.T, refusal string) (target string) {
	return ftpServer(t, map[string]string{"USER": "331 password", "PASS": refusal})
}

// storeRefusing serves FTP that makes folders and refuses files.
func storeRefusing(t *testing.T, refusal string) (target string) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	return ftpServer(t, map[string]string{"USER": "230 welcome", "TYPE": "200 binary", "MKD": "257 made", "RMD": "250 removed",
		"EPSV": fmt.Sprintf("229 entered (|||%d|)", port), "PASV": fmt.Sprintf("227 entered (127,0,0,1,%d,%d)", port>>8, port&0xff),
		"SIZE": "550 No such file", "STOR": refusal})
}

// ftpServer serves FTP, replies to the commands in answers, and refuses all other commands. It
// returns its URL.
func ftpServer(t *testing.T, answers map[string]string) (target string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			all.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, "220 ready\r\n")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					command, _, _ := strings.Cut(lines.Text(), " ")
					answer := cmp.Or(answers[command], "502 not implemented")
					if _, err := io.WriteString(c, answer+"\r\n"); err != nil || command == "PASS" {
						return
					}
				}
			})
		}
	})
	return "ftp://" + l.Addr().String() + "/"
}

// disks returns first contacts with folders of this machine that accept no file, on a full disk and
// on a read-only disk.
func disks(t *testing.T) []contact {
	t.Helper()
	if os.Geteuid() != 0 {
		tier.Without(t, "mount", "mounting a disk needs root")
	}
	full, fixed, files := filepath.Join(t.TempDir(), "full"), filepath.Join(t.TempDir(), "fixed"), filepath.Join(t.TempDir(), "files")
	for disk, options := range map[string]string{full: "size=64k", fixed: "ro", files: "nr_inodes=2"} {
		require.NoError(t, os.Mkdir(disk, 0o700))
		var flags uintptr
		if options == "ro" {
			flags, options = syscall.MS_RDONLY, ""
		}
		require.NoError(t, syscall.Mount("weir-test", disk, "tmpfs", flags, options))
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, 0)) })
	}
	made := []string{"files.make={count: 1, size: 1MiB}"}
	web := httptest.NewServer(http.HandlerFunc(difficult))
	t.Cleanup(web.Close)
	return []contact{
		{diagnosis.NoSpace, "file://" + full, made},
		{diagnosis.NoWrites, "file://" + fixed, made},
		{diagnosis.NoSpace, "file://" + files, []string{"workload.kind=write", "workload.size=1KiB"}}, // it has room for the run's folder
		{diagnosis.LocalFile, web.URL + "/sizes", []string{"--out=" + fixed + "/run"}},
	}
}

// TestDisksThatTakeNoFile: the reported reason is the disk, not the path or the permissions.
func TestDisksThatTakeNoFile(t *testing.T) {
	for _, c := range disks(t) {
		text := explained(t, c.target, c.kind, c.sets, "/folder")
		if strings.Contains(text, "check the path") || strings.Contains(text, "auth.method") {
			t.Error(text)
		}
		t.Log(text)
	}
}

// certificates returns first contacts with servers that end a run by their certificates or by their
// requests for certificates.
func certificates(t *testing.T) []contact {
	t.Helper()
	day := 24 * time.Hour
	h := http.HandlerFunc(difficult)
	future, futureCA := certified(t, h, time.Now().Add(3*day))
	nameless, namelessCA := certified(t, h, time.Now().Add(day), func(c *x509.Certificate, _ *tls.Config) { c.DNSNames = nil })
	asking := func(version uint16) (target, ca string) {
		return certified(t, h, time.Now().Add(day), func(_ *x509.Certificate, c *tls.Config) {
			c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, x509.NewCertPool(), version
		})
	}
	asks, asksCA := asking(tls.VersionTLS13)
	asks2, asks2CA := asking(tls.VersionTLS12)
	own := "auth={ca_file: CA, method: x509, cert_file: CA}" // a certificate that the server does not trust
	return []contact{
		{diagnosis.NotYetValid, future, []string{"auth.ca_file=" + futureCA}},
		{diagnosis.NoNames, nameless, nil},
		{diagnosis.NoNames, nameless, []string{"auth.ca_file=" + namelessCA}},
		{diagnosis.ClientCert, asks, []string{"auth.ca_file=" + asksCA}},
		{diagnosis.ClientCert, asks, []string{strings.ReplaceAll(own, "CA", asksCA)}},
		{diagnosis.TLSRefused, asks2, []string{"auth.ca_file=" + asks2CA}},
		{diagnosis.ClientCert, asks2, []string{strings.ReplaceAll(own, "CA", asks2CA)}},
	}
}

// TestSilenceSaysWhatToDo: a run with a target that does not respond reports the step that it waits
// for, and ends with the reason.
func TestSilenceSaysWhatToDo(t *testing.T) {
	tier.Full(t, "half a minute of silence")
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(difficult))
	t.Cleanup(web.Close)
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel accepts its connections
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	at := mute.Addr().String()
	t.Run("contacts", func(t *testing.T) {
		for _, c := range []contact{
			{diagnosis.OtherProtocol, strings.Replace(web.URL, "http", "root", 1) + "//data", nil},
			{diagnosis.Silent, "http://" + at + "/data", nil},
			{diagnosis.Silent, "https://" + at + "/data", nil},
			{diagnosis.Silent, "root://" + at + "//data", nil},
			{diagnosis.Silent, "ftp://" + at + "/data", nil},
			{diagnosis.Silent, "http://" + at + "/data", []string{"workload.kind=write", "workload.size=1KiB"}},
		} {
			t.Run(c.target[:4]+" "+string(c.kind), func(t *testing.T) {
				t.Parallel()
				said := &strings.Builder{}
				root := newRoot(streams{out: io.Discard, err: said})
				args := []string{"run", c.target, "--clients", "1", "--duration", "1s", "--out", filepath.Join(t.TempDir(), "run")}
				for _, set := range c.sets {
					args = append(args, "--set", set)
				}
				root.SetArgs(args)
				err := root.ExecuteContext(t.Context())
				var e *run.Explained
				if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(said.String(), "waiting for 127.0.0.1:") {
					t.Errorf("%v, want kind %q; it said %q", err, c.kind, said)
				}
			})
		}
	})
}

// The commands that contact a target without a run print the same advice as runs.
func TestOtherCommandsSayWhatToDo(t *testing.T) {
	t.Parallel()
	var deletion atomic.Int32 // status
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(map[string]int{http.MethodDelete: int(deletion.Load()), "MKCOL": http.StatusCreated, http.MethodPut: http.StatusCreated,
			"PROPFIND": http.StatusNotFound, http.MethodHead: http.StatusNotFound}[r.Method])
	}))
	t.Cleanup(s.Close)
	deletion.Store(http.StatusForbidden)
	dir := filepath.Join(t.TempDir(), "run")
	if code, said := weir(t, "run", "--quiet", "--out", dir, "--target", s.URL, "--clients", "1", "--duration", "1s", "--set",
		"workload={kind: write, size: 1KiB, think: 300ms}"); code == exitUsage || code == exitError {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	clean := func(hint string) {
		t.Helper()
		if code, said := weir(t, "clean", dir); code != exitError || !strings.Contains(said, "\nhint: "+hint) {
			t.Errorf("clean: exit code %d, want the hint %q\n%s", code, hint, said)
		}
	}
	clean("check the rights to this path")
	deletion.Store(http.StatusMethodNotAllowed)
	clean("the server takes no writes at this path")
	s.Close()
	clean("check host and port of target")
}
