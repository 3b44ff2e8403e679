package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/token"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/page"
	"weir/transfer/queue"
)

// Largest request bodies, in bytes.
const (
	small  = 64 << 10
	middle = 4 << 20
	large  = 32 << 20
)

// The roles, which are scopes of the coordinator's tokens.
const (
	mayRead    = "weir.read"    // see everything but secrets
	maySubmit  = "weir.submit"  // submit requests, cancel and retry one's own
	mayApprove = "weir.approve" // approve, reject, cancel and retry requests
	mayAdmin   = "weir.admin"   // everything, also sites, datasets and tokens
	agentOf    = "weir.agent:"  // followed by a site: be its agent
)

// routes registers the API.
func (c *Coordinator) routes() {
	c.server.Public("GET "+token.ConfigurationPath, c.issuer)
	c.server.Public("GET "+token.KeysPath, c.issuer)
	c.server.Public("GET /healthz", http.HandlerFunc(c.healthy))
	for _, p := range page.Patterns() {
		c.server.Public(p, c.page)
	}
	for _, path := range []string{transfer.RegisterPath, transfer.OlderRegisterPath} {
		handle(c, "POST "+path, middle, "", c.register)
	}
	for _, path := range []string{transfer.DeregisterPath, transfer.OlderDeregisterPath} {
		handle(c, "POST "+path, middle, "", c.deregister)
	}
	handle(c, "POST "+transfer.WorkPath, middle, "", c.poll)
	handle(c, "POST "+transfer.ReportPath, large, "", c.report)
	handle(c, "POST "+transfer.ClockPath, small, "", func(*call, *struct{}) (transfer.Clock, error) {
		return transfer.Clock{Now: c.now()}, nil
	})

	const api = "/api/v1/"
	handle(c, "GET "+api+"sites", 0, mayRead, c.listSites)
	handle(c, "POST "+api+"sites", 128<<10, mayAdmin, c.addSite)
	handle(c, "POST "+api+"sites/{name}/remove", small, mayAdmin, c.removeSite)
	handle(c, "GET "+api+"datasets", 0, mayRead, c.datasets)
	handle(c, "GET "+api+"dataset", 0, mayRead, c.dataset)
	handle(c, "GET "+api+"dataset/files", 0, mayRead, c.files)
	handle(c, "POST "+api+"dataset/files", middle, mayAdmin, c.addFiles)
	handle(c, "POST "+api+"dataset/remove", small, mayAdmin, c.removeDataset)
	handle(c, "POST "+api+"scans", small, mayAdmin, c.addScan)
	handle(c, "GET "+api+"scans/{number}", 0, mayRead, c.showScan)
	handle(c, "GET "+api+"links", 0, mayRead, c.links)
	handle(c, "GET "+api+"links/changes", 0, mayRead, c.listLimitChanges)
	handle(c, "GET "+api+"history", 0, mayRead, c.history)
	handle(c, "GET "+api+"samples", 0, mayRead, c.listSamples)
	handle(c, "POST "+api+"tokens", small, mayAdmin, c.newToken)
	handle(c, "GET "+api+"tokens", 0, mayAdmin, c.tokens)
	handle(c, "POST "+api+"tokens/{id}/revoke", small, mayAdmin, c.revoke)
	handle(c, "GET "+api+"notifications", 0, mayAdmin, c.listNotifications)
	handle(c, "POST "+api+"notifications/test", small, mayAdmin, c.testNotify)
	c.stream(api+"events", c.events)
	c.stream("/metrics", c.metrics)
	c.routeRequests(api)
	c.server.MountTree(FTSPath, c.ftsRoutes())
	c.server.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire.Fail(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}

func (c *Coordinator) routeRequests(api string) {
	request := api + "requests/{number}"
	handle(c, "GET "+api+"requests", 0, mayRead, c.list)
	handle(c, "POST "+api+"requests", large, maySubmit, c.submit)
	handle(c, "GET "+request, 0, mayRead, c.show)
	handle(c, "GET "+request+"/items", 0, mayRead, c.items)
	handle(c, "GET "+request+"/attempts", 0, mayRead, c.attempts)
	handle(c, "GET "+request+"/explain", 0, mayRead, c.explain)
	handle(c, "POST "+request+"/approve", small, mayApprove, c.decisionHandler("approve", c.queue.Approve))
	handle(c, "POST "+request+"/reject", small, mayApprove, c.decisionHandler("reject", c.queue.Reject))
	handle(c, "POST "+request+"/cancel", small, "", c.decisionHandler("cancel", c.cancel))
	handle(c, "POST "+request+"/retry", small, "", c.decisionHandler("retry", c.queue.Retry))
	c.stream(request+"/manifest", c.manifest)
}

// handle registers f for a pattern of http.ServeMux and callers with the role ("": f checks). An
// invalid parameter of the query is an error whatever f returns.
func handle[In, Out any](c *Coordinator, pattern string, most int64, role string, f func(*call, *In) (Out, error)) {
	wire.Answer(c.server, pattern, most, func(r *http.Request, in *In) (out Out, err error) {
		q, err := newCall(r, role)
		if err == nil {
			out, err = f(q, in)
			err = cmp.Or(q.invalid, err)
		}
		return out, c.refusal(r.Context(), err)
	})
}

// stream registers f, which writes the answer to GET requests of a path itself. An error that it
// returns is answered instead.
func (c *Coordinator) stream(path string, f func(*call, http.ResponseWriter) error) {
	c.server.Mount("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := newCall(r, mayRead)
		if err == nil {
			err = f(q, w)
		}
		if err != nil {
			wire.Fail(w, c.refusal(r.Context(), err))
		}
	}))
}

