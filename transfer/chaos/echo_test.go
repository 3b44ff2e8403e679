package chaos

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
)

// An echo is a proxy between an agent and its coordinator. It loses requests, and sends them twice,
// at once or much later. It loses responses, delays them, and returns the response to the second
// request.
type echo struct {
	to    func() string // the URL of the coordinator
	tally *tally
	calm  atomic.Bool
	ask   *http.Client
	url   string
	later sync.WaitGroup

	mu   sync.Mutex
	rand *rand.Rand
}

func newEcho(t *testing.T, to func() string, seed uint64, n *tally) *echo {
	t.Helper()
	e := &echo{to: to, tally: n, rand: rand.New(rand.NewPCG(seed, 3)), ask: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e.url = "http://" + l.Addr().String()
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
		e.later.Wait()
		e.ask.CloseIdleConnections()
	})
	return e
}

// A fate is the treatment of a request.
type fate int

const (
	lost    fate = iota
	unheard      // its response is lost
	twice
	atOnce // twice, at the same time
	held
	late // sent once more, later
	fine
)

// fate draws the treatment of a request.
func (e *echo) fate(path string) (fate, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k, d := e.rand.IntN(100), time.Duration(e.rand.IntN(4000))*time.Millisecond
	switch {
	case e.calm.Load():
		return fine, 0
	case k < 3:
		return lost, 0
	case k < 6:
		return unheard, 0
	case k < 12 && strings.HasSuffix(path, "/work"), k < 9:
		return atOnce, 0
	case k < 14:
		return twice, 0
	case k < 19:
		return held, d
	case k < 24:
		return late, d + time.Second
	}
	return fine, 0
}

// ServeHTTP implements http.Handler.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	what, d := e.fate(r.URL.Path)
	if what == lost {
		e.tally.lost.Add(1)
		panic(http.ErrAbortHandler)
	}
	again := func(ctx context.Context) {
		e.tally.repeated.Add(1)
		if res, err := e.pass(ctx, r, body); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	switch what {
	case twice:
		again(r.Context())
	case atOnce:
		e.later.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 30*time.Second)
			defer cancel()
			again(ctx)
		})
	case late:
		e.later.Go(func() {
			time.Sleep(d)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 30*time.Second)
			defer cancel()
			again(ctx)
		})
	}
	res, err := e.pass(r.Context(), r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // the coordinator is down
	}
	defer res.Body.Close()
	switch what {
	case unheard:
		e.tally.lost.Add(1)
		panic(http.ErrAbortHandler)
	case held:
		e.tally.held.Add(1)
		time.Sleep(d)
	}
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// pass sends a request to the coordinator.
func (e *echo) pass(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	ask, err := http.NewRequestWithContext(ctx, r.Method, e.to()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	ask.Header = r.Header.Clone()
	return e.ask.Do(ask)
}
