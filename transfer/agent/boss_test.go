package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/adler32"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/token"
	"weir/transfer"
	"weir/transfer/client"
)

// A boss is a coordinator controlled by a test: it sends leases twice, forgets agents, loses
// responses and becomes unavailable. The real coordinator does not do these on request.
type boss struct {
	t      *testing.T
	issuer *token.Issuer
	server *httptest.Server
	pin    string // of its certificate, if it has one

	mu       sync.Mutex
	doors    map[string]transfer.Register
	work     map[string]*transfer.Work
	outcomes []transfer.Outcome
	reports  []transfer.Report
	byes     []transfer.Deregister
	cancel   []transfer.LeaseID
	away     bool          // responds with 503
	deaf     bool          // accepts reports, but its responses are lost
	forget   bool          // responds to the next request with 410
	refuse   int           // the status of each response, if it is not 0
	asked    int           // number of requests for the time
	ahead    time.Duration // deviation from this machine's clock
	wake     chan struct{}
}

func newBoss(t *testing.T) *boss {
	t.Helper()
	b := &boss{t: t, doors: map[string]transfer.Register{}, work: map[string]*transfer.Work{}, ahead: time.Hour,
		wake: make(chan struct{}, 100)}
	var err error
	if b.issuer, err = token.Keep(filepath.Join(t.TempDir(), "key"), "https://boss.example", nil); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answers(b, mux, transfer.RegisterPath, b.hello)
	answers(b, mux, transfer.WorkPath, b.ask)
	answers(b, mux, transfer.ReportPath, b.report)
	answers(b, mux, transfer.DeregisterPath, b.deregister)
	answers(b, mux, transfer.ClockPath, func(context.Context, *struct{}) (any, int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked++
		return transfer.Clock{Now: time.Now().Add(b.ahead)}, 200
	})
	if publicly() {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", publicAddress+":0")
		require.NoError(t, err)
		b.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
		b.server.StartTLS()
		sum := sha256.Sum256(b.server.Certificate().Raw)
		b.pin = hex.EncodeToString(sum[:])
	} else {
		b.server = httptest.NewServer(mux)
	}
	t.Cleanup(b.server.Close)
	return b
}

func answers[In any](b *boss, mux *http.ServeMux, path string, f func(context.Context, *In) (any, int)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		status := b.refuse
		if b.away {
			status = http.StatusServiceUnavailable
		}
		if b.forget && path != transfer.RegisterPath && path != transfer.ClockPath {
			status, b.forget = http.StatusGone, false
		}
		b.mu.Unlock()
		in := new(In)
		if err := json.NewDecoder(r.Body).Decode(in); err != nil {
			status = http.StatusBadRequest
		}
		var out any = map[string]string{"error": "not now"}
		if status == 0 {
			out, status = f(r.Context(), in)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out)
	})
}

func (b *boss) hello(_ context.Context, h *transfer.Register) (any, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doors[h.Site] = *h
	return transfer.Registration{Now: time.Now(), Issuer: b.issuer.URL(), Audience: []string{"somebody"}, Keys: b.issuer.Keys()}, 200
}

func (b *boss) ask(ctx context.Context, a *transfer.PollRequest) (any, int) {
	for {
		b.mu.Lock()
		w := b.work[a.Site]
		delete(b.work, a.Site)
		b.mu.Unlock()
		if w != nil {
			return w, 200
		}
		select {
		case <-b.wake:
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, 200
		}
	}
}

func (b *boss) report(_ context.Context, r *transfer.Report) (any, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = append(b.reports, *r)
	b.outcomes = append(b.outcomes, r.Outcomes...)
	if b.deaf {
		return nil, http.StatusBadGateway
	}
	now := time.Now().Add(b.ahead)
	return transfer.Ack{Now: now, Until: now.Add(time.Minute), Cancel: b.cancel}, 200
}

func (b *boss) deregister(_ context.Context, g *transfer.Deregister) (any, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byes = append(b.byes, *g)
	return struct{}{}, 200
}

func (b *boss) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// gives assigns work to an agent.
func (b *boss) gives(site string, w transfer.Work) {
	b.set(func() { b.work[site] = &w })
	b.wake <- struct{}{}
}

// ended waits for the outcome of an attempt, and returns the number of times it was reported.
func (b *boss) ended(item, epoch int64) (out transfer.Outcome, told int) {
	b.t.Helper()
	require.Eventually(b.t, fmt.Sprintf("the outcome of %d.%d", item, epoch), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		told = 0
		for _, o := range b.outcomes {
			if o.Item == item && o.Epoch == epoch {
				out = o
				told++
			}
		}
		return told > 0
	})
	return out, told
}

// A site is a running agent.
type site struct {
	*Agent
	root string
	stop func() error
}

func (b *boss) options(name, root string) Options {
	return Options{
		Site: name, Root: root, Slots: 4, Endpoint: &EndpointOptions{Listen: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler),
		Coordinator: client.Config{URLs: []string{b.server.URL}, Pin: b.pin, Token: "t", Wait: 20 * time.Second},
	}
}

// runs starts an agent.
func (b *boss) runs(name, root string) *site {
	b.t.Helper()
	return b.run(b.options(name, root))
}

func (b *boss) run(o Options) *site {
	b.t.Helper()
	a, err := New(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	s := &site{Agent: a, root: o.Root}
	s.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		if e := a.Close(); err == nil {
			err = e
		}
		return err
	})
	b.t.Cleanup(func() {
		if err := s.stop(); err != nil {
			b.t.Error(err)
		}
	})
	return s
}

// lease creates a file at from, and returns a lease to pull it to to.
func (b *boss) lease(from, to *site, item, epoch int64, content string) transfer.Lease {
	b.t.Helper()
	require.Eventually(b.t, "the agent of "+from.o.Site, func() bool { // until then it refuses all requests
		return from.endpoint.checker.Load() != nil
	})
	name := fmt.Sprintf("store/f%d", item)
	if err := os.MkdirAll(filepath.Join(from.root, "store"), 0o750); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from.root, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	raw, err := b.issuer.Mint(token.Grant{Subject: "mover", Audience: []string{from.o.Site}, Life: 2 * time.Hour,
		Scopes: []string{token.Path("read", "/"+name)}})
	if err != nil {
		b.t.Fatal(err)
	}
	return transfer.Lease{
		Item: item, Epoch: epoch, Request: 1, Mode: transfer.Pull, Name: "/" + name, Size: int64(len(content)),
		Adler:  fmt.Sprintf("%08x", adler32.Checksum([]byte(content))),
		Source: transfer.End{Site: from.o.Site, Path: name, URL: from.URL() + "/" + name, Token: raw},
		Dest:   transfer.End{Site: to.o.Site, Path: name},
	}
}

// has fails the test unless a site has a file with this content.
func (s *site) has(t *testing.T, item int64, content string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, fmt.Sprintf("store/f%d", item)))
	if err != nil || string(text) != content {
		t.Errorf("file %d: %v, %d bytes of %d", item, err, len(text), len(content))
	}
}

func large(n int) string { return strings.Repeat("0123456789abcdef", n/16) }
