// Package transfertest runs a coordinator, agents of sites and fake agents in the process of a
// test.
package transfertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/client"
)

// A Coordinator is a *coordinator.Coordinator. The interface allows the tests of that package to
// import this package.
type Coordinator interface {
	URL() string
	Pin() string
	Admin() (string, error)
	Run(context.Context) error
	Close() error
}

// A Service is a coordinator and the client of its administrator. Its methods fail the test on errors.
type Service struct {
	T        *testing.T
	Client   *client.Client // of the administrator
	Address  client.Config  // the URLs and the pin of the coordinator, and the token of the administrator
	SiteCA   string         // file of the authorities of sites, for agents
	Standbys []string       // further URLs of the coordinator for agents

	open    func(context.Context) (Coordinator, error)
	running Coordinator // nil after End
	pause   func()
}

// Start opens a coordinator and runs it until the test ends.
func Start(t *testing.T, open func(context.Context) (Coordinator, error)) *Service {
	t.Helper()
	s := &Service{T: t, open: open}
	s.Begin()
	t.Cleanup(s.End)
	return s
}

// Attach returns the service of a coordinator in another process. address includes the token of its
// administrator.
func Attach(t *testing.T, address client.Config) *Service {
	t.Helper()
	c, err := client.New(address)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &Service{T: t, Client: c, Address: address}
}

// Begin opens and runs the coordinator again after End.
func (s *Service) Begin() {
	s.T.Helper()
	c, err := s.open(s.T.Context())
	require.NoError(s.T, err)
	s.running = c
	s.Resume()
	raw, err := c.Admin()
	require.NoError(s.T, err)
	s.Address = client.Config{URLs: []string{c.URL()}, Pin: c.Pin(), Token: raw}
	s.Client = s.Login(raw)
}

// End ends the coordinator if it has not ended.
func (s *Service) End() {
	s.T.Helper()
	if s.running == nil {
		return
	}
	s.pause()
	if err := s.running.Close(); err != nil {
		s.T.Error(err)
	}
	s.running = nil
	s.Client.Close()
}

// Resume runs the coordinator again after Pause.
func (s *Service) Resume() {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.T.Context()))
	var run sync.WaitGroup
	run.Go(func() {
		if err := s.running.Run(ctx); err != nil {
			s.T.Error(err)
		}
	})
	s.pause = func() { stop(); run.Wait() }
}

// Pause stops the work of the coordinator. It still responds to requests.
func (s *Service) Pause() { s.pause() }

// Login returns a client with a token. It is closed when the test ends.
func (s *Service) Login(raw string) *client.Client {
	s.T.Helper()
	address := s.Address
	address.Token = raw
	c, err := client.New(address)
	require.NoError(s.T, err)
	s.T.Cleanup(c.Close)
	return c
}

// NewToken returns a new token that is valid for an hour.
func (s *Service) NewToken(subject string, roles ...string) string {
	s.T.Helper()
	raw, err := s.Client.Token(s.T.Context(), transfer.NewToken{Subject: subject, Roles: roles, Life: time.Hour})
	require.NoError(s.T, err)
	return raw
}

// As returns the client of a user with roles.
func (s *Service) As(subject string, roles ...string) *client.Client {
	s.T.Helper()
	return s.Login(s.NewToken(subject, roles...))
}

// Register registers a dataset of files of equal size at a site, whether they exist or not.
func (s *Service) Register(dataset, site string, files int, size int64) {
	s.T.Helper()
	in := transfer.NewFiles{Dataset: dataset, Site: site, By: "the test"}
	for i := range files {
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: fmt.Sprintf("%s/f%d", dataset, i), Size: size,
			Adler: fmt.Sprintf("%08x", i+1)}})
		if len(in.Files) == transfer.MaxNewFiles || i == files-1 {
			_, err := s.Client.AddFiles(s.T.Context(), in)
			require.NoError(s.T, err)
			in.Files = nil
		}
	}
}

// Scan waits until the site's agent has registered, and then registers the files of a folder of the
// site as a dataset.
func (s *Service) Scan(dataset, site, folder string) {
	s.T.Helper()
	s.WaitUp(site)
	state, err := s.Client.Scan(s.T.Context(), transfer.NewScan{Dataset: dataset, Site: site, Path: folder})
	require.NoError(s.T, err)
	require.Eventually(s.T, "the scan is done", func() bool {
		state, err = s.Client.ScanState(s.T.Context(), state.ID)
		require.NoError(s.T, err)
		return state.Done
	})
	if len(state.Problem) > 0 {
		s.T.Errorf("scan: %+v", state)
	}
}

// WaitUp waits until the agent of a site has registered.
func (s *Service) WaitUp(site string) {
	s.T.Helper()
	require.Eventually(s.T, "the agent has signed in", func() bool {
		sites, err := s.Client.Sites(s.T.Context())
		for _, of := range sites {
			if of.Name == site && of.Up {
				return err == nil
			}
		}
		return false
	})
}

// WaitEnd waits until a request has ended. It logs the state of a request that does not end.
func (s *Service) WaitEnd(id int64) transfer.Request {
	s.T.Helper()
	var q transfer.Request
	defer func() {
		if !q.Status.Ended() {
			s.Log(id)
		}
	}()
	require.Eventually(s.T, "the request ends", func() bool {
		var err error
		q, err = s.Client.Request(s.T.Context(), id)
		require.NoError(s.T, err)
		return q.Status.Ended()
	})
	return q
}

// Log logs a request, with the reasons why it waits and some of its files and attempts.
func (s *Service) Log(id int64) {
	s.T.Helper()
	ctx := s.T.Context()
	q, _ := s.Client.Request(ctx, id)
	s.T.Logf("%+v", q)
	x, _ := s.Client.Explain(ctx, id, "")
	s.T.Logf("%+v", x.Reasons)
	items, _ := s.Client.Items(ctx, id, "", 0, 5)
	for _, it := range items {
		s.T.Logf("%+v", it)
	}
	attempts, _ := s.Client.Attempts(ctx, id, 0, 10)
	for _, a := range attempts {
		s.T.Logf("%+v", a)
	}
}
