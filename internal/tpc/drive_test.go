package tpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/trust"
)

// peer returns the URL of an endpoint with the given behavior.
func peer(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

func TestDriveTakesWhatEndpointsAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		code  int
		head  map[string]string
		body  string
		kind  Kind
		begun bool
	}{
		"201, XRootD 5":     {code: 201, body: marker + "success: Created\n"},
		"202, dCache":       {code: 202, body: marker + "success: Created\n"},
		"200":               {code: 200, body: "success\n"},
		"204, RFC 4918":     {code: 204},
		"201 and an end":    {code: 201, body: marker, kind: Broken, begun: true},
		"202 and nothing":   {code: 202, kind: Broken, begun: true},
		"failure in a 201":  {code: 201, body: "failure: Remote side failed with status code 404\n", kind: Missing, begun: true},
		"401":               {code: 401, kind: Denied},
		"403":               {code: 403, body: "no", kind: Denied},
		"404":               {code: 404, kind: Unsupported}, // Apache takes it for a copy of the file that is not there
		"412":               {code: 412, kind: Exists},
		"507":               {code: 507, kind: Full},
		"429":               {code: 429, head: map[string]string{"Retry-After": "7"}, kind: Busy},
		"503":               {code: 503, kind: Busy},
		"405":               {code: 405, kind: Unsupported},
		"400":               {code: 400, body: "Request unknown", kind: Unsupported},
		"500":               {code: 500, body: "<html>\nx", kind: Failed},
		"success in a 500":  {code: 500, body: "success: Created\n", kind: Failed},
		"303 is no way":     {code: 303, head: map[string]string{"Location": "/x"}, kind: Failed},
		"307 to nowhere":    {code: 307, kind: Broken},
		"307 round":         {code: 307, head: map[string]string{"Location": "/f"}, kind: Broken},
		"307 to a file":     {code: 307, head: map[string]string{"Location": "file:///etc/passwd"}, kind: Unsupported},
		"307 that is none":  {code: 307, head: map[string]string{"Location": "http://[::1"}, kind: Broken},
		"307 into the dark": {code: 307, head: map[string]string{"Location": "http://127.0.0.1:1/"}, kind: Unreachable},
	} {
		at := peer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "COPY" {
				t.Errorf("%s: %s was asked", name, r.Method)
			}
			for k, v := range tt.head {
				w.Header().Set(k, v)
			}
			w.WriteHeader(tt.code)
			_, _ = io.WriteString(w, tt.body)
		})
		err := client(t, Options{}).Drive(t.Context(), Order{Active: Target{URL: at + "/f"}, Passive: Target{URL: "http://x/g"}}, nil)
		var e *Error
		if (err == nil) != (tt.kind == "") || KindOf(err) != tt.kind {
			t.Errorf("%s: error %v (%s)", name, err, KindOf(err))
		} else if errors.As(err, &e) && e.Begun != tt.begun {
			t.Errorf("%s: begun is %v", name, e.Begun)
		}
		if name == "429" && e.After != 7*time.Second {
			t.Errorf("after %v", e.After)
		}
	}
}

// The headers are sent as they are written: XRootD before 5.7 accepts only
// TransferHeaderAuthorization, not Transferheaderauthorization.
func TestHeadersKeepTheirCase(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	seen := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		text, b := "", make([]byte, 1)
		for !strings.HasSuffix(text, "\r\n\r\n") {
			if _, err := c.Read(b); err != nil {
				break
			}
			text += string(b)
		}
		seen <- text
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\nsuccess: Created\n")
	}()
	o := Order{Active: Target{URL: "http://" + l.Addr().String() + "/f", Token: "t1"},
		Passive: Target{URL: "https://x.example/g", Token: "t2"}, Verify: true, Streams: 3}
	require.NoError(t, client(t, Options{}).Drive(t.Context(), o, nil))
	text := <-seen
	for _, want := range []string{"COPY /f HTTP/1.1", "Source: https://x.example/g", "Credential: none", "Overwrite: F",
		"TransferHeaderAuthorization: Bearer t2",
		"Authorization: Bearer t1", "RequireChecksumVerification: true", "X-Number-Of-Streams: 3"} {
		if !strings.Contains(text, "\r\n"+want+"\r\n") && !strings.HasPrefix(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A data server of the same site gets the same method, headers and token.
func TestRedirectsKeepEverything(t *testing.T) {
	data := peer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "COPY" || r.Header.Get("Authorization") != "Bearer t1" || r.Header.Get("Destination") == "" ||
			r.URL.RawQuery != "authz=x" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		w.WriteHeader(http.StatusCreated)
		say(w, "success: Created\n")
	})
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, data+"/f?authz=x", http.StatusTemporaryRedirect)
	})
	o := Order{Active: Target{URL: at + "/f", Token: "t1", Servers: []string{"127.0.0.1"}}, Passive: Target{URL: "http://x/g"}, Push: true}
	if err := client(t, Options{}).Drive(t.Context(), o, nil); err != nil {
		t.Error(err)
	}
}

