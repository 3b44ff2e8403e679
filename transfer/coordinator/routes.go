package coordinator

import (
	"context"
	"net/http"

	"weir/internal/token"
	"weir/internal/wire"
	"weir/transfer/access"
	"weir/transfer/api"
	v1 "weir/transfer/api/v1"
	"weir/transfer/dispatch"
	"weir/transfer/fts/rest"
	"weir/transfer/page"
)

// addRoutes adds the routes of all APIs and of the page.
func (c *Coordinator) addRoutes() {
	c.routes.Server = c.server
	issuer := c.access.Issuer()
	c.routes.Public("GET "+token.ConfigurationPath, "application/json", api.About("Configuration of the issuer of tokens (OpenID)"), issuer)
	c.routes.Public("GET "+token.KeysPath, "application/json", api.About("Public keys of the issuer of tokens (JWKS)"), issuer)
	c.routes.Public("GET /healthz", "text/plain", api.About("ok, or status 503 while the database is unavailable"),
		http.HandlerFunc(c.healthy))
	for _, p := range page.Patterns() {
		c.server.Public(p, c.page)
	}
	v1.New(v1.Config{Version: c.conf.Version, URL: c.url, Begun: c.begun, Messages: c.conf.Broker != nil,
		State: dispatch.State{Agents: c.agents, Leases: c.leases, Sites: c.sites}, Access: c.access, Catalog: c.catalog, Changes: &c.changes,
		Copier: c.copier, Counters: c.counters, DB: c.db, Health: c.health, Notifications: c.notifications, Queue: c.queue,
		Registry: c.registry, Requests: c.requests, Samples: c.samples, Scans: c.scans, Log: c.log, Now: c.now, Apply: c.applyOutcomes,
		Wake: c.wake.Broadcast, WakeAll: c.wakeAll, Events: &c.eventsChanged}).Register(&c.routes)
	fts, described := c.fts.Handler()
	c.routes.Operations = append(c.routes.Operations, described...)
	c.server.MountTree(rest.Path, fts, rest.Fail)
}

// authenticate admits requests with a valid token, with a browser's session, or with a client
// certificate whose name is configured.
func (c *Coordinator) authenticate(r *http.Request) (_ context.Context, err error) {
	raw, _ := token.FromHeader(r)
	if raw == "" && c.page != nil {
		if raw, err = c.page.Token(r); err != nil {
			return nil, err
		}
	}
	var who access.Caller
	switch {
	case raw != "":
		who, err = c.access.TokenHolder(r.Context(), raw)
	case c.access.HasCertificate(r):
		if err = page.Foreign(r); err == nil {
			who, err = c.access.CertificateHolder(r)
		}
	default:
		err = wire.Refuse(http.StatusUnauthorized, "a token or a client certificate is required")
	}
	if err != nil {
		return nil, err
	}
	return access.WithCaller(r.Context(), who), nil
}
