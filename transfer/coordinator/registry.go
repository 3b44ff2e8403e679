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

// For how long an agent may say nothing until its site counts as down. Agents that
// wait for work ask again every 20 s, and report every 2; one whose question broke
// off has most probably ended.
const (
	silence = 15 * time.Second
	hangUp  = 4 * time.Second // after that
)

// A registry is what is known in memory: the agents that are there, the leases that are
// held, and the network. All of it can be had again from the database and from
// what agents tell when they come in.
type registry struct {
	mu      sync.Mutex
	agents  map[string]*agent      // by site
	leases  map[int64]*activeLease // by item
	net     *schedule.Network
	sites   map[string]catalog.Site // as the database had them last
	secrets map[string]secrets      // of sites that are no agents
	ousted  map[string][]string     // sessions of agents in whose place others have come
	scans   map[int64]*scan         // that are not done
	calm    map[string]time.Time    // destinations for which nothing could be begun, until when they are left alone
	pushed  map[string]bool         // destinations to which other sites' agents were given files to push, lately
	full    bool                    // it is closing

	breakers map[viewer]*breaker // of sites that refuse
	unable   map[pair]inability  // what two sites cannot do

	endpoints map[string]endpoint // what was learned of sites without agents
}

// secrets are what an endpoint is opened with. They are sealed in the database.
type secrets struct {
	Token string `json:"token,omitempty"`
	Pin   string `json:"pin,omitempty"`

	Servers []string `json:"servers,omitempty"`    // that may see Token, besides the site's URL
	Lend    bool     `json:"lend_token,omitempty"` // Token is given to agents and other sites that copy from or to this one
}

// An agent is one that has come in.
type agent struct {
	transfer.Register
	area    tpc.Area // from where it has come: its door is not looked for nearer to us
	heard   time.Time
	free    int64
	asks    int // numbers its questions for work: the last one counts
	waiting bool
	broken  bool // its last question for work broke off
	slots   int  // leases that it can begin, as it said last
	bell    chan struct{}
	ready   []*activeLease // for its next answer
	cancel  []transfer.LeaseID
	lost    []transfer.LeaseID
	count   int     // leases that it holds
	seconds float64 // that they are predicted to take, one after the other
	scans   []int64 // that it knows of
	latest  transfer.Sample
}

// An activeLease is a lease that somebody holds.
type activeLease struct {
	transfer.Lease
	mover      string        // the site of the agent; "": the coordinator
	want       transfer.Mode // that the request asks for; "": any, or not known
	seconds    float64
	given      time.Time
	dispatched bool // it was in an answer
	stage      transfer.Stage
	moved      int64
	heard      time.Time // its mover was
	renewed    time.Time // in the database
	began      time.Time // the first byte was reported
	cancelled  bool
	lost       bool                    // its mover is another process now: it is never given out again
	asked      time.Duration           // between two questions for it at its destination
	stop       context.CancelCauseFunc // of a copy by third parties
}

func (h *activeLease) hold() transfer.LeaseID { return transfer.LeaseID{Item: h.Item, Epoch: h.Epoch} }

// openRegistry takes up what the database knows: links, sites, doors and leases.
func (c *Coordinator) openRegistry(ctx context.Context) error {
	h := &c.registry
	h.agents, h.leases, h.ousted = map[string]*agent{}, map[int64]*activeLease{}, map[string][]string{}
	h.calm, h.pushed = map[string]time.Time{}, map[string]bool{}
	h.breakers, h.unable = map[viewer]*breaker{}, map[pair]inability{}
	h.endpoints = map[string]endpoint{}
	h.net = schedule.New(c.conf.Rules, rand.Uint64())
	kept, err := c.readLinks(ctx)
	if err != nil {
		return err
	}
	h.net.Load(kept, c.now())
	h.secrets = map[string]secrets{}
	if err := c.learnSites(ctx); err != nil {
		return err
	}
	if err := c.openScans(ctx); err != nil {
		return err
	}
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		c.hold(&activeLease{Lease: l, mover: moverOf(l), dispatched: true, heard: c.begun, given: c.begun})
	}
	return nil
}

// moverOf is the site whose agent moves a lease, "" if third parties do.
func moverOf(l transfer.Lease) string { return l.Mode.Mover(l.Source.Site, l.Dest.Site) }

// hold notes a lease that is held from now on. The registry is locked, or new.
func (c *Coordinator) hold(l *activeLease) {
	h := &c.registry
	h.leases[l.Item] = l
	h.net.Began(l.Source.Site, l.Dest.Site, l.Size, c.now())
	if a := h.agents[l.mover]; a != nil && l.mover != "" {
		a.count++
		a.seconds += l.seconds
	}
}

// let notes that a lease is held no longer. The registry is locked.
func (c *Coordinator) let(l *activeLease) {
	h := &c.registry
	if h.leases[l.Item] != l {
		return
	}
	delete(h.leases, l.Item)
	delete(h.calm, l.Dest.Site) // there is room again
	h.net.Left(l.Source.Site, l.Dest.Site, l.Size, c.now())
	if a := h.agents[l.mover]; a != nil && l.mover != "" {
		a.count--
		a.seconds = max(0, a.seconds-l.seconds)
	}
	if l.stop != nil {
		l.stop(errOver)
	}
}

// close has questions that wait answered, and no new ones wait.
func (h *registry) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = true
	for _, a := range h.agents {
		a.ring()
	}
}

// ring wakes the agent's question for work.
func (a *agent) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// readLinks reads what was known of links.
func (c *Coordinator) readLinks(ctx context.Context) (kept []schedule.Kept, err error) {
	err = c.db.Read(ctx, func(tx *db.Tx) error {
		kept = nil
		texts, err := db.Column[string](tx, "SELECT kept FROM link ORDER BY source, dest")
		for _, t := range texts {
			var k schedule.Kept
			if json.Unmarshal([]byte(t), &k) == nil { // of another version: it is learned anew
				kept = append(kept, k)
			}
		}
		return err
	})
	return kept, err
}

// keepLinks writes down what is known of links.
func (c *Coordinator) keepLinks(ctx context.Context) error {
	c.registry.mu.Lock()
	kept := c.registry.net.Keep()
	c.registry.mu.Unlock()
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Many("INSERT INTO link (source, dest, kept) VALUES (?, ?, ?) ON CONFLICT (source, dest) DO UPDATE SET kept = excluded.kept", func(yield func([]any) bool) {
			for _, k := range kept {
				text, err := json.Marshal(k)
				if err == nil && !yield([]any{k.Source, k.Dest, string(text)}) {
					return
				}
			}
		})
		return err
	})
}
