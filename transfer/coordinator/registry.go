package coordinator

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/schedule"
)

// After this time without a word from its agent a site counts as down. Agents poll again every 20 s
// and report every 2 s; an agent whose poll was interrupted has most probably ended.
const (
	agentTimeout  = 15 * time.Second
	brokenTimeout = 4 * time.Second
)

// A registry is the state in memory: agents, leases, sites and the network. All of it can be rebuilt
// from the database and from what agents say when they register. Functions named ...Locked need mu,
// which their callers hold.
type registry struct {
	mu       sync.Mutex
	agents   map[string]*agent      // by site
	leases   map[int64]*activeLease // by item
	plans    map[int64]*plan        // of leases that are being taken, by item
	net      *schedule.Network
	sites    map[string]catalog.Site // as last read from the database
	secrets  map[string]secrets      // of sites without agents
	replaced map[string][]string     // sessions of agents that another agent has replaced, by site
	scans    map[int64]*scan         // that are not done
	backoff  map[string]time.Time    // destinations for which nothing could be dispatched: when to try again
	pushed   map[string]bool         // destinations to which other sites' agents pushed in the last round
	closed   bool
	named    map[string]time.Time // when a submission last named a site by a URL
	leaving  string               // the site that is being removed since no job uses it: jobs add it again
	bans     []ban
	deleting map[string]int // files that are being removed, by site
	settings settings

	breakers  map[viewer]*breaker // of sites that refuse requests
	unable    map[pair]inability  // modes that two sites do not support
	endpoints map[string]endpoint // what probes found out about sites without agents
}

// secrets are the credentials of an endpoint. They are encrypted in the database.
type secrets struct {
	Token string `json:"token,omitempty"`
	Pin   string `json:"pin,omitempty"`

	Servers []string `json:"servers,omitempty"`    // that may receive Token, besides the site's URL
	Lend    bool     `json:"lend_token,omitempty"` // agents and other sites that copy from or to this one get Token
}

// An agent is a registered agent.
type agent struct {
	transfer.Register
	area    tpc.Area // from which it connects: its endpoint is not contacted nearer to us
	heard   time.Time
	free    int64
	polls   int // numbers its polls: only the latest counts
	waiting bool
	broken  bool // its last poll was interrupted
	slots   int  // free ones, at its last poll
	bell    chan struct{}
	ready   []*activeLease // for its next answer
	cancel  []transfer.LeaseID
	lost    []transfer.LeaseID
	count   int     // leases that it holds
	seconds float64 // predicted time of their transfers, one after the other
	scans   []int64 // that it knows of
	latest  transfer.Sample
}

// timeoutLocked returns how long the agent may be silent before its site counts as down.
func (a *agent) timeoutLocked() time.Duration {
	if a.broken {
		return brokenTimeout
	}
	return agentTimeout
}

// wake wakes the agent's poll.
func (a *agent) wake() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// An activeLease is a lease with a mover.
type activeLease struct {
	transfer.Lease
	mover      string        // the site of the agent; "": the coordinator
	want       transfer.Mode // that the request asks for; "": any, or not known
	seconds    float64
	given      time.Time
	dispatched bool // it was in an answer
	stage      transfer.Stage
	moved      int64
	heard      time.Time // from its mover
	renewed    time.Time // in the database
	began      time.Time // the first byte was reported
	cancelled  bool
	streamed   bool                    // its bytes pass through the coordinator
	lost       bool                    // its mover is another process now: it is not given out again
	retry      time.Duration           // between two questions about it to its destination
	stop       context.CancelCauseFunc // of a third-party copy
}

