package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/storage"
)

// chain returns peers that each redirect open requests to the next peer; the last peer has the
// file.
func chain(t *testing.T, n int) []*peer {
	all := []*peer{(&peer{file: made(fileSize)}).start(t)}
	for range n {
		next := all[0]
		all = slices.Insert(all, 0, redirector(t, func(query) *peer { return next }))
	}
	return all
}

func TestRedirectsHaveALimit(t *testing.T) {
	for n, ok := range map[int]bool{1: true, maxRedirects: true, maxRedirects + 1: false} {
		all := chain(t, n)
		c := clientAt(t, all[0].url, storage.Credentials{})
		op := storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: "md5", Timeout: 20 * time.Second}
		for range 2 {
			var e events
			res, err := c.Do(t.Context(), &op, &e)
			if ok {
				right(t, &op, res, &e, err)
			} else if !errors.Is(err, storage.ErrProtocol) || !strings.Contains(err.Error(), "more than 16 redirects") ||
				!strings.Contains(err.Error(), all[maxRedirects].host) {
				t.Errorf("%d redirects: error %v", n, err)
			}
			if !slices.Contains(e.phases, storage.Redirected) || e.server == "" {
				t.Errorf("phases %v, served by %q", e.phases, e.server)
			}
		}
	}
}

func TestRedirectorsInCircles(t *testing.T) {
	var other atomic.Pointer[peer]
	a := redirector(t, func(query) *peer { return other.Load() })
	b := redirector(t, func(query) *peer { return a })
	other.Store(b)
	c := clientAt(t, a.url, storage.Credentials{})
	for range 2 {
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: -1, Timeout: 20 * time.Second}, &events{})
		if !errors.Is(err, storage.ErrProtocol) || !strings.Contains(err.Error(), "circles") {
			t.Errorf("error %v", err)
		}
	}
	if n := a.connections() + b.connections(); n > 4 {
		t.Errorf("%d connections: they should have been kept", n)
	}
	a.mend.Store(true)
	wellAgain(t, c)
}

// deadPort returns a port without a listener. The port is bound, so that no process can listen
// there until t ends.
func deadPort(t *testing.T) uint16 {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return uint16(name.(*unix.SockaddrInet4).Port)
}

func TestRedirectToADeadServer(t *testing.T) {
	port := deadPort(t)
	p := (&peer{file: made(fileSize), answer: body(rqOpen, stRedirect, number(int(port))+"127.0.0.1")}).start(t)
	c := clientAt(t, p.url, storage.Credentials{})
	for range 2 {
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: -1, Timeout: 20 * time.Second}, &events{})
		if storage.Classify(err) != storage.Refused || res.Reopened != maxReopens ||
			!strings.Contains(err.Error(), fmt.Sprintf("at 127.0.0.1:%d", port)) {
			t.Errorf("asked again %d times, error %v", res.Reopened, err)
		}
	}
	tried := fmt.Sprintf("127.0.0.1:%d", port)
	last := p.queries(rqOpen)[3].args
	if want := "/data/x?tried=" + tried + "," + tried + "," + tried; last != want {
		t.Errorf("the redirector was told %q, want %q", last, want)
	}
	p.mend.Store(true)
	wellAgain(t, c)
}

func TestRedirectByURL(t *testing.T) {
	data := (&peer{file: made(fileSize)}).start(t)
	p := (&peer{answer: body(rqOpen, stRedirect, number(-1)+fmt.Sprintf("root://user@127.0.0.1:%d//elsewhere?a=b", data.port))}).start(t)
	wellAgain(t, clientAt(t, p.url, storage.Credentials{}))
	if got := data.queries(rqOpen)[0].args; got != "/data/x?a=b" {
		t.Errorf("the data server was told %q", got)
	}
}

// TestNoWayOutOfTLS runs a server with TLS that redirects the client to a server without TLS, with
// both forms of a redirect. The latter server must receive neither the token nor the path.
func TestNoWayOutOfTLS(t *testing.T) {
	cert, conf := certificate(t)
	data := (&peer{file: made(fileSize)}).start(t)
	for _, to := range []string{
		number(int(data.port)) + "127.0.0.1", number(-1) + fmt.Sprintf("root://127.0.0.1:%d/", data.port),
	} {
		p := (&peer{file: made(fileSize), cert: cert, answer: body(rqOpen, stRedirect, to)}).start(t)
		c := clientAt(t, p.url, storage.Credentials{TLS: conf})
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: -1, Timeout: 20 * time.Second}, &events{})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "no TLS") {
			t.Errorf("error %v", err)
		}
		p.mend.Store(true)
		wellAgain(t, c)
	}
	if q := data.queries(rqLogin); len(q) > 0 {
		t.Errorf("the server without TLS was asked %v", q)
	}
}

// TestAnswersInAnyOrder holds back the requests until the maximum number is in flight, and responds
// in reverse order, in alternating pieces.
func TestAnswersInAnyOrder(t *testing.T) {
	const ahead = 4
	for name, op := range reads(fileSize) {
		if len(op.Ranges) > 1 {
			continue // one request after the other
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op.Chunk, op.Ahead = 500, ahead
			var held []query
			p := &peer{file: made(fileSize)}
			p.answer = func(c *talk, q query) bool {
				if q.code != rqRead && q.code != rqPgread {
					return c.good(q)
				}
				if held = append(held, q); len(held) < ahead {
					return true
				}
				ok := true
				for _, q := range slices.Backward(held) {
					if b := p.part(q)[:200]; q.code == rqRead {
						ok = ok && c.say(q, stOKSoFar, string(b))
					} else {
						ok = ok && c.raw(pagesAt(q.stream, b, q.offset(), true).text())
					}
				}
				for _, q := range slices.Backward(held) {
					if b := p.part(q)[200:]; q.code == rqRead {
						ok = ok && c.say(q, stOK, string(b))
					} else {
						ok = ok && c.raw(pagesAt(q.stream, b, q.offset()+200, false).text())
					}
				}
				held = held[:0]
				return ok
			}
			p.start(t)
			c := clientAt(t, p.url, storage.Credentials{})
			for range 2 {
				var e events
				res, err := c.Do(t.Context(), &op, &e)
				right(t, &op, res, &e, err)
			}
		})
	}
}

