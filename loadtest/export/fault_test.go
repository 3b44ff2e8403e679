package export_test

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/export"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/results"
	"weir/storage"
)

// A flaky receiver is a proxy of a real receiver. It responds with answer, or forwards the request
// if answer returns false.
type flaky struct {
	*httptest.Server
	to       string
	answer   func(n int, w http.ResponseWriter, r *http.Request) bool
	asked    atomic.Int64
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func newFlaky(t *testing.T, to string, answer func(n int, w http.ResponseWriter, r *http.Request) bool) *flaky {
	t.Helper()
	f := &flaky{to: to, answer: answer}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(f.asked.Add(1))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.requests, f.bodies = append(f.requests, r), append(f.bodies, body)
	f.mu.Unlock()
	if f.answer(n, w, r) {
		return
	}
	if f.to == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, f.to, strings.NewReader(string(body)))
	if err != nil {
		return
	}
	req.Header = r.Header
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
	_ = resp.Body.Close()
}

// hangUp closes the connection of a request without a response.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

// A receiver that recovers from any fault receives all values, each once.
func TestReceiversThatRecover(t *testing.T) {
	for name, answer := range map[string]func(n int, w http.ResponseWriter, r *http.Request) bool{
		"500 twice": func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n <= 2 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return n <= 2
		},
		"429 with Retry-After": func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return n == 1
		},
		"closes in the middle": func(n int, w http.ResponseWriter, _ *http.Request) bool { return n%2 == 1 && n < 6 && hangUp(w) },
		"slow": func(int, http.ResponseWriter, *http.Request) bool {
			<-time.After(50 * time.Millisecond)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			prom := labtest.Start(t, lab.PrometheusConfig{})
			front := newFlaky(t, prom.URLs["write"], answer)
			dir := made(t)
			begin := time.Now()
			r := finished(t, dir, remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
			if r.Refused+r.Left > 0 || r.Err != nil {
				t.Fatalf("%+v", r)
			}
			if name != "slow" && r.Trouble == "" {
				t.Errorf("the trouble is not told: %+v", r)
			}
			if strings.Contains(name, "429") && time.Since(begin) < time.Second {
				t.Error("Retry-After was not waited for")
			}
			exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
		})
	}
}

// A receiver that is down at the start of the run receives the backlog later.
func TestReceiverThatComesLater(t *testing.T) {
	prom := labtest.Start(t, lab.PrometheusConfig{})
	prom.Kill()
	dir := made(t)
	s, err := export.Send(t.Context(), dir, remoteTo(t, prom.URLs["write"]), export.Options{})
	require.NoError(t, err)
	require.NoError(t, prom.Restart(t.Context()))
	if r := s.Finish(time.Minute, 0); r.Refused+r.Left > 0 || r.Sent == 0 {
		t.Fatalf("%+v", r)
	}
	exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
}

// Reports contain only a short part of the text that a receiver sends, without control characters.
func TestReceiverOfManyWords(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	junk := strings.Repeat("\x1b[31m<b>\u202e", 500)
	for name, raw := range map[string]string{
		"no HTTP":          junk,
		"a bad reason":     "HTTP/1.1 503 " + junk + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"a long refusal":   "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + junk,
		"a refusal's name": "HTTP/1.1 400 " + junk + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = c.Write([]byte(raw))
				_ = c.Close()
			}
		}))
		s, err := export.Send(t.Context(), made(t), remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
		require.NoError(t, err)
		r := s.Finish(3*time.Second, 0)
		front.Close()
		said := r.Reason + r.Trouble
		if len(said) == 0 || len(said) > 2000 || strings.ContainsAny(said, "\x1b\u202e") {
			t.Errorf("%s: %d bytes are told: %q", name, len(said), said)
		}
	}
}

