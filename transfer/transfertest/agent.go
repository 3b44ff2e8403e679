package transfertest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/transfer/access"
	"weir/transfer/agent"
)

// An Agent is the agent of a site that runs in this process, with the folder of the site.
type Agent struct {
	T    *testing.T
	Root string
	Stop func() // ends the agent and waits for its end; further calls do nothing
}

// Endpoint returns the options of an endpoint on loopback that copies to and from all other
// endpoints.
func Endpoint() *agent.EndpointOptions {
	return &agent.EndpointOptions{Listen: "127.0.0.1:0", Private: true, Peers: []string{"*"}}
}

// PassiveEndpoint returns the options of an endpoint on loopback that starts no copies.
func PassiveEndpoint() *agent.EndpointOptions { return &agent.EndpointOptions{Listen: "127.0.0.1:0"} }

// Agent starts the agent of a site with a new folder, and returns when the agent has registered.
// endpoint may be nil.
func (s *Service) Agent(site string, endpoint *agent.EndpointOptions) *Agent {
	s.T.Helper()
	a := &Agent{T: s.T, Root: s.T.TempDir()}
	s.StartAgent(a, site, endpoint)
	return a
}

// StartAgent starts an agent of a site with the folder of a, and returns when the agent has
// registered. The agent runs until a.Stop is called or the test ends.
func (s *Service) StartAgent(a *Agent, site string, endpoint *agent.EndpointOptions) {
	s.T.Helper()
	o := agent.Options{Site: site, Root: a.Root, Slots: 8, SiteCA: s.SiteCA, Endpoint: endpoint, Coordinator: s.Address}
	o.Coordinator.URLs = append(o.Coordinator.URLs[:1:1], s.Standbys...)
	o.Coordinator.Token = s.NewToken("agent "+site, access.AgentOf+site)
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(s.T.Output(), nil)).With("agent", site)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.T.Context()))
	of, err := agent.New(ctx, o)
	require.NoError(s.T, err)
	ended := make(chan error, 1)
	go func() { ended <- of.Run(ctx) }()
	a.Stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.T.Errorf("the agent of %s: %v", site, err)
		}
		if err := of.Close(); err != nil {
			s.T.Error(err)
		}
	})
	s.T.Cleanup(a.Stop)
	s.WaitUp(site)
}

// Write writes files of random bytes into the folder of a dataset: f0, f1 and so on.
func (a *Agent) Write(dataset string, files, size int) {
	a.T.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for i := range files {
		b := make([]byte, size)
		_, _ = random.Read(b) // never fails
		a.Put(fmt.Sprintf("%s/f%d", dataset, i), b)
	}
}

// Put writes a file.
func (a *Agent) Put(name string, data []byte) {
	a.T.Helper()
	path := filepath.Join(a.Root, name)
	require.NoError(a.T, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(a.T, os.WriteFile(path, data, 0o644))
}
