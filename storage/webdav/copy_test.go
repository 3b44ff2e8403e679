package webdav

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/storage"
	"weir/storage/storagetest"
)

// copyingTo returns a client of a target whose copies come from an origin.
func copyingTo(t *testing.T, target string, origin storage.Origin) storage.Client {
	t.Helper()
	at := storagetest.TargetOf(t, target, storage.Credentials{})
	at.Origin = &origin
	return storagetest.Client(t, Driver(), at)
}

func marker(moved int) string {
	return fmt.Sprintf("Perf Marker\nTimestamp: 1\nStripe Index: 0\nStripe Bytes Transferred: %d\nTotal Stripe Count: 1\nEnd\n", moved)
}

// chunked returns a response to COPY with the parts of its body.
func chunked(parts ...string) string {
	text := "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, p := range parts {
		text += fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
	}
	return text
}

const lastChunk = "0\r\n\r\n"

// A server that fails, or whose other end does, in each of the ways in which copies fail.
func TestCopiesFail(t *testing.T) {
	const refused = "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"
	for name, tt := range map[string]struct {
		answer string
		stays  bool // the connection stays open after the answer
		class  storage.Class
		err    error
		moved  int64
	}{
		"full":          {answer: fmt.Sprintf(refused, "507 Insufficient Storage"), class: storage.ServerFailed, err: syscall.ENOSPC},
		"forbidden":     {answer: fmt.Sprintf(refused, "403 Forbidden"), class: storage.Denied, err: fs.ErrPermission},
		"taken":         {answer: fmt.Sprintf(refused, "412 Precondition Failed"), class: storage.Other, err: fs.ErrExist},
		"busy":          {answer: fmt.Sprintf(refused, "503 Service Unavailable"), class: storage.Busy, err: storage.ErrBusy},
		"no copies":     {answer: fmt.Sprintf(refused, "405 Method Not Allowed"), class: storage.Other, err: errors.ErrUnsupported},
		"origin fails":  {answer: chunked(marker(700), "failure: remote server sent 503\n") + lastChunk, class: storage.Busy, moved: 700},
		"origin denies": {answer: chunked("failure: HTTP 403 of the other\n") + lastChunk, class: storage.Denied, err: fs.ErrPermission},
		"origin gone":   {answer: chunked(marker(100), "failure: connection reset\n") + lastChunk, class: storage.ServerFailed, moved: 100},
		"checksum":      {answer: chunked(marker(1000), "failure: checksum differs\n") + lastChunk, class: storage.Checksummed, moved: 1000},
		"cut off":       {answer: chunked(marker(300)), class: storage.Short, moved: 300},
		"no result":     {answer: chunked(marker(300)) + lastChunk, class: storage.Short, moved: 300},
		"stalls":        {answer: chunked(marker(300), marker(300)), stays: true, class: storage.Timeout, moved: 300},
	} {
		t.Run(name, func(t *testing.T) {
			p := speak(t, "127.0.0.1", func(c *net.TCPConn, _ *http.Request, _ int) bool {
				_, _ = io.WriteString(c, tt.answer) // the client may have closed the connection
				return tt.stays
			})
			c := copyingTo(t, p.url, storage.Origin{URL: storagetest.TargetOf(t, "http://127.0.0.1:1/f", storage.Credentials{}).URL})
			var seen events
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Copy, Path: "to", Source: "from", Size: 1000, Timeout: time.Second}, &seen)
			if class := storage.Classify(err); class != tt.class || tt.err != nil && !errors.Is(err, tt.err) || seen.moved != tt.moved {
				t.Errorf("class %q, %d bytes moved: %v", class, seen.moved, err)
			}
		})
	}
}

// The request of a copy, with the credentials of the passive end.
func TestCopyRequest(t *testing.T) {
	cred := storage.Credentials{Method: storage.TokenAuth, Token: "secret-of-the-other"}
	for _, push := range []bool{false, true} {
		p := speak(t, "127.0.0.1", say(chunked(marker(400), marker(1000), "success: Created\n")+lastChunk))
		other := "http://127.0.0.1:1/folder%20x"
		o := storage.Origin{URL: storagetest.TargetOf(t, other, cred).URL, Cred: cred, Streams: 4, SciTag: 129}
		target := storagetest.TargetOf(t, p.url+"/base", storage.Credentials{})
		header, path, at := "Source", "/base/to", other+"/from"
		if push {
			target, o.URL, o.Cred, o.Push = storagetest.TargetOf(t, other, cred), target.URL, storage.Credentials{}, true
			header, path, at = "Destination", "/base/from", other+"/to"
		}
		target.Origin = &o
		c := storagetest.Client(t, Driver(), target)
		var seen events
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Copy, Path: "to", Source: "from", Size: 1000}, &seen)
		require.NoError(t, err)
		if seen.moved != 1000 {
			t.Errorf("%d bytes moved", seen.moved)
		}
		p.mu.Lock()
		r := p.seen[0]
		p.mu.Unlock()
		if r.Method != "COPY" || r.URL.Path != path {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		for name, want := range map[string]string{
			header: at, "Overwrite": "F", "Credential": "none", "X-Number-Of-Streams": "4", "Scitag": "129", "Transferheaderscitag": "129",
			"Transferheaderauthorization": "Bearer secret-of-the-other", "Authorization": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("push %v: %s is %q, want %q", push, name, got, want)
			}
		}
	}
}