// A call is a request to the API.
type call struct {
	*http.Request
	caller
	number  int64 // of the request or scan in the path
	invalid error // the first invalid parameter of the query
}

func newCall(r *http.Request, role string) (*call, error) {
	q := &call{Request: r, caller: callerOf(r)}
	if role != "" {
		if err := q.need(role); err != nil {
			return nil, err
		}
	}
	if text := r.PathValue("number"); text != "" {
		var err error
		if q.number, err = strconv.ParseInt(text, 10, 64); err != nil || q.number <= 0 {
			return nil, wire.Refuse(http.StatusBadRequest, "invalid id %.50q: expected a positive integer", text)
		}
	}
	return q, nil
}

// param returns a parameter of the query.
func (q *call) param(name string) string { return q.URL.Query().Get(name) }

// integer returns a parameter of the query, absent if it is not given.
func (q *call) integer(name string, absent, least, most int64) int64 {
	text := q.param(name)
	if text == "" {
		return absent
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.invalid = cmp.Or(q.invalid, wire.Refuse(http.StatusBadRequest, "%s=%.50s: expected an integer from %d to %d", name, text, least, most))
		return absent
	}
	return n
}

const (
	pageRows = 1000
	mostRows = 10000
)

// rows returns how many rows the caller wants.
func (q *call) rows() int { return int(q.integer("n", pageRows, 1, mostRows)) }

// after returns the id or time, in nanoseconds, after which the caller wants rows.
func (q *call) after() int64 { return q.integer("after", 0, 0, 1<<63-1) }

// refusal returns an error as it is answered.
func (c *Coordinator) refusal(ctx context.Context, err error) error {
	var conflict *store.ConflictError
	switch {
	case err == nil, wire.Status(err) != 0, ctx.Err() != nil:
		return err
	case errors.Is(err, db.ErrBusy):
		c.health.database(err)
		return &wire.Error{Status: http.StatusServiceUnavailable, Text: "the database is unavailable: try again", After: 2 * time.Second}
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return wire.Refuse(http.StatusNotFound, "%s", trimKind(err, queue.ErrNotFound))
	case errors.Is(err, queue.ErrRefused), errors.Is(err, store.ErrExists), errors.As(err, &conflict):
		return wire.Refuse(http.StatusConflict, "%s", trimKind(err, queue.ErrRefused))
	case errors.Is(err, catalog.ErrBad):
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	c.log.Error("request to the API failed", "error", err)
	return wire.Refuse(http.StatusInternalServerError, "%s", err.Error())
}

// trimKind returns the text of an error without that of its kind, which the status says.
func trimKind(err, kind error) string {
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), kind.Error()+": "), ": "+kind.Error())
}