// Values that a receiver rejects permanently are not sent again.
func TestReceiversThatRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request) bool
		reason string
	}{
		"400": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no such <b>tenant</b>\x1b[31m", http.StatusBadRequest)
			return true
		}, "refused: it answered 400 Bad Request: no such <b>tenant</b>?[31m"},
		"302": {func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/login", http.StatusFound)
			return true
		}, "refused: it answered 302 Found"},
	} {
		front := newFlaky(t, "", c.answer)
		dir := made(t)
		r := finished(t, dir, remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
		whole := finished(t, dir, remoteTo(t, newFlaky(t, "", func(int, http.ResponseWriter, *http.Request) bool { return false }).URL+"/x"),
			export.Options{})
		if r.Sent != 0 || r.Left != 0 || r.Refused != whole.Sent || !strings.HasPrefix(r.Reason, c.reason) {
			t.Errorf("%s: %+v of %d", name, r, whole.Sent)
		}
		if int(front.asked.Load()) != whole.Requests {
			t.Errorf("%s: %d requests instead of %d", name, front.asked.Load(), whole.Requests)
		}
	}
}

// A receiver that is dead or stuck is given up, and the values that it did not receive are counted;
// they can be sent later from that time on, and nothing is missing.
func TestReceiversThatAreLeftAlone(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"stuck": func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"dead":  func(w http.ResponseWriter, _ *http.Request) bool { return hangUp(w) },
		"503": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			prom := labtest.Start(t, lab.PrometheusConfig{})
			front := newFlaky(t, prom.URLs["write"], func(n int, w http.ResponseWriter, r *http.Request) bool { return n > 1 && answer(w, r) })
			dir := made(t)
			s, err := export.Send(t.Context(), dir, remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
			require.NoError(t, err)
			r := s.Finish(300*time.Millisecond, 0)
			if r.Sent == 0 || r.Left == 0 || r.Refused > 0 || r.Since.IsZero() {
				t.Fatalf("%+v", r)
			}
			if r := finished(t, dir, remoteTo(t, prom.URLs["write"]), export.Options{Since: r.Since}); r.Refused+r.Left > 0 {
				t.Fatalf("later: %+v", r)
			}
			exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
		})
	}
}

