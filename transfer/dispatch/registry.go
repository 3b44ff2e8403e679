package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/metrics"
	"weir/transfer/schedule"
)

// After this time without a message from its agent a site counts as down. Agents poll again every
// 20 s and report every 2 s; an agent whose poll was interrupted has most probably ended.
const (
	agentTimeout  = 15 * time.Second
	brokenTimeout = 4 * time.Second
)

// A registry is the state in memory: agents, leases, sites and the network. All of it can be
// rebuilt from the database and from agents' registrations. Functions named ...Locked need mu,
// which their callers hold.
type registry struct {
	mu       sync.Mutex
	agents   map[string]*Agent      // by site
	leases   map[int64]*ActiveLease // by item
	plans    Plans                  // of leases that are being taken, by item
	net      *schedule.Network
	sites    map[string]catalog.Site // as last read from the database
	secrets  map[string]Secrets      // of sites without agents
	replaced map[string][]string     // sessions of agents that another agent has replaced, by site
	scans    map[int64]*Scan         // that are not done
	backoff  map[string]time.Time    // destinations for which no file could be dispatched: when to try again
	pushed   map[string]bool         // destinations to which other sites' agents pushed in the last round
	closed   bool
	named    map[string]time.Time // when a submission last named a site by a URL
	leaving  string               // the site that is being removed since no job uses it: jobs add it again
	bans     []Ban
	missed   map[int64]time.Time // leases that the queue missed: when to look for their files again
	deleting map[string]int      // files that are being removed, by site
	settings Settings

	breakers  map[viewer]*breaker // of sites that refuse requests
	unable    map[pair]inability  // modes that two sites do not support
	endpoints map[string]Endpoint // results of probes of sites without agents

	now      func() time.Time // these do not change
	log      *slog.Logger
	wake     func() // files may be dispatched
	counters *metrics.Counters
	streams  bool                    // the coordinator may copy the bytes itself
	guards   map[tpc.Area]*tpc.Guard // of agents' endpoints, by where the agents connect from; shared: connections are kept by guard
	lease    time.Duration           // see Config.Lease
	begun    time.Time
	jobArea  tpc.Area // see Config.JobArea
}

// Secrets are the credentials of an endpoint. They are encrypted in the database.
type Secrets struct {
	Token string `json:"token,omitempty"`
	Pin   string `json:"pin,omitempty"`

	Servers []string `json:"servers,omitempty"`    // that may receive Token, besides the site's URL
	Lend    bool     `json:"lend_token,omitempty"` // agents and other sites that copy from or to this one get Token
}

// An Agent is a registered agent.
type Agent struct {
	transfer.Register
	area    tpc.Area // from which it connects: its endpoint is not contacted in a smaller area
	heard   time.Time
	free    int64
	polls   int // numbers its polls: only the latest counts
	waiting bool
	broken  bool // its last poll was interrupted
	slots   int  // free slots, at its last poll
	bell    chan struct{}
	ready   []*ActiveLease // for its next response
	cancel  []transfer.LeaseID
	lost    []transfer.LeaseID
	count   int     // leases that it holds
	seconds float64 // predicted time of their transfers, one after another
	scans   []int64 // that it has received
}

// timeoutLocked returns the time for which the agent may be silent before its site counts as down.
func (a *Agent) timeoutLocked() time.Duration {
	if a.broken {
		return brokenTimeout
	}
	return agentTimeout
}

// Woken returns a channel that has a value when the agent's poll is to return.
func (a *Agent) Woken() <-chan struct{} { return a.bell }

// wake wakes the agent's poll.
func (a *Agent) wake() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// An ActiveLease is a lease with a mover.
type ActiveLease struct {
	transfer.Lease
	mover      string        // the site of the agent; "": the coordinator
	want       transfer.Mode // the mode of the request; "": any, or not known
	seconds    float64
	given      time.Time
	dispatched bool // a response contained it
	stage      transfer.Stage
	moved      int64
	heard      time.Time // from its mover
	renewed    time.Time // in the database
	began      time.Time // the first byte was reported
	cancelled  bool
	streamed   bool                    // its bytes pass through the coordinator
	lost       bool                    // its mover is another process now: it is not given out again
	retry      time.Duration           // between two requests about it to its destination
	stop       context.CancelCauseFunc // of a third-party copy
}

