package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/transfer"
)

func message() (*Message, []byte) {
	m := &Message{
		ID: "7-abc", Type: "request.partial", Time: time.Unix(1e9, 0).UTC(), Coordinator: "https://weir.example:9443",
		Text:      "request 7 ended as partial: 8 of 10 files are at C",
		Request:   &transfer.Request{ID: 7, Submission: transfer.Submission{Dataset: "/store/run\n1", To: "C"}, Status: transfer.Partial},
		Files:     []File{{Name: "/store/f1", State: transfer.FileFailed, Reason: "A: it has no such file: größer\nBcc: evil@example.org"}},
		MoreFiles: 1,
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return m, body
}

func send(t *testing.T, target Target) (time.Duration, error) {
	t.Helper()
	target.Name = "x"
	s, err := New(target)
	require.NoError(t, err)
	m, body := message()
	return s.Send(t.Context(), m, body)
}

// A webhook receives the message with a signature according to standardwebhooks.com. Only 2xx is
// success, and redirects are not followed.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body []byte
	status, led := http.StatusNoContent, false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/led" {
			led = true
		}
		got = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/led")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	key := []byte("a key of bytes")
	target := Target{Webhook: server.URL + "/secret-path", Secret: "whsec_" + base64.StdEncoding.EncodeToString(key), CAFile: ca,
		Private: true}
	if _, err := send(t, target); err != nil {
		t.Fatal(err)
	}
	if _, want := message(); !bytes.Equal(body, want) {
		t.Errorf("%s", body)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", "7-abc", got.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.Get("webhook-signature") != want ||
		got.Get("webhook-id") != "7-abc" {
		t.Errorf("%v, want %s", got, want)
	}
	for _, status = range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusInternalServerError, http.StatusTooManyRequests} {
		after, err := send(t, target)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) || strings.Contains(err.Error(), "secret-path") ||
			after != 7*time.Second || led {
			t.Errorf("%d: %v, %v", status, after, err)
		}
	}
	status, target.CAFile = http.StatusOK, ""
	if _, err := send(t, target); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("an unknown authority: %v", err)
	}
}

// A webhook never connects to an address that the guard refuses, not even by a name.
func TestWebhookAddresses(t *testing.T) {
	t.Parallel()
	for address, private := range map[string]bool{
		"https://127.0.0.1/": false, "https://10.1.2.3/x": false, "https://[::1]/": false, "https://[::ffff:192.168.1.1]/": false,
		"https://169.254.169.254/latest": true, "https://[fe80::1]/": true, "https://0.0.0.0/": true, "http://hooks.example/": false,
		"https://u:p@hooks.example/": true, "ftp://hooks.example/": true, "file:///etc/passwd": true,
	} {
		target := Target{Name: "x", Webhook: address, Private: private}
		if err := target.Check(); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, err := send(t, Target{Webhook: "https://localhost:9/"})
	if !errors.Is(err, tpc.ErrRefused) {
		t.Errorf("localhost: %v", err)
	}
}

// A command receives its arguments and JSON, and no secret of this process. It is killed together
// with its child processes.
func TestCommand(t *testing.T) {
	t.Setenv("PGPASSWORD", "hush")
	t.Setenv("WEIR_DB", "postgres://u:hush@h/d")
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := `printf '%s\n' "$@" > "$0"; env >> "$0"; cat >> "$0"`
	if _, err := send(t, Target{Command: []string{"sh", "-c", script, out, "--id={id}", "{request}", "{type} {text}",
		`{"other": 1}`}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	_, body := message()
	begin := "--id=7-abc\n7\nrequest.partial request 7 ended as partial: 8 of 10 files are at C\n{\"other\": 1}\n"
	if !strings.HasPrefix(string(text), begin) || !strings.HasSuffix(string(text), string(body)+"\n") ||
		strings.Contains(string(text), "hush") {
		t.Errorf("%s", text)
	}
	_, err = send(t, Target{Command: []string{"sh", "-c", "echo it is full >&2; exit 3"}})
	if err == nil || !strings.Contains(err.Error(), "it is full") || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	if _, err = send(t, Target{Command: []string{"/nowhere/program"}}); err == nil {
		t.Error("a program that is not there was run")
	}
	child := filepath.Join(dir, "child")
	_, err = send(t, Target{Command: []string{"sh", "-c", `sleep 1000 & echo $! > "$0"; wait`, child}, Timeout: 300 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	text, err = os.ReadFile(child)
	require.NoError(t, err)
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	for alive := true; alive; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		alive = err == nil && !strings.Contains(string(stat), ") Z ") && syscall.Kill(pid, 0) == nil
	}
}

// A mail has its recipients, and names of files cannot add other recipients.
func TestMail(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "mail")
	target := Target{Mail: []string{"ops@example.org", "Ada <ada@example.org>"}, From: "weir@example.org",
		Sendmail: []string{"sh", "-c", `cat > "$0"`, out}}
	if _, err := send(t, target); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(out)
	require.NoError(t, err)
	defer f.Close()
	m, err := mail.ReadMessage(f)
	require.NoError(t, err)
	to, err := m.Header.AddressList("To")
	if err != nil || len(to) != 2 || to[1].Address != "ada@example.org" || len(m.Header["Bcc"]) > 0 {
		t.Errorf("%v, %v", m.Header, err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "weir: request 7 ended as partial: 8 of 10 files are at C" {
		t.Errorf("%q, %v", subject, err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil || !strings.Contains(string(text), "/store/f1: A: it has no such file: größer Bcc: evil@example.org\n") ||
		!strings.Contains(string(text), "and 1 more") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCheckOfTargets(t *testing.T) {
	t.Parallel()
	good := Target{Name: "x", Command: []string{"true"}}
	if err := good.Check(); err != nil || good.Wants(transfer.Completed) || !good.Wants(transfer.Expired) || good.Wants(transfer.Running) {
		t.Error(err)
	}
	for name, bad := range map[string]Target{
		"no name": {Command: []string{"x"}}, "nothing": {Name: "x"}, "two": {Name: "x", Command: []string{"x"}, Mail: []string{"a@b.c"}},
		"no end": {Name: "x", Command: []string{"x"}, On: []transfer.Status{transfer.Running}},
		"late":   {Name: "x", Command: []string{"x"}, Timeout: time.Hour},
		"secret": {Name: "x", Command: []string{"x"}, Secret: "s"}, "from": {Name: "x", Command: []string{"x"}, From: "a@b.c"},
		"address": {Name: "x", Mail: []string{"a@b.c\nBcc: d@e.f"}}, "sender": {Name: "x", Mail: []string{"a@b.c"}, From: "nobody"},
		"subject": {Name: "x", Command: []string{"x", "{subject}"}}, "program": {Name: "x", Command: []string{"x-{type}"}},
		"empty": {Name: "x", Mail: []string{""}}, "base64": {Name: "x", Webhook: "https://a.example/", Secret: "whsec_*"},
	} {
		if bad.Check() == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}
