package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"

	"weir/internal/db"
	"weir/internal/trust"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/fts/rest"
	"weir/transfer/remote"
	"weir/transfer/requests"
	"weir/transfer/scans"
	"weir/transfer/schedule"
	"weir/transfer/sites"
	"weir/transfer/thirdparty"
)

// compose creates the parts of the coordinator, which have no state yet.
func (c *Coordinator) compose() error {
	memory := dispatch.New(dispatch.Config{Rules: c.conf.Rules, Now: c.now, Log: c.log, Wake: c.wake.Broadcast, Counters: c.counters,
		Streams: c.conf.Streamed > 0, Lease: c.conf.Lease, JobArea: c.conf.JobArea})
	c.agents, c.leases, c.sites = memory.Agents, memory.Leases, memory.Sites
	apply := func(ctx context.Context, all []transfer.Outcome) error { return c.applyOutcomes(ctx, "", all) }
	var err error
	if c.authorities, err = trust.WithSystem(c.conf.SiteCA); err != nil {
		return err
	}
	c.scans = &scans.Store{DB: c.db, Catalog: c.catalog, Agents: c.agents, Log: c.log, Now: c.now}
	c.tpc = remote.New("weir", trusting(c.authorities))
	c.endpoints = access.NewEndpoints(c.access, c.sites, c.tpc)
	c.copier = thirdparty.New(thirdparty.Config{State: memory, Access: c.access, Endpoints: c.endpoints, Client: c.tpc, Queue: c.queue,
		DB: c.db, Health: c.health, Log: c.log, Now: c.now, Lease: c.conf.Lease, Streamed: c.conf.Streamed, Apply: apply, Wake: c.wakeAll})
	c.registry = sites.New(sites.Config{JobArea: c.conf.JobArea, KnownSites: c.conf.KnownSites, KeepEndpoints: c.conf.KeepEndpoints,
		State: memory, Catalog: c.catalog, Queue: c.queue, Endpoints: c.endpoints, Client: c.tpc, Box: c.state.Box, DB: c.db, Health: c.health,
		Log: c.log, Now: c.now, Wake: c.wake.Broadcast})
	c.requests = requests.New(requests.Config{Approve: c.conf.Approve, UserQuota: c.conf.UserQuota, VOQuota: c.conf.VOQuota, State: memory,
		Registry: c.registry, Access: c.access, Queue: c.queue, Health: c.health, Log: c.log, Now: c.now, Apply: apply, Wake: c.wakeAll})
	jobs := rest.Config{Approve: c.conf.Approve, Shares: c.conf.Shares, Version: c.conf.Version, State: memory, Changes: &c.changes,
		Registry: c.registry, Requests: c.requests, Access: c.access, Queue: c.queue, DB: c.db, Refuser: c.routes.Refuser, Log: c.log, Now: c.now,
		Wake: c.wake.Broadcast, WakeAll: c.wakeAll}
	c.configuration = rest.NewConfiguration(jobs)
	c.fts = rest.New(jobs, c.configuration)
	return nil
}

// trusting returns a TLS configuration for clients. Each transport modifies its configuration and
// therefore needs its own.
func trusting(authorities *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
}

// readState reads links, bans, sites, settings, scans and leases from the database.
func (c *Coordinator) readState(ctx context.Context) error {
	texts, err := db.Select(ctx, c.db, db.Value[string], "SELECT kept FROM link ORDER BY source, dest")
	if err != nil {
		return err
	}
	var kept []schedule.Kept
	for _, t := range texts {
		var k schedule.Kept
		if json.Unmarshal([]byte(t), &k) == nil { // a record of another version is dropped
			kept = append(kept, k)
		}
	}
	c.leases.LoadLinks(kept)
	for _, read := range []func(context.Context) error{c.configuration.OpenBans, c.registry.Read, c.configuration.OpenSettings} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	open, err := scans.Open(ctx, c.db)
	if err != nil {
		return err
	}
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	c.leases.Load(open, leases)
	return nil
}

// saveLinks writes the state of the links to the database.
func (c *Coordinator) saveLinks(ctx context.Context) error {
	kept := c.leases.KeptLinks()
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
