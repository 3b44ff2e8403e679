package coordinator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

// A liar is a fake agent that misuses its valid tokens.
type liar struct {
	*transfertest.FakeAgent
	lease transfer.Lease
}

// does sends a request to the endpoint of the destination, and returns the status.
func (l *liar) does(method, path string, body io.Reader, header ...string) int {
	l.T.Helper()
	door := strings.TrimSuffix(l.lease.Dest.URL, "/"+l.lease.Dest.Path)
	req, err := http.NewRequestWithContext(l.T.Context(), method, door+path, body)
	if err != nil {
		l.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.lease.Dest.Token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return http.StatusRequestEntityTooLarge // the server closed the connection during the body
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// crowd sends many parts of the file and the whole file at the same time.
func (l *liar) crowd(temp string) {
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			if n%4 == 0 {
				l.does("PUT", temp, strings.NewReader(strings.Repeat("z", 1000)))
				return
			}
			l.does("PUT", temp, strings.NewReader(strings.Repeat("z", 500)), "Content-Range",
				fmt.Sprintf("bytes %d-%d/1000", 500*(n%2), 500*(n%2)+499))
		})
	}
	all.Wait()
}

type flood struct{ left int64 }

func (f *flood) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errors.New("1 GB was taken")
	}
	f.left -= int64(len(p))
	return len(p), nil
}

// An agent that pushes a file cannot fill the destination's disk with the token of that push. The
// token permits no more than the file's size, at the paths of this file only, and the files of
// others do not change. The file itself can still be pushed.
func TestAgentsCannotFillOthersDisks(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	a := &liar{FakeAgent: h.FakeAgent("A")}
	a.Register("")
	b := h.Agent("B", transfertest.Endpoint())
	h.Register("/store/run1", "A", 1, 1000)
	b.Put("store/other", []byte(strings.Repeat("x", 5000)))
	if _, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B"}); err != nil {
		t.Fatal(err)
	}
	a.lease = a.WaitWork()[0]
	if a.lease.Mode != transfer.Push || a.lease.Dest.Token == "" {
		t.Fatalf("%+v", a.lease)
	}
	temp, final := fmt.Sprintf("/.weir/%d.%d.part", a.lease.Item, a.lease.Epoch), "/"+a.lease.Dest.Path
	if code := a.does("MKCOL", "/.weir", nil); code/100 != 2 && code != http.StatusMethodNotAllowed {
		t.Errorf("the folder of temporaries: %d", code)
	}
	door := strings.TrimSuffix(a.lease.Dest.URL, final)
	for name, tt := range map[string]struct {
		method, path string
		body         io.Reader
		header       []string
		code         int
	}{
		"more than the file":             {"PUT", temp, strings.NewReader(strings.Repeat("y", 1001)), nil, 413},
		"a body without an end":          {"PUT", temp, &flood{1 << 30}, nil, 413},
		"a part of a file":               {"PUT", temp, strings.NewReader("y"), []string{"Content-Range", "bytes 1000-1000/1001"}, 413},
		"the first byte of a larger one": {"PUT", temp, strings.NewReader("y"), []string{"Content-Range", "bytes 0-0/1001"}, 413},
		"what an earlier attempt left":   {"POST", "/.weir/999.1.part?size=1048576", nil, nil, 403},
		"a length that is not so": {"PUT", temp, strings.NewReader(strings.Repeat("y", 1001)), []string{"X-Expected-Entity-Length", "1"},
			413},
		"files below the file":           {"PUT", final + "/1", strings.NewReader("y"), nil, 403},
		"files below the temporary":      {"PUT", temp + "/1", strings.NewReader("y"), nil, 403},
		"a file beside it":               {"PUT", final + "2", strings.NewReader("y"), nil, 403},
		"another attempt's temporary":    {"PUT", "/.weir/999.1.part", strings.NewReader("y"), nil, 403},
		"a copy of what is there":        {"COPY", "/store/other", nil, []string{"Destination", door + temp}, 403},
		"a copy from elsewhere":          {"COPY", temp, nil, []string{"Source", door + "/store/other"}, 202},
		"what others have is moved":      {"MOVE", "/store/other", nil, []string{"Destination", door + temp}, 403},
		"what others have is deleted":    {"DELETE", "/store/other", nil, nil, 403},
		"what others have is read":       {"GET", "/store/other", nil, nil, 403},
		"a folder instead of the file":   {"MKCOL", final, nil, nil, 403},
		"a folder instead of temporary":  {"MKCOL", temp, nil, nil, 403},
		"the agent's own folder is read": {"GET", "/.weir-serve-agent/lock", nil, nil, 404},
	} {
		if code := a.does(tt.method, tt.path, tt.body, tt.header...); code != tt.code && (tt.code != 0 || code < 400) {
			t.Errorf("%s: %d", name, code)
		}
	}
	var all int64
	err := filepath.Walk(b.Root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && !strings.Contains(path, stateOfAgent) {
			all += info.Size()
		}
		return err
	})
	if err != nil || all > 5000+200 { // and the endpoint's own record of folders
		t.Errorf("%d bytes are at B, %v", all, err)
	}
	a.crowd(temp)
	if code := a.does("PUT", temp, strings.NewReader(strings.Repeat("y", 1000))); code/100 != 2 {
		t.Errorf("the file itself: %d", code)
	}
	if code := a.does("MKCOL", "/store/run1/", nil); code != http.StatusCreated {
		t.Errorf("the folder above it: %d", code)
	}
	if code := a.does("MOVE", temp, nil, "Destination", a.lease.Dest.URL, "Overwrite", "F"); code != http.StatusCreated {
		t.Errorf("its name: %d", code)
	}
	if info, err := os.Stat(filepath.Join(b.Root, a.lease.Dest.Path)); err != nil || info.Size() != 1000 {
		t.Errorf("what arrived: %v, %v", info, err)
	}
	if text, err := os.ReadFile(filepath.Join(b.Root, "store/other")); err != nil || len(text) != 5000 {
		t.Errorf("what was there: %d bytes, %v", len(text), err)
	}
}

const stateOfAgent = ".weir-serve-agent"

// Connections that are reset during a request do not stop the coordinator.
func TestResetConnections(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	h := start(t, Config{Plain: true})
	address := strings.TrimPrefix(h.URL(), "http://")
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			for n := range 500 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				path := []string{"/healthz", "/healthz", "/"}[n%3]
				_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: weir\r\n\r\n", path)
				time.Sleep(time.Duration((n*61+i*7)%2000) * time.Microsecond)
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		})
	}
	wait.Wait()
	for range 16 { // each reader of the database is used
		if _, err := h.Client.Requests(t.Context(), transfer.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
}

// After an error the coordinator does not wait for the rest of a body that a user with a token
// sends slowly or not at all.
func TestUnfinishedBodiesEnd(t *testing.T) {
	tier.Full(t, "the minute that a body may take")
	t.Parallel()
	h := start(t, Config{Approve: -1})
	u := h.ftsUser("alice", access.MaySubmit)
	for _, at := range []string{rest.Path + "/jobs", "/api/v1/requests"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			c, err := (&tls.Dialer{Config: wire.Pinned(h.Pin())}).DialContext(t.Context(), "tcp", strings.TrimPrefix(h.URL(), "https://"))
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
			_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\n\r\n{]", at, u.raw)
			require.NoError(t, err)
			go func() {
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				for range tick.C {
					if _, err := io.WriteString(c, " "); err != nil {
						return
					}
				}
			}()
			if answer, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is open after three minutes: %q", answer)
			}
		})
	}
}