// The end of ctx, for example after an interrupt, ends a sender that waits.
func TestSenderEndsWithItsContext(t *testing.T) {
	front := newFlaky(t, "", func(_ int, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	ctx, cancel := context.WithCancel(t.Context())
	s, err := export.Send(ctx, made(t), remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
	require.NoError(t, err)
	cancel()
	if r := s.Finish(time.Hour, 0); r.Sent > 0 || r.Left == 0 {
		t.Errorf("%+v", r)
	}
}

// The request conforms to the specification: headers, compression, and labels in order.
func TestRequestOfRemoteWrite(t *testing.T) {
	front := newFlaky(t, "", func(int, http.ResponseWriter, *http.Request) bool { return false })
	finished(t, made(t), remoteTo(t, front.URL+"/api/v1/write"), export.Options{})
	for i, r := range front.requests {
		for name, want := range map[string]string{
			"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0",
			"User-Agent": "weir",
		} {
			if got := r.Header.Get(name); got != want {
				t.Fatalf("%s: %q", name, got)
			}
		}
		text, err := snappy.Decode(nil, front.bodies[i])
		require.NoError(t, err)
		for len(text) > 0 {
			series, n := field(t, text, 1)
			text = text[n:]
			before, samples := "", 0
			for len(series) > 0 {
				number, _, _ := protowire.ConsumeTag(series)
				part, n := field(t, series, number)
				series = series[n:]
				if number == 2 {
					samples++
					continue
				}
				name, n := field(t, part, 1)
				value, _ := field(t, part[n:], 2)
				if string(name) <= before || len(value) == 0 || samples > 0 {
					t.Fatalf("label %q = %q after %q", name, value, before)
				}
				before = string(name)
			}
			if samples == 0 {
				t.Fatal("a series without samples")
			}
		}
	}
}

// field returns the content of the next field, which must have the given number.
func field(t *testing.T, b []byte, number protowire.Number) (content []byte, size int) {
	t.Helper()
	got, kind, n := protowire.ConsumeTag(b)
	if n < 0 || got != number || kind != protowire.BytesType {
		t.Fatalf("field %d of type %d instead of %d", got, kind, number)
	}
	content, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		t.Fatal(protowire.ParseError(m))
	}
	return content, n + m
}

// Secrets are read from files, also after these change, and TLS is verified.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	ca := file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	run := made(t)
	for _, c := range []struct {
		auth storage.Auth
		to   func(string, storage.Auth) (export.Receiver, error)
		want string
	}{
		{storage.Auth{CAFile: ca, TokenFile: file("token", "geheim\n")}, export.RemoteWrite, "Bearer geheim"},
		{storage.Auth{CAFile: ca, TokenFile: file("token", "geheim\n")}, influxTo, "Token geheim"},
		{storage.Auth{CAFile: ca, User: "ada", PasswordFile: file("password", "pass\n")}, export.RemoteWrite, "Basic YWRhOnBhc3M="},
		{storage.Auth{CAFile: ca}, influxTo, ""},
	} {
		got = nil
		receiver, err := c.to(server.URL+"/api/v1/write", c.auth)
		require.NoError(t, err)
		if r := finished(t, run, receiver, export.Options{}); r.Sent == 0 || r.Left > 0 || got[0] != c.want {
			t.Errorf("%+v: %q, %+v", c.auth, got, r)
		}
	}
	receiver, err := export.RemoteWrite(server.URL+"/api/v1/write", storage.Auth{})
	require.NoError(t, err)
	s, err := export.Send(t.Context(), run, receiver, export.Options{})
	require.NoError(t, err)
	if r := s.Finish(300*time.Millisecond, 0); r.Sent > 0 || !strings.Contains(r.Trouble, "certificate") {
		t.Errorf("an authority that nobody knows: %+v", r)
	}
	for name, auth := range map[string]storage.Auth{
		"no such file": {TokenFile: dir + "/nothing"}, "line break": {TokenFile: file("two", "a\nb")}, "method": {Method: "krb5"},
		"colon": {User: "a:b", PasswordFile: file("password", "pass")},
	} {
		receiver, err := export.RemoteWrite(server.URL+"/api/v1/write", auth)
		if err == nil {
			err = receiver.Check()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func influxTo(address string, auth storage.Auth) (export.Receiver, error) {
	return export.Influx(strings.Replace(address, "/api/v1/write", "/api/v2/write?org=o&bucket=b", 1), auth)
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"": "use an address", "localhost:9090/api/v1/write": "use an address", "ftp://h/api/v1/write": "use an address",
		"http://h":  "add the path",
		"http://h/": "add the path", "http://u:geheim@h/api/v1/write": "password in a file", "http://h/%zz": "not an address",
		"http://h/api/v1/write": "",
	} {
		if _, err := export.RemoteWrite(address, storage.Auth{}); (err == nil) != (want == "") || err != nil &&
			(!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("remote write to %q: %v", address, err)
		}
	}
	for address, want := range map[string]string{
		"http://h:8086": "DATABASE", "http://h/write": "DATABASE", "http://h/write?db=x": "", "http://h/api/v2/write?org=o": "BUCKET",
		"http://h/api/v2/write?org=o&bucket=b": "",
		"http://h/write?db=x&u=a&p=geheim":     "password in a file", "https://h/some/proxy/write?db=a+b": "",
	} {
		receiver, err := export.Influx(address, storage.Auth{})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("InfluxDB at %q: %v", address, err)
		}
		if err == nil && receiver.URL.Query().Get("precision") != "ns" {
			t.Errorf("%s: no precision", receiver)
		}
	}
}

// A bug that affects only the export does not end the process, and with it a run.
func TestMistakesEndOnlyTheSender(t *testing.T) {
	front := newFlaky(t, "", func(int, http.ResponseWriter, *http.Request) bool { return false })
	r := finished(t, made(t), remoteTo(t, front.URL+"/api/v1/write"),
		export.Options{Find: func(*results.Run) (*analysis.Findings, error) { panic("oh") }})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "because of a bug in weir: oh") {
		t.Errorf("%+v", r)
	}
}
