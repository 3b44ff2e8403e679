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
	c.public("GET "+token.ConfigurationPath, "application/json", about("Configuration of the issuer of tokens (OpenID)"), c.issuer)
	c.public("GET "+token.KeysPath, "application/json", about("Public keys of the issuer of tokens (JWKS)"), c.issuer)
	c.public("GET /healthz", "text/plain", about("ok, or status 503 while the database is unavailable"), http.HandlerFunc(c.healthy))
	c.public("GET "+OpenAPIPath, "application/json", about("This description"), http.HandlerFunc(describeAPI))
	for _, p := range page.Patterns() {
		c.server.Public(p, c.page)
	}
	handle(c, "POST "+transfer.RegisterPath, middle, "", about("Register an agent"), c.register)
	handle(c, "POST "+transfer.DeregisterPath, middle, "", about("Deregister an agent"), c.deregister)
	handle(c, "POST "+transfer.WorkPath, middle, "", about("Wait for work of an agent, up to 20 seconds"), c.poll)
	handle(c, "POST "+transfer.ReportPath, large, "", about("Report outcomes and progress of an agent"), c.report)
	handle(c, "POST "+transfer.ClockPath, small, "", about("Time of the coordinator"), func(*call, *struct{}) (transfer.Clock, error) {
		return transfer.Clock{Now: c.now()}, nil
	})
	c.routeCatalog("/api/v1/")
	c.routeRequests("/api/v1/")
	c.routeService("/api/v1/")
	c.server.MountTree(FTSPath, c.ftsRoutes(), func(w http.ResponseWriter, status int, err error) {
		ftsAnswer(w, status, ftsError(status, err.Error()))
	})
	c.server.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire.Fail(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}

func (c *Coordinator) routeCatalog(api string) {
	handle(c, "GET "+api+"sites", 0, mayRead, about("List sites"), c.listSites)
	handle(c, "POST "+api+"sites", 128<<10, mayAdmin, about("Add or change a site without an agent"), c.addSite)
	handle(c, "POST "+api+"sites/{name}/remove", small, mayAdmin, about("Remove a site and its replicas from the catalog"), c.removeSite)
	handle(c, "GET "+api+"datasets", 0, mayRead, about("List datasets by name", "from", "after", "n"), c.datasets)
	handle(c, "GET "+api+"dataset", 0, mayRead, about("Show a dataset", "name"), c.dataset)
	handle(c, "GET "+api+"dataset/files", 0, mayRead, about("List files of a dataset with their replicas", "name", "after", "n"), c.files)
	handle(c, "POST "+api+"dataset/files", middle, mayAdmin, about("Add files that a site has to a dataset"), c.addFiles)
	handle(c, "POST "+api+"dataset/remove", small, mayAdmin, about("Remove a dataset from the catalog"), c.removeDataset)
	handle(c, "POST "+api+"scans", small, mayAdmin, about("Have an agent list the files of a dataset"), c.addScan)
	handle(c, "GET "+api+"scans/{number}", 0, mayRead, about("Show the progress of a scan"), c.showScan)
}

func (c *Coordinator) routeService(api string) {
	handle(c, "GET "+api+"links", 0, mayRead, about("List links with their limits and the reasons"), c.links)
	changes := about("List the last changes of limits, the oldest first", "source", "dest", "after", "n")
	handle(c, "GET "+api+"links/changes", 0, mayRead, changes, c.listLimitChanges)
	handle(c, "GET "+api+"history", 0, mayRead, about("List attempts, the oldest first", "after", "n"), c.history)
	handle(c, "GET "+api+"samples", 0, mayRead, about("List samples of a site's host, the oldest first", "site", "after", "n"), c.listSamples)
	handle(c, "POST "+api+"tokens", small, mayAdmin, about("Issue a token"), c.newToken)
	handle(c, "GET "+api+"tokens", 0, mayAdmin, about("List tokens"), c.tokens)
	handle(c, "POST "+api+"tokens/{id}/revoke", small, mayAdmin, about("Revoke a token"), c.revoke)
	handle(c, "GET "+api+"notifications", 0, mayAdmin, about("List notifications, the newest first"), c.listNotifications)
	handle(c, "POST "+api+"notifications/test", small, mayAdmin, about("Send a test to targets of notifications"), c.testNotify)
	stream[transfer.Event](c, api+"events", "text/event-stream", about("Follow events", "after"), c.events)
	stream[string](c, "/metrics", "text/plain", about("Metrics for Prometheus"), c.metrics)
}