// openRegistry reads links, sites, scans and leases from the database.
func (c *Coordinator) openRegistry(ctx context.Context) error {
	c.registry = registry{
		agents: map[string]*agent{}, leases: map[int64]*activeLease{}, replaced: map[string][]string{}, scans: map[int64]*scan{},
		backoff: map[string]time.Time{}, pushed: map[string]bool{}, breakers: map[viewer]*breaker{}, unable: map[pair]inability{},
		endpoints: map[string]endpoint{}, named: map[string]time.Time{}, deleting: map[string]int{}, secrets: map[string]secrets{},
		net: schedule.New(c.conf.Rules, rand.Uint64()),
	}
	texts, err := db.Select(ctx, c.db, db.Value[string], "SELECT kept FROM link ORDER BY source, dest")
	if err != nil {
		return err
	}
	var kept []schedule.Kept
	for _, t := range texts {
		var k schedule.Kept
		if json.Unmarshal([]byte(t), &k) == nil { // of another version: it is learned again
			kept = append(kept, k)
		}
	}
	c.registry.mu.Lock()
	c.registry.net.Load(kept, c.now())
	c.registry.mu.Unlock()
	for _, read := range []func(context.Context) error{c.openBans, c.readSites, c.openSettings} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	scans, err := db.Select(ctx, c.db, readScan, scanColumns+"WHERE NOT done ORDER BY id")
	if err != nil {
		return err
	}
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, s := range scans {
		c.registry.scans[s.ID] = s
	}
	for _, l := range leases {
		c.addLeaseLocked(&activeLease{Lease: l, mover: moverOf(l), dispatched: true, heard: c.begun, given: c.begun})
	}
	return nil
}

// moverOf returns the site whose agent executes a lease, "" for third-party copies.
func moverOf(l transfer.Lease) string { return l.Mode.Mover(l.Source.Site, l.Dest.Site) }

// moverAgentLocked returns the agent of a mover, nil if it has none.
func (r *registry) moverAgentLocked(mover string) *agent {
	if mover == "" {
		return nil
	}
	return r.agents[mover]
}

// site returns a site and whether it is known.
func (r *registry) site(name string) (catalog.Site, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.sites[name]
	return s, known
}

// leaseLocked returns the lease of an item and epoch, nil if it is not active.
func (r *registry) leaseLocked(id transfer.LeaseID) *activeLease {
	if l := r.leases[id.Item]; l != nil && l.Epoch == id.Epoch {
		return l
	}
	return nil
}

// beginLocked counts a transfer.
func (r *registry) beginLocked(l *activeLease, now time.Time) {
	if l.Mode == transfer.Delete {
		r.deleting[l.Dest.Site]++
	}
	r.net.Began(l.Source.Site, l.Dest.Site, max(l.Size, 0), now)
	if a := r.moverAgentLocked(l.mover); a != nil {
		a.count++
		a.seconds += l.seconds
	}
}

// endLocked undoes beginLocked.
func (r *registry) endLocked(l *activeLease, now time.Time) {
	if l.Mode == transfer.Delete {
		r.deleting[l.Dest.Site]--
	}
	r.net.Left(l.Source.Site, l.Dest.Site, max(l.Size, 0), now)
	if a := r.moverAgentLocked(l.mover); a != nil {
		a.count--
		a.seconds = max(0, a.seconds-l.seconds)
	}
}

// addLeaseLocked adds a lease.
func (c *Coordinator) addLeaseLocked(l *activeLease) {
	c.registry.leases[l.Item] = l
	c.registry.beginLocked(l, c.now())
}

// removeLeaseLocked removes a lease.
func (c *Coordinator) removeLeaseLocked(l *activeLease) {
	if c.registry.leases[l.Item] != l {
		return
	}
	delete(c.registry.leases, l.Item)
	delete(c.registry.backoff, l.Dest.Site)      // it has a free slot again
	if c.registry.sites[l.Source.Site].Max > 0 { // so have others
		clear(c.registry.backoff)
	}
	c.registry.endLocked(l, c.now())
	if l.stop != nil {
		l.stop(errEnded)
	}
}

// close has waiting polls answered.
func (r *registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, a := range r.agents {
		a.wake()
	}
}

func (r *registry) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// saveLinks writes what is known of links to the database.
func (c *Coordinator) saveLinks(ctx context.Context) error {
	c.registry.mu.Lock()
	kept := c.registry.net.Keep()
	c.registry.mu.Unlock()
	const query = "INSERT INTO link (source, dest, kept) VALUES (?, ?, ?) ON CONFLICT (source, dest) DO UPDATE SET kept = excluded.kept"
	return c.db.Many(ctx, query, func(yield func([]any) bool) {
		for _, k := range kept {
			text, err := json.Marshal(k)
			if err == nil && !yield([]any{k.Source, k.Dest, string(text)}) {
				return
			}
		}
	})
}
