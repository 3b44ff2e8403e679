package page_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"weir/transfer"
	"weir/transfer/agent"
	"weir/transfer/client"
	"weir/transfer/coordinator"
)

// A house is a coordinator and agents, as users run them, on this machine.
type house struct {
	*coordinator.Coordinator
	t     *testing.T
	state string
	token string // of the administrator
	admin *client.Client
	roots map[string]string // of sites
	end   func()
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, state: t.TempDir(), roots: map[string]string{}}
	h.begin("127.0.0.1:0")
	t.Cleanup(func() { h.end() })
	return h
}

// begin starts the coordinator, at the same address each time.
func (h *house) begin(at string) {
	h.t.Helper()
	c, err := coordinator.Open(h.t.Context(), coordinator.Config{State: h.state, Listen: at})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Coordinator = c
	var done sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done.Go(func() {
		if err := c.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	if h.token, err = c.Admin(); err != nil {
		h.t.Fatal(err)
	}
	h.admin = h.client(h.token)
	h.end = sync.OnceFunc(func() {
		stop()
		done.Wait()
		if err := c.Close(); err != nil {
			h.t.Error(err)
		}
	})
}

func (h *house) client(token string) *client.Client {
	h.t.Helper()
	c, err := client.New(client.Config{URLs: []string{h.URL()}, Pin: h.Pin(), Token: token})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// as creates a token for a user.
func (h *house) as(name string, roles ...string) string {
	h.t.Helper()
	raw, err := h.admin.Token(h.t.Context(), transfer.NewToken{Subject: name, Roles: roles, Life: time.Hour})
	if err != nil {
		h.t.Fatal(err)
	}
	return raw
}

// agent runs the agent of a site until the function that it returns is called.
func (h *house) agent(site string) (end func()) {
	h.t.Helper()
	root := h.roots[site]
	if root == "" {
		root = h.t.TempDir()
		h.roots[site] = root
	}
	a, err := agent.New(h.t.Context(), agent.Options{Site: site, Root: root, Coordinator: client.Config{URLs: []string{h.URL()}, Pin: h.Pin(),
		Token: h.as("agent of "+site, "weir.agent:"+site)}, Endpoint: &agent.EndpointOptions{Listen: "127.0.0.1:0"}})
	if err != nil {
		h.t.Fatal(err)
	}
	var done sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done.Go(func() {
		if err := a.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		stop()
		done.Wait()
		if err := a.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(end)
	return end
}

// fill writes files of a dataset into a site's folder and has its agent register them.
func (h *house) fill(site, dataset string, from, to int) {
	h.t.Helper()
	dir := filepath.Join(h.roots[site], filepath.FromSlash(dataset))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	text := make([]byte, 1<<20)
	for i := from; i < to; i++ {
		_, _ = rand.Read(text) // never fails
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.root", i)), text, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	scan := transfer.NewScan{Dataset: dataset, Site: site, Path: dataset[1:]}
	state, err := h.admin.Scan(h.t.Context(), scan)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); state, err = h.admin.Scan(h.t.Context(), scan) {
		<-time.After(20 * time.Millisecond) // the site's agent has not registered yet
	}
	for end := time.Now().Add(time.Minute); err == nil && !state.Done; state, err = h.admin.ScanState(h.t.Context(), state.ID) {
		if time.Now().After(end) {
			h.t.Fatalf("the scan does not end: %+v", state)
		}
	}
	if err != nil || len(state.Problem) > 0 {
		h.t.Fatal(state.Problem, err)
	}
}