// orEmpty makes JSON lists of nil slices.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// A caller is an authenticated user or agent.
type caller struct {
	name  string
	roles []string
	token string // its id; "" of a certificate
	since time.Time
	until time.Time
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who
}

// has reports whether the caller has a role, or one that includes it.
func (w caller) has(role string) bool {
	if slices.Contains(w.roles, role) || slices.Contains(w.roles, mayAdmin) {
		return true
	}
	return role == mayRead && (slices.Contains(w.roles, maySubmit) || slices.Contains(w.roles, mayApprove))
}

// need refuses callers without a role.
func (w caller) need(role string) error {
	if w.has(role) {
		return nil
	}
	return wire.Refuse(http.StatusForbidden, "this requires the role %s; %s has %s", role, w.name,
		cmp.Or(strings.Join(w.roles, ", "), "no role"))
}

// needAgent refuses callers that are not the agent of a site.
func (w caller) needAgent(site string) error {
	if err := catalog.CheckSite(site); err != nil {
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	return w.need(agentOf + site)
}

// authenticate admits requests with a token of ours, with a browser's session, or with a client
// certificate whose name is configured.
func (c *Coordinator) authenticate(r *http.Request) (_ context.Context, err error) {
	raw := wire.Bearer(r)
	if raw == "" && c.page != nil {
		if raw, err = c.page.Token(r); err != nil {
			return nil, err
		}
	}
	var who caller
	switch {
	case raw != "":
		who, err = c.tokenHolder(r.Context(), raw)
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		err = page.Foreign(r)
		who = c.certificateHolder(r)
	default:
		err = wire.Refuse(http.StatusUnauthorized, "a token or a client certificate is required")
	}
	if err != nil {
		return nil, err
	}
	return context.WithValue(r.Context(), callerKey{}, who), nil
}

// tokenHolder returns the holder of a token.
func (c *Coordinator) tokenHolder(ctx context.Context, raw string) (caller, error) {
	claims, err := c.checker.Check(ctx, raw)
	switch {
	case errors.Is(err, token.ErrKeys):
		return caller{}, &wire.Error{Status: http.StatusServiceUnavailable, Text: err.Error(), After: 5 * time.Second}
	case err != nil:
		return caller{}, wire.Refuse(http.StatusUnauthorized, "%s", err.Error())
	case c.revoked.has(claims.ID):
		return caller{}, errRevoked(claims.ID)
	}
	roles := slices.DeleteFunc(claims.Roles(), func(s string) bool { return checkRole(s) != nil })
	return caller{name: claims.Subject, roles: roles, token: claims.ID, since: claims.Issued, until: claims.Expires}, nil
}

// certificateHolder returns the holder of a client certificate, which the handshake has verified.
func (c *Coordinator) certificateHolder(r *http.Request) caller {
	leaf := r.TLS.VerifiedChains[0][0]
	names := slices.Concat([]string{leaf.Subject.String(), leaf.Subject.CommonName}, leaf.DNSNames, leaf.EmailAddresses)
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	for _, n := range names {
		if roles, ok := c.conf.Names[n]; ok && n != "" {
			return caller{name: n, roles: roles}
		}
	}
	return caller{name: leaf.Subject.String()}
}

// checkRole refuses texts that are not roles.
func checkRole(role string) error {
	if slices.Contains([]string{mayRead, maySubmit, mayApprove, mayAdmin}, role) {
		return nil
	}
	if site, ok := strings.CutPrefix(role, agentOf); ok && catalog.CheckSite(site) == nil {
		return nil
	}
	return fmt.Errorf("unknown role %q: use %s, %s, %s, %s or %sSITE", role, mayRead, maySubmit, mayApprove, mayAdmin, agentOf)
}