// A redirect from https to http, where the token could be read, is refused.
func TestNoWayFromTLSToPlain(t *testing.T) {
	plain := peer(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s came in the clear", r.Method) })
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain+"/f", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	sum := sha256.Sum256(s.Certificate().Raw)
	c := client(t, Options{})
	_, err := c.Stat(t.Context(), Target{URL: s.URL, Token: "secret", Pin: hex.EncodeToString(sum[:])})
	if KindOf(err) != Denied || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	_, err = c.Stat(t.Context(), Target{URL: s.URL, Pin: strings.Repeat("0", 64)})
	if KindOf(err) != Unreachable || !errors.Is(err, trust.ErrPin) {
		t.Errorf("a wrong pin: %v", err)
	}
	_, err = c.Stat(t.Context(), Target{URL: s.URL})
	if KindOf(err) != Unreachable {
		t.Errorf("a certificate of nobody: %v", err)
	}
}

// An allowed host does not lead to a forbidden host, nor to a private address, by redirect or by
// name.
func TestGuardedClients(t *testing.T) {
	inside := peer(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached what is private", r.Method, r.URL)
	})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inside, "http://"))
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})
	atHost := strings.TrimPrefix(at, "http://")
	for name, tt := range map[string]struct {
		guard Guard
		url   string
	}{
		"redirected to another host": {Guard{Hosts: []string{atHost}, Private: true}, at},
		"a private address":          {Guard{Hosts: []string{"*"}}, inside},
		"a name of one":              {Guard{Hosts: []string{"*"}}, "http://localhost:" + port},
		"a name with a dot":          {Guard{Hosts: []string{"*"}}, "http://localhost.:" + port},
		"as a number":                {Guard{Hosts: []string{"*"}}, "http://2130706433:" + port},
		"in short":                   {Guard{Hosts: []string{"*"}}, "http://127.1:" + port},
		"in IPv6":                    {Guard{Hosts: []string{"*"}}, "http://[::ffff:127.0.0.1]:" + port},
	} {
		_, err := client(t, Options{Guard: &tt.guard}).Stat(t.Context(), Target{URL: tt.url})
		if kind := KindOf(err); kind != Denied && kind != Unreachable {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The copy ends when no byte moves, however many markers come.
func TestStalledCopies(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.WriteHeader(http.StatusAccepted)
		for r.Context().Err() == nil {
			say(w, marker)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	o := Order{Active: Target{URL: at}, Passive: Target{URL: "http://x/"}, Stall: 300 * time.Millisecond}
	err := client(t, Options{}).Drive(t.Context(), o, nil)
	if KindOf(err) != Stalled {
		t.Errorf("error %v", err)
	}
	<-gone // closing the connection reaches the endpoint
}

// Progress keeps a copy alive that is longer than the stall timer.
func TestSlowCopies(t *testing.T) {
	tier.Slow(t, "copies for seconds")
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		for n := range 6 {
			say(w, fmt.Sprintf("Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: %d\nEnd\n", n+1))
			<-time.After(400 * time.Millisecond)
		}
		say(w, "success: Created\n")
	})
	last := int64(0)
	o := Order{Active: Target{URL: at}, Passive: Target{URL: "http://x/"}, Stall: 2 * time.Second}
	if err := client(t, Options{}).Drive(t.Context(), o, func(n int64) { last = n }); err != nil || last != 6 {
		t.Errorf("%d bytes, %v", last, err)
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	gone, here := make(chan struct{}), make(chan struct{})
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		say(w, marker)
		close(here)
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-here; cancel() }()
	err := client(t, Options{}).Drive(ctx, Order{Active: Target{URL: at}, Passive: Target{URL: "http://x/"}}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-gone
}

// After a connection breaks in the middle, the outcome of the copy is unknown.
func TestBrokenConnections(t *testing.T) {
	for name, when := range map[string]func(w http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) {},
		"after the head":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); w.(http.Flusher).Flush() },
		"after a marker":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); say(w, marker) },
	} {
		at := peer(t, func(w http.ResponseWriter, _ *http.Request) {
			when(w)
			panic(http.ErrAbortHandler)
		})
		var e *Error
		err := client(t, Options{}).Drive(t.Context(), Order{Active: Target{URL: at}, Passive: Target{URL: "http://x/"}}, nil)
		if !errors.As(err, &e) || e.Kind != Broken || !e.Begun {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A checksum that is not ready yet is requested again. An endpoint without checksums is not an error.
func TestPatience(t *testing.T) {
	t.Parallel()
	asked := 0
	at := peer(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Length", "5")
		if asked == 1 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if asked == 3 {
			w.Header().Set("Digest", "adler32=62D01D6")
		}
	})
	c := client(t, Options{})
	info, err := c.Checksum(t.Context(), Target{URL: at}, Wish{Patience: time.Minute})
	if err != nil || info.Adler != "062d01d6" || info.Size != 5 || asked != 3 {
		t.Errorf("%+v, %v after %d questions", info, err, asked)
	}
	if info, err = c.Checksum(t.Context(), Target{URL: at}, Wish{}); err != nil || info.Adler != "" || asked != 4 {
		t.Errorf("%+v, %v after %d questions", info, err, asked)
	}
}

func TestForwarded(t *testing.T) {
	for name, want := range map[string]string{
		"TransferHeaderAuthorization": "Authorization", "Transferheaderauthorization": "Authorization", "TRANSFERHEADERX-a-b": "X-A-B",
		"TransferHeader": "", "Authorization": "", "TransferHeaderHost": "", "TransferHeaderContent-Length": "",
		"transferheadertransfer-encoding": "",
		"TransferHeaderRange":             "", "TransferHeaderProxy-Authorization": "",
	} {
		if got, ok := Forwarded(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}