// TestWaitsAreObeyed responds to the second copy of each request, or to a later copy.
func TestWaitsAreObeyed(t *testing.T) {
	wait := func() func(*talk, query) bool {
		asked := map[string]bool{}
		return func(c *talk, q query) bool {
			key := fmt.Sprint(q.code, q.params, q.args)
			if q.code == rqPgwrite || q.code == rqLogin || asked[key] {
				return c.good(q)
			}
			asked[key] = true
			return c.say(q, stWait, number(0)+"staging")
		}
	}
	announce := func() func(*talk, query) bool {
		return func(c *talk, q query) bool {
			p := c.peer
			if !c.say(q, stWaitResp, number(1)) || !c.raw(answerOf(0, stAttn, number(5007)+"by the way, all is well")) {
				return false
			}
			switch q.code {
			case rqPgread:
				s := pagesAt(q.stream, p.part(q), q.offset(), false)
				text := s.text()
				inner := text[:len(text)-len(s.data)]
				return c.raw(answerOf(0, stAttn, number(attnResponse)+number(0)+inner) + s.data)
			case rqRead:
				return c.raw(later(q.stream, stOKSoFar, string(p.part(q)[:100])) + later(q.stream, stOK, string(p.part(q)[100:])))
			case rqReadv:
				return c.raw(later(q.stream, stOK, p.vector(q)))
			case rqOpen:
				return c.raw(later(q.stream, stOK, "hndl"+strings.Repeat("\x00", 8)+p.state()))
			case rqStat:
				return c.raw(later(q.stream, stOK, p.state()))
			}
			return c.raw(later(q.stream, stOK, ""))
		}
	}
	ops := reads(fileSize)
	ops["stat"] = storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}
	ops["mkdir"] = storage.Op{Kind: storage.Mkdir, Path: "x", Timeout: 20 * time.Second}
	for name, op := range ops {
		for how, answer := range map[string]func() func(*talk, query) bool{"wait": wait, "waitresp": announce} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				p := (&peer{file: made(fileSize), answer: answer()}).start(t)
				c := clientAt(t, p.url, storage.Credentials{})
				var e events
				res, err := c.Do(t.Context(), &op, &e)
				if op.Kind == storage.Read {
					right(t, &op, res, &e, err)
				}
				want := map[storage.Kind]int{storage.Read: 3}[op.Kind]
				if want == 0 {
					want = 1
				}
				if err != nil || res.Waits != want {
					t.Errorf("waited %d times, want %d, error %v", res.Waits, want, err)
				}
			})
		}
	}
}

func TestCancelEndsAPause(t *testing.T) {
	for _, status := range []uint16{stWait, stWaitResp} {
		asked := make(chan struct{}, 1)
		p := (&peer{file: made(fileSize), answer: say(rqStat, func(c *talk, q query) bool {
			ok := c.say(q, status, number(500))
			asked <- struct{}{}
			return ok
		})}).start(t)
		c := clientAt(t, p.url, storage.Credentials{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			begin := time.Now()
			res, err := c.Do(ctx, &storage.Op{Kind: storage.Stat, Path: "x"}, &events{})
			if storage.Classify(err) != storage.Canceled || time.Since(begin) > 100*time.Second {
				t.Errorf("result %+v, error %v after %v", res, err, time.Since(begin))
			}
		})
		<-asked
		cancel()
		wg.Wait()
		p.mend.Store(true)
		wellAgain(t, c)
	}
}

// TestWaitingCostsNothing counts the requests to a server that responds "again at once" for ever.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	p := (&peer{answer: body(rqStat, stWait, number(0))}).start(t)
	c := clientAt(t, p.url, storage.Credentials{})
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: time.Second}, &events{})
	class := storage.Classify(err) // the next wait is too long, or the time is up during the last wait
	if n := len(p.queries(rqStat)); class != storage.Busy && class != storage.Timeout || n > 60 {
		t.Errorf("asked %d times in a second, error %v", n, err)
	}
}

// TestRedirectsToIPv6 parses redirects to IPv6 addresses, which are in brackets, with or without a
// zone.
func TestRedirectsToIPv6(t *testing.T) {
	for text, want := range map[string]redirection{
		"\x00\x00\x04\x46[::1]":                      {host: "::1", port: 1094},
		"\x00\x00\x04\x47[2001:db8::1]?a=b?c":        {host: "2001:db8::1", port: 1095, opaque: "a=b"},
		"\xff\xff\xff\xffroots://[::1]:1099//p?x=y":  {host: "::1", port: 1099, opaque: "x=y", secure: true},
		"\xff\xff\xff\xffroot://[fe80::1%25eth0]//p": {host: "fe80::1%eth0", port: 1094},
		"\x00\x00\x04\x46[fe80::1%eth0]":             {host: "fe80::1%eth0", port: 1094},
	} {
		if got, err := parseRedirect([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}