// guardsOf returns a guard for each area.
func guardsOf(areas ...tpc.Area) map[tpc.Area]*tpc.Guard {
	all := map[tpc.Area]*tpc.Guard{}
	for _, area := range areas {
		all[area] = &tpc.Guard{Hosts: []string{"*"}, Upto: area}
	}
	return all
}

// moverOf returns the site whose agent executes a lease, or "" for third-party copies.
func moverOf(l transfer.Lease) string { return l.Mode.Mover(l.Source.Site, l.Dest.Site) }

// moverAgentLocked returns the agent of a mover, or nil if it has no agent.
func (r *registry) moverAgentLocked(mover string) *Agent {
	if mover == "" {
		return nil
	}
	return r.agents[mover]
}

// leaseLocked returns the lease of an item and epoch, or nil if it is not active.
func (r *registry) leaseLocked(id transfer.LeaseID) *ActiveLease {
	if l := r.leases[id.Item]; l != nil && l.Epoch == id.Epoch {
		return l
	}
	return nil
}

// beginLocked counts a transfer.
func (r *registry) beginLocked(l *ActiveLease, now time.Time) {
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
func (r *registry) endLocked(l *ActiveLease, now time.Time) {
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
func (r *registry) addLeaseLocked(l *ActiveLease) {
	r.leases[l.Item] = l
	r.beginLocked(l, r.now())
}

// removeLeaseLocked removes a lease.
func (r *registry) removeLeaseLocked(l *ActiveLease) {
	if r.leases[l.Item] != l {
		return
	}
	delete(r.leases, l.Item)
	delete(r.backoff, l.Dest.Site)      // it has a free slot again
	if r.sites[l.Source.Site].Max > 0 { // other destinations may also have free slots
		clear(r.backoff)
	}
	r.endLocked(l, r.now())
	if l.stop != nil {
		l.stop(ErrEnded)
	}
}

// Close ends waiting polls.
func (f *Agents) Close() {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wakeAgentsLocked()
}

// Closed reports whether waiting polls end because the coordinator stops.
func (f *Agents) Closed() bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Links returns the links of the scheduler.
func (f *Leases) Links() []transfer.Link {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.net.Links()
}

// Tick returns the limits that the scheduler changes now.
func (f *Leases) Tick(now time.Time) []transfer.LimitChange {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.net.Tick(now)
}

// KeptLinks returns the state of the links, for the database.
func (f *Leases) KeptLinks() []schedule.Kept {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.net.Keep()
}

// Runs reports whether a lease is active.
func (f *Leases) Runs(id transfer.LeaseID) bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaseLocked(id) != nil
}

// OfJobs returns the number of leases of files of jobs.
func (f *Leases) OfJobs() (n int) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if l.Job != "" {
			n++
		}
	}
	return n
}

// AddProgress fills in the progress of files that are being transferred.
func (f *Leases) AddProgress(items []transfer.Item) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range items {
		if l := r.leases[items[i].ID]; l != nil && items[i].State == transfer.Leased {
			items[i].Stage, items[i].Moved = l.stage, l.moved
		}
	}
}

// Advance records the progress of a third-party copy.
func (f *Leases) Advance(l *ActiveLease, stage transfer.Stage, moved int64) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advanceLocked(l, stage, moved)
}

// SetStage records the stage of a third-party copy.
func (f *Leases) SetStage(l *ActiveLease, s transfer.Stage) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	l.stage, l.heard = s, r.now()
}

// SetStreamed records that the bytes of a copy pass through the coordinator.
func (f *Leases) SetStreamed(l *ActiveLease) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	l.streamed = true
}

// Abort aborts the chosen leases. never are the outcomes of leases that their movers have not
// received. Leases that are being taken get no mover.
func (f *Leases) Abort(chosen func(*ActiveLease) bool) (never []transfer.Outcome) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if !l.cancelled && chosen(l) && r.abortLocked(l) {
			never = append(never, r.failedLocked(l, transfer.RequestCancelled, ErrCancelled.Error()))
		}
	}
	for _, p := range r.plans {
		p.cancelled = p.cancelled || chosen(&p.ActiveLease)
	}
	return never
}

// ClearBackoff removes all destinations from the backoff.
func (f *Leases) ClearBackoff() {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.backoff)
}

// Wake has the polls of all agents check their tokens.
func (f *Agents) Wake() {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeAgentsLocked()
}

// wakeAgentsLocked wakes the polls of all agents.
func (r *registry) wakeAgentsLocked() {
	for _, a := range r.agents {
		a.wake()
	}
}
