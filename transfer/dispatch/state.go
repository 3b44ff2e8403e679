// Package dispatch has the state of a coordinator in memory and makes decisions with it: the
// registered agents and their leases, the source and the mover of each file, the sites that refuse
// requests, and the reasons why files wait. All of it can be rebuilt from the database and from the
// agents' registrations. The package has no database, no network and no goroutines.
package dispatch

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/metrics"
	"weir/transfer/schedule"
)

// The causes of the end of a third-party copy's context.
var (
	ErrEnded     = errors.New("the lease has ended")
	ErrCancelled = errors.New("the request was cancelled")
)

// A Config configures a State.
type Config struct {
	Rules    schedule.Rules // of limits and sources
	Now      func() time.Time
	Log      *slog.Logger
	Wake     func() // called when files may be dispatched; it does not call this package
	Counters *metrics.Counters
	Streams  bool          // the coordinator may copy the bytes itself
	Lease    time.Duration // time for which a mover may be silent
	JobArea  tpc.Area      // of the endpoints in the URLs of jobs
}

// A State has three views of the registry, each of which can be used concurrently.
type State struct {
	Agents *Agents
	Leases *Leases
	Sites  *Sites
}

// Agents are the registered agents, and the scans of their folders.
type Agents struct{ r *registry }

// Leases are the leases of files, and the links on which they are transferred.
type Leases struct{ r *registry }

// Sites are the known sites: their credentials, abilities, limits and bans.
type Sites struct{ r *registry }

// New returns the state of a coordinator that has just started.
func New(c Config) State {
	r := &registry{
		agents: map[string]*Agent{}, leases: map[int64]*ActiveLease{}, replaced: map[string][]string{}, scans: map[int64]*Scan{},
		backoff: map[string]time.Time{}, pushed: map[string]bool{}, breakers: map[viewer]*breaker{}, unable: map[pair]inability{},
		endpoints: map[string]Endpoint{}, named: map[string]time.Time{}, deleting: map[string]int{}, missed: map[int64]time.Time{},
		secrets: map[string]Secrets{}, net: schedule.New(c.Rules, rand.Uint64()),
		now: c.Now, log: c.Log, wake: c.Wake, counters: c.Counters, streams: c.Streams, lease: c.Lease, begun: c.Now(), jobArea: c.JobArea,
		guards: guardsOf(tpc.Public, tpc.Network, tpc.Loopback),
	}
	return State{&Agents{r}, &Leases{r}, &Sites{r}}
}

// LoadLinks loads the state of links from the database.
func (f *Leases) LoadLinks(links []schedule.Kept) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.net.Load(links, r.now())
}

// Load loads open scans and leases from the database.
func (f *Leases) Load(scans []*Scan, leases []transfer.Lease) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range scans {
		r.scans[s.ID] = s
	}
	for _, l := range leases {
		r.addLeaseLocked(&ActiveLease{Lease: l, mover: moverOf(l), dispatched: true, heard: r.begun, given: r.begun})
	}
}
