package transfertest

import (
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/client"
)

// A FakeAgent sends the messages of an agent when a test calls it, and moves no files.
type FakeAgent struct {
	T       *testing.T
	Client  *client.Client
	Site    string
	Session string
	Holding map[int64]transfer.Lease // by item

	number int64 // number of the latest report
	mu     sync.Mutex
}

// FakeAgent returns an agent of a site that has not registered.
func (s *Service) FakeAgent(site string) *FakeAgent {
	s.T.Helper()
	return &FakeAgent{T: s.T, Client: s.As("agent "+site, access.AgentOf+site), Site: site, Session: "one",
		Holding: map[int64]transfer.Lease{}}
}

// Register registers the agent with the URL of its endpoint, which may be empty.
func (a *FakeAgent) Register(url string) transfer.Registration {
	a.T.Helper()
	r, err := a.Client.Register(a.T.Context(), transfer.Register{Site: a.Site, Session: a.Session, URL: url, Slots: 4, Free: 1 << 40,
		Holding: a.holds()})
	require.NoError(a.T, err)
	return r
}

func (a *FakeAgent) holds() (all []transfer.LeaseID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.Holding {
		all = append(all, transfer.LeaseID{Item: l.Item, Epoch: l.Epoch})
	}
	return all
}

// Work requests work once.
func (a *FakeAgent) Work() transfer.Work {
	a.T.Helper()
	w, err := a.Client.Work(a.T.Context(), transfer.PollRequest{Site: a.Site, Session: a.Session, Slots: 4, Free: 1 << 40,
		Holding: a.holds()})
	require.NoError(a.T, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range w.Leases {
		a.Holding[l.Item] = l
	}
	return w
}

// WaitWork requests work until there are leases.
func (a *FakeAgent) WaitWork() (all []transfer.Lease) {
	a.T.Helper()
	require.Eventually(a.T, "there is work", func() bool {
		all = a.Work().Leases
		return len(all) > 0
	})
	return all
}

// Report reports outcomes. It also reports that half of each other file that the agent holds has
// been moved.
func (a *FakeAgent) Report(all ...transfer.Outcome) (transfer.Ack, error) {
	a.number++
	in := transfer.Report{Site: a.Site, Session: a.Session, Number: a.number, Free: 1 << 40, Outcomes: all}
	over := map[int64]bool{}
	for _, o := range all {
		over[o.Item] = true
	}
	a.mu.Lock()
	for _, l := range a.Holding {
		if !over[l.Item] {
			in.Progress = append(in.Progress, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: transfer.Moving, Moved: l.Size / 2})
		}
	}
	a.mu.Unlock()
	ack, err := a.Client.Report(a.T.Context(), in)
	if err == nil {
		a.mu.Lock()
		for item := range over {
			delete(a.Holding, item)
		}
		a.mu.Unlock()
	}
	return ack, err
}

// Verified returns the outcome of a lease whose file was moved and verified.
func Verified(l transfer.Lease) transfer.Outcome {
	now := time.Now()
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Size: l.Size, Adler: l.Adler, Verified: true, Moved: l.Size,
		Begin: now.Add(-10 * time.Millisecond), End: now}
}