// The credentials of the other end are not sent to a server that a redirect names.
func TestCopyRedirected(t *testing.T) {
	elsewhere := speak(t, "127.0.0.2", say(chunked("success: Created\n")+lastChunk))
	p := speak(t, "127.0.0.1", say("HTTP/1.1 307 Temporary Redirect\r\nLocation: "+elsewhere.url+"/to\r\nContent-Length: 0\r\n\r\n"))
	origin := storagetest.TargetOf(t, "http://127.0.0.1:1/f", storage.Credentials{}).URL
	op := storage.Op{Kind: storage.Copy, Path: "to", Source: "from", Size: -1, Timeout: 10 * time.Second}
	c := copyingTo(t, p.url, storage.Origin{URL: origin, Cred: storage.Credentials{Method: storage.TokenAuth, Token: "secret"}})
	if _, err := c.Do(t.Context(), &op, &quiet{}); !errors.Is(err, fs.ErrPermission) || len(elsewhere.seen) > 0 {
		t.Errorf("%v, %d requests", err, len(elsewhere.seen))
	}
	c = copyingTo(t, p.url, storage.Origin{URL: origin})
	if _, err := c.Do(t.Context(), &op, &quiet{}); err != nil {
		t.Errorf("without credentials: %v", err)
	}
}

// The end of the operation ends the connection, with which the server gives the copy up.
func TestCopyCanceled(t *testing.T) {
	gone := make(chan error, 1)
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, _ = io.WriteString(c, chunked(marker(10))) // the next read fails if this does
		_, err := c.Read(make([]byte, 1))
		gone <- err
		return false
	})
	c := copyingTo(t, p.url, storage.Origin{URL: storagetest.TargetOf(t, "http://127.0.0.1:1/f", storage.Credentials{}).URL})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Do(ctx, &storage.Op{Kind: storage.Copy, Path: "to", Source: "from", Size: 1000}, &cancels{cancel: cancel})
	if storage.Classify(err) != storage.Canceled {
		t.Errorf("%v, want context.Canceled", err)
	}
	select {
	case err := <-gone:
		if err == nil {
			t.Error("the connection has another request")
		}
	case <-time.After(time.Minute):
		t.Error("the connection stays open")
	}
}

// cancels cancels an operation with its first byte.
type cancels struct {
	quiet
	cancel context.CancelFunc
}

func (c *cancels) Moved(int) { c.cancel() }

// Credentials that cannot be given to another server are refused before the first request.
func TestCopyCredentials(t *testing.T) {
	target := storagetest.TargetOf(t, "http://store.example.org/f", storage.Credentials{})
	for method, want := range map[storage.AuthMethod]string{
		storage.S3Auth: "cannot be given to another server", storage.TokenAuth: "over plain http",
	} {
		at := target
		at.Origin = &storage.Origin{URL: storagetest.TargetOf(t, "https://a.example.org/f", storage.Credentials{}).URL,
			Cred: storage.Credentials{Method: method, Token: "t", User: "u", Password: "p"}}
		if _, err := Driver().Open(t.Context(), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// The error of the other end is distinguished from that of the active end.
func TestCopyErrorOfTheOtherEnd(t *testing.T) {
	err := asStorageError(tpc.Refused(http.StatusInternalServerError, "failure: Remote side failed with status code 404", false))
	var reported *tpc.Error
	if !errors.As(err, &reported) || reported.Remote != http.StatusNotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A push that is answered with 204 and no report may be a copy within the server, as nginx makes it:
// it is no copy.
func TestPushWithoutReport(t *testing.T) {
	for _, push := range []bool{false, true} {
		p := speak(t, "127.0.0.1", say("HTTP/1.1 204 No Content\r\n\r\n"))
		active := storagetest.TargetOf(t, p.url, storage.Credentials{})
		other := storagetest.TargetOf(t, "http://127.0.0.1:1/f", storage.Credentials{})
		target, origin := active, other
		if push {
			target, origin = other, active
		}
		target.Origin = &storage.Origin{URL: origin.URL, Push: push}
		var seen events
		c := storagetest.Client(t, Driver(), target)
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Copy, Path: "to", Source: "from", Size: 9}, &seen)
		if errors.Is(err, errors.ErrUnsupported) != push || (seen.moved == 0) != push {
			t.Errorf("push %v: %d bytes moved: %v", push, seen.moved, err)
		}
	}
}