func (c *Coordinator) routeRequests(api string) {
	request := api + "requests/{number}"
	list := about("List requests, the newest first", "status", "open", "to", "dataset", "by", "before", "n")
	handle(c, "GET "+api+"requests", 0, mayRead, list, c.list)
	handle(c, "POST "+api+"requests", large, maySubmit, about("Submit a request"), c.submit)
	handle(c, "GET "+request, 0, mayRead, about("Show a request"), c.show)
	handle(c, "GET "+request+"/items", 0, mayRead, about("List files of a request", "state", "after", "n"), c.items)
	handle(c, "GET "+request+"/attempts", 0, mayRead, about("List attempts of a request", "item", "after", "epoch", "late", "n"), c.attempts)
	handle(c, "GET "+request+"/explain", 0, mayRead, about("Explain why files of a request do not move", "file"), c.explain)
	decision := func(verb, text string, decide func(ctx context.Context, id int64, by, reason string) (transfer.Request, error), role string) {
		handle(c, "POST "+request+"/"+verb, small, role, about(text), c.decisionHandler(verb, decide))
	}
	decision("approve", "Approve a request", c.queue.Approve, mayApprove)
	decision("reject", "Reject a request", c.queue.Reject, mayApprove)
	decision("cancel", "Cancel a request", c.cancel, "")
	decision("retry", "Retry the failed and cancelled files of a request", c.retry, "")
	stream[transfer.Manifest](c, request+"/manifest", "", about("Manifest of a request: all its files, and a digest"), c.manifest)
}

// handle registers f for a pattern of http.ServeMux and callers with the role ("": f checks). An
// invalid parameter of the query is an error whatever f returns.
func handle[In, Out any](c *Coordinator, pattern string, most int64, role string, text doc, f func(*call, *In) (Out, error)) {
	c.operations = append(c.operations, operation{pattern: pattern, role: role, about: text, in: typeOf[In](), out: typeOf[Out]()})
	wire.Answer(c.server, pattern, most, func(r *http.Request, in *In) (out Out, err error) {
		q, err := newCall(r, role, text.params)
		if err == nil {
			out, err = f(q, in)
			err = cmp.Or(q.invalid, err)
		}
		return out, c.refusal(r.Context(), err)
	})
}

// stream registers f, which writes the answer to GET requests of a path itself. An error that it
// returns is answered instead.
func stream[Out any](c *Coordinator, path, media string, text doc, f func(*call, http.ResponseWriter) error) {
	c.operations = append(c.operations, operation{pattern: "GET " + path, role: mayRead, about: text, out: typeOf[Out](), media: media})
	c.server.Mount("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := newCall(r, mayRead, text.params)
		if err == nil {
			err = f(q, w)
		}
		if err != nil {
			wire.Fail(w, c.refusal(r.Context(), err))
		}
	}))
}

// public registers a handler of requests without authentication.
func (c *Coordinator) public(pattern, media string, text doc, h http.Handler) {
	c.operations = append(c.operations, operation{pattern: pattern, about: text, media: media, public: true})
	c.server.Public(pattern, h)
}

// A call is a request to the API.
type call struct {
	*http.Request
	caller
	params  []string // of the query, that the route has
	number  int64    // of the request or scan in the path
	invalid error    // the first invalid parameter of the query
}

func newCall(r *http.Request, role string, params []string) (*call, error) {
	q := &call{Request: r, caller: callerOf(r), params: params}
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

// param returns a parameter of the query that the route describes.
func (q *call) param(name string) string {
	if !slices.Contains(q.params, name) {
		panic("the route does not describe the parameter " + name) // a mistake in routes.go, which each test of the route shows
	}
	return q.URL.Query().Get(name)
}

// integer returns a parameter of the query, absent if it is not given.
func (q *call) integer(name string, absent, least, most int64) int64 {
	text := q.param(name)
	if !q.URL.Query().Has(name) {
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
	case errors.Is(err, db.ErrText):
		return wire.Refuse(http.StatusBadRequest, "%s", db.ErrText)
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

	external   bool     // the token is of an external issuer
	dn         string   // as FTS names the user; "" is name
	vos        []string // virtual organizations; nil: that of the configuration
	scopes     []string // of the token of an external issuer, or attributes of VOMS
	credential string   // id of the credentials, as FTS makes it; "": of the name

	certificate *presented // nil: a token
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
	raw, _ := token.FromHeader(r)
	if raw == "" && c.page != nil {
		if raw, err = c.page.Token(r); err != nil {
			return nil, err
		}
	}
	var who caller
	switch {
	case raw != "":
		who, err = c.tokenHolder(r.Context(), raw)
	case c.hasCertificate(r):
		if err = page.Foreign(r); err == nil {
			who, err = c.certificateHolder(r)
		}
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
	claims, err := c.readToken(ctx, raw)
	if err != nil {
		return caller{}, err
	}
	if i := c.issuers[claims.Issuer]; i != nil {
		return c.externalHolder(i, claims)
	}
	if c.revoked.has(claims.ID) {
		return caller{}, errRevoked(claims.ID)
	}
	roles := slices.DeleteFunc(claims.Roles(), func(s string) bool { return checkRole(s) != nil })
	return caller{name: claims.Subject, roles: roles, token: claims.ID, since: claims.Issued, until: claims.Expires}, nil
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
