package dispatch

import (
	"log/slog"
	"testing"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/metrics"
	"weir/transfer/queue"
)

// newState returns the state of a coordinator without sites.
func newState() State {
	return New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler), Wake: func() {}, Counters: metrics.NewCounters(time.Now)})
}

// A lease that only the database has counts for its agent during the search for it, and no longer
// after that.
func TestMissingLeasesAreCounted(t *testing.T) {
	s := newState()
	s.Agents.Register(&transfer.Register{Site: "A", Session: "one"}, tpc.Loopback)
	l := transfer.Lease{Item: 1, Epoch: 1, Mode: transfer.Pull, Source: transfer.End{Site: "B"}, Dest: transfer.End{Site: "A"}}
	s.Leases.Missing([]queue.ExpiredLease{{Lease: l}})
	agent := s.Agents.r.agents["A"]
	if agent.count != 1 {
		t.Errorf("the agent has %d leases", agent.count)
	}
	s.Leases.ApplyChanges("", []queue.Change{{Item: 1, Epoch: 1}}, nil)
	if agent.count != 0 {
		t.Errorf("the agent has %d leases after the end", agent.count)
	}
}

// If two sites do not support a mode and there is another mode, a file does not fail, even while
// the agent that it needs is away.
func TestUnableWhileTheAgentIsAway(t *testing.T) {
	s := newState()
	s.Sites.Set(map[string]catalog.Site{
		"A": {Name: "A", Kind: catalog.AgentSite, URL: "https://a.example.org/"},
		"N": {Name: "N", Kind: catalog.HTTPSite, URL: "https://n.example.org/"},
	}, nil)
	for _, up := range []bool{true, false} {
		s.Sites.SetUp("A", up, "")
		l := transfer.Lease{Item: 1, Epoch: 1, Source: transfer.End{Site: "A"}, Dest: transfer.End{Site: "N"}, Mode: transfer.Third}
		s.Leases.Load(nil, []transfer.Lease{l})
		out := s.Leases.Classify("", []transfer.Outcome{{Item: 1, Epoch: 1, Fault: transfer.ModeUnsupported}})
		if out[0].Fault != transfer.MoverStopped {
			t.Errorf("the agent is there: %v: %+v", up, out[0])
		}
	}
}
