package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/unit"
	"weir/link"
	"weir/link/emulator"
	"weir/loadtest/cluster"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// links are the emulated links of a run, and the worker processes at their far
// ends. All is held by a process of its own, the keeper.
type links struct {
	plan   *scenario.Plan
	sites  []link.Named // the plan's links that have clients
	choice emulator.Choice
	kept   *emulator.Kept

	mu   sync.Mutex
	sink monitor.Sink // nil: not monitored yet, or any more
	step int

	begun chan struct{} // closed when the first step begins
	first sync.Once
}

// begin records that a step begins.
func (l *links) begin(step int) {
	if l == nil {
		return
	}
	l.first.Do(func() { close(l.begun) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step = step
}

// openLinks makes the links that the plan has, and starts processes workers at
// their sites. log receives their standard error. The caller closes the links.
// Without links it returns nil.
func openLinks(ctx context.Context, p *scenario.Plan, processes int, log io.Writer) (*links, error) {
	if len(p.Links) == 0 {
		return nil, nil
	}
	keeper, err := cluster.SelfCommand("keeper")
	if err != nil {
		return nil, err
	}
	l := &links{plan: p, sites: p.Links.Sites(), begun: make(chan struct{})}
	if l.choice, err = emulator.Best(ctx, append(slices.Clone(keeper[:1]), "mover", "--probe")); err != nil {
		return nil, err
	}
	o := emulator.KeptOptions{Keeper: keeper, Isolated: l.choice.Isolated, Links: p.Links, Seed: p.Seed, Take: l.take, Log: log}
	if p.On.Batch != "" {
		processes = 0 // the workers are elsewhere
		l.choice.Limitations = append(slices.Clone(l.choice.Limitations), forwardsLimitation)
	}
	for i := range processes {
		o.Posts = append(o.Posts, emulator.Post{Site: i % len(l.sites), Command: []string{keeper[0], "worker"}})
	}
	if l.kept, err = emulator.StartKept(ctx, o); err != nil {
		return nil, fmt.Errorf("make the links of this scenario: %w", err)
	}
	return l, nil
}

// forwardsLimitation describes the effects of links that workers elsewhere do not notice.
const forwardsLimitation = "the clients are elsewhere and connect to this machine at once; from here each of their " +
	"connections is continued over its site's link by one of its own, whose round trips precede its first byte"

// forward returns the port at which a worker elsewhere, which connects from an address, reaches a server over the link of
// a site.
func (l *links) forward(ctx context.Context, site int, server string, from netip.Addr) (uint16, error) {
	return l.kept.Forward(ctx, site, server, from)
}

// service returns the address at which the built-in server is to listen so that the sites connect
// to it themselves; if it is empty, the server may listen anywhere.
func (l *links) service() string {
	if l == nil || l.choice.Isolated {
		return ""
	}
	return l.kept.Service + ":0"
}

// pids returns the processes whose CPU time counts for no side.
func (l *links) pids() []int {
	if l == nil {
		return nil
	}
	return l.kept.Pids
}

func (l *links) close() error {
	if l == nil {
		return nil
	}
	return l.kept.Close()
}

// about returns the description of the links for the run directory.
func (l *links) about() *results.Links {
	if l == nil {
		return nil
	}
	return &results.Links{Isolated: l.choice.Isolated, Why: l.choice.Why, Blind: l.choice.Limitations}
}

// peers returns the workers at the sites, as peers of the controller.
func (l *links) peers() []cluster.Peer {
	var out []cluster.Peer
	for i, p := range l.kept.Posts {
		site := i % len(l.sites)
		name := ""
		if len(l.sites) > 1 {
			name = l.sites[site].Name
		}
		out = append(out, cluster.Peer{
			Name: strconv.Itoa(i+1) + " at the far end of " + linkName(l.sites[site]), In: p.Out, Out: p.In, Site: name,
			Reach: func(ctx context.Context, server string) (string, error) { return l.kept.Reach(ctx, site, server) },
		})
	}
	return out
}

// linkName returns the name of a link: its host in hosts.jsonl.
func linkName(l link.Named) string { return monitor.LinkHost(l.Name) }

// watched has samples go to sink from now on; nil: they are dropped.
func (l *links) watched(sink monitor.Sink) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sink = sink
}

// take converts the traffic of a link to a host's sample.
func (l *links) take(s *emulator.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sink == nil {
		return
	}
	i := slices.IndexFunc(l.plan.Links, func(n link.Named) bool { return n.Name == s.Link })
	if i < 0 {
		return
	}
	v := LinkSample(s)
	v.Step = l.step
	_ = l.sink.Sample(v) // a directory that cannot be written to ends the run by itself
}

// LinkSample converts the traffic of an emulated link to a sample of hosts.jsonl, without its step.
func LinkSample(s *emulator.Sample) *monitor.Sample {
	to, from := &s.ToClients, &s.FromClients
	return &monitor.Sample{
		Time: s.Time.UTC(), Seconds: s.Seconds, Host: monitor.LinkHost(s.Link), Role: "other",
		Nets: []monitor.Net{
			{Name: monitor.ToClients, Sent: to.Bytes, PacketsOut: to.Packets, Drops: to.Dropped, Speed: float64(s.Rate)},
			{Name: monitor.FromClients, Received: from.Bytes, PacketsIn: from.Packets, Drops: from.Dropped, Speed: float64(s.Up)},
		},
		Link: &monitor.Link{Down: s.Down, ToClients: *to, FromClients: *from, Cost: s.Cost},
	}
}

// A change is a link that is cut, or comes back.
type change struct {
	at   time.Duration // since the load began
	link string        // its name
	down bool
	text string
}

// changes returns the outages of all links, in the order of time, without outages that are over
// after spent.
func changes(p *scenario.Plan, spent time.Duration) []change {
	var all []change
	for _, l := range p.Links {
		for _, o := range l.Spec.Outages {
			name, from := linkName(l), time.Duration(o.After)-spent
			until := from + time.Duration(o.For)
			if until > 0 {
				all = append(all, change{from, l.Name, true, fmt.Sprintf("%s is down for %s", name, unit.Seconds(time.Duration(o.For).Seconds()))},
					change{until, l.Name, false, name + " is up again"})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return all
}

// outages interrupts and restores links, according to the plan, until ctx ends. There was load for
// spent before.
func (l *links) outages(ctx context.Context, spent time.Duration, tell func(kind measure.EventKind, text string) error) error {
	select {
	case <-l.begun:
	case <-ctx.Done():
		return nil
	}
	start := time.Now()
	for _, c := range changes(l.plan, spent) {
		select {
		case <-time.After(time.Until(start.Add(c.at))):
		case <-ctx.Done():
			return nil
		}
		if err := l.kept.SetDown(c.link, c.down); err != nil {
			return err
		}
		if err := tell(measure.EventLink, c.text); err != nil {
			return err
		}
	}
	return nil
}

// during runs load with the goroutines that the links need beside it: for their samples, their
// outages, and the end of the run if they end.
func (l *links) during(ctx context.Context, r *session, load func(context.Context) error) error {
	if l == nil {
		return load(ctx)
	}
	if err := r.writeEvent(measure.EventLink, l.choice.String()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	beside.Go(func() {
		select {
		case <-l.kept.Gone():
			cancel(l.kept.Err())
		case <-ctx.Done():
		}
	})
	beside.Go(func() {
		if err := l.outages(ctx, r.spent(), r.writeEvent); err != nil {
			cancel(err)
		}
	})
	err := load(ctx)
	if err != nil && l.kept.Err() != nil { // the keeper's error explains the load's
		_ = l.kept.Close() // then the reason is known
		err = l.kept.Err()
	}
	cancel(nil)
	beside.Wait()
	return err
}
