package coordinator

import (
	"cmp"
	"context"
	"net/http"

	"weir/internal/token"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/fts/rest"
	"weir/transfer/page"
	"weir/transfer/requests"
)

// Largest request bodies, in bytes.
const (
	small  = 64 << 10
	middle = 4 << 20
	large  = 32 << 20
)

// routes registers the API.
func (c *Coordinator) routes() {
	c.public("GET "+token.ConfigurationPath, "application/json", api.About("Configuration of the issuer of tokens (OpenID)"),
		c.access.Issuer())
	c.public("GET "+token.KeysPath, "application/json", api.About("Public keys of the issuer of tokens (JWKS)"), c.access.Issuer())
	c.public("GET /healthz", "text/plain", api.About("ok, or status 503 while the database is unavailable"), http.HandlerFunc(c.healthy))
	c.public("GET "+OpenAPIPath, "application/json", api.About("This description"), http.HandlerFunc(describeAPI))
	for _, p := range page.Patterns() {
		c.server.Public(p, c.page)
	}
	handle(c, "POST "+transfer.RegisterPath, middle, "", api.About("Register an agent"), c.register)
	handle(c, "POST "+transfer.DeregisterPath, middle, "", api.About("Deregister an agent"), c.deregister)
	handle(c, "POST "+transfer.WorkPath, middle, "", api.About("Wait for work of an agent, up to 20 seconds"), c.poll)
	handle(c, "POST "+transfer.ReportPath, large, "", api.About("Report outcomes and progress of an agent"), c.report)
	handle(c, "POST "+transfer.ClockPath, small, "", api.About("Time of the coordinator"), func(*api.Call, *struct{}) (transfer.Clock, error) {
		return transfer.Clock{Now: c.now()}, nil
	})
	c.routeCatalog("/api/v1/")
	c.routeRequests("/api/v1/")
	c.routeService("/api/v1/")
	fts, described := c.fts.Handler()
	c.operations = append(c.operations, described...)
	c.server.MountTree(rest.Path, fts, rest.Fail)
	c.server.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire.Fail(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}

func (c *Coordinator) routeCatalog(base string) {
	handle(c, "GET "+base+"sites", 0, access.MayRead, api.About("List sites"), c.listSites)
	handle(c, "POST "+base+"sites", 128<<10, access.MayAdmin, api.About("Add or change a site without an agent"), c.addSite)
	handle(c, "POST "+base+"sites/{name}/remove", small, access.MayAdmin,
		api.About("Remove a site and its replicas from the catalog"), c.removeSite)
	handle(c, "GET "+base+"datasets", 0, access.MayRead, api.About("List datasets by name", "from", "after", "n"), c.datasets)
	handle(c, "GET "+base+"dataset", 0, access.MayRead, api.About("Show a dataset", "name"), c.dataset)
	handle(c, "GET "+base+"dataset/files", 0, access.MayRead, api.About("List files of a dataset with their replicas", "name",
		"after", "n"), c.files)
	handle(c, "POST "+base+"dataset/files", middle, access.MayAdmin, api.About("Add files that a site has to a dataset"), c.addFiles)
	handle(c, "POST "+base+"dataset/remove", small, access.MayAdmin, api.About("Remove a dataset from the catalog"), c.removeDataset)
	handle(c, "POST "+base+"scans", small, access.MayAdmin, api.About("Have an agent list the files of a dataset"), c.addScan)
	handle(c, "GET "+base+"scans/{number}", 0, access.MayRead, api.About("Show the progress of a scan"), c.showScan)
}

func (c *Coordinator) routeService(base string) {
	handle(c, "GET "+base+"links", 0, access.MayRead, api.About("List links with their limits and the reasons"), c.links)
	changes := api.About("List the last changes of limits, the oldest first", "source", "dest", "after", "n")
	handle(c, "GET "+base+"links/changes", 0, access.MayRead, changes, c.listLimitChanges)
	handle(c, "GET "+base+"history", 0, access.MayRead, api.About("List attempts, the oldest first", "after", "n"), c.history)
	handle(c, "GET "+base+"samples", 0, access.MayRead, api.About("List samples of a site's host, the oldest first", "site", "after",
		"n"), c.listSamples)
	handle(c, "POST "+base+"tokens", small, access.MayAdmin, api.About("Issue a token"), c.newToken)
	handle(c, "GET "+base+"tokens", 0, access.MayAdmin, api.About("List tokens"), c.tokens)
	handle(c, "POST "+base+"tokens/{id}/revoke", small, access.MayAdmin, api.About("Revoke a token"), c.revoke)
	handle(c, "GET "+base+"notifications", 0, access.MayAdmin, api.About("List notifications, the newest first"), c.listNotifications)
	handle(c, "POST "+base+"notifications/test", small, access.MayAdmin, api.About("Send a test to targets of notifications"), c.testNotify)
	stream[transfer.Event](c, base+"events", "text/event-stream", api.About("Follow events", "after"), c.events)
	stream[string](c, "/metrics", "text/plain", api.About("Metrics for Prometheus"), c.metrics)
}

func (c *Coordinator) routeRequests(base string) {
	request := base + "requests/{number}"
	list := api.About("List requests, the newest first", "status", "open", "to", "dataset", "by", "before", "n")
	handle(c, "GET "+base+"requests", 0, access.MayRead, list, c.list)
	handle(c, "POST "+base+"requests", large, access.MaySubmit, api.About("Submit a request"), c.submit)
	handle(c, "GET "+request, 0, access.MayRead, api.About("Show a request"), c.show)
	handle(c, "GET "+request+"/items", 0, access.MayRead, api.About("List files of a request", "state", "after", "n"), c.items)
	handle(c, "GET "+request+"/attempts", 0, access.MayRead, api.About("List attempts of a request", "item", "after", "epoch", "late",
		"n"), c.attempts)
	handle(c, "GET "+request+"/explain", 0, access.MayRead, api.About("Explain why files of a request do not move", "file"), c.explain)
	decision := func(verb, text string, decide requests.Decision, role string) {
		handle(c, "POST "+request+"/"+verb, small, role, api.About(text), c.decisionHandler(verb, decide))
	}
	decision("approve", "Approve a request", c.queue.Approve, access.MayApprove)
	decision("reject", "Reject a request", c.queue.Reject, access.MayApprove)
	decision("cancel", "Cancel a request", c.requests.Cancel, "")
	decision("retry", "Retry the failed and cancelled files of a request", c.requests.Retry, "")
	stream[transfer.Manifest](c, request+"/manifest", "", api.About("Manifest of a request: all its files, and a digest"), c.manifest)
}

// handle registers f for a pattern of http.ServeMux and callers with the role ("": f checks). An
// invalid parameter of the query is an error whatever f returns.
func handle[In, Out any](c *Coordinator, pattern string, most int64, role string, text api.Doc, f func(*api.Call, *In) (Out, error)) {
	c.operations = append(c.operations, api.Operation{Pattern: pattern, Role: role, About: text, In: api.TypeOf[In](), Out: api.TypeOf[Out]()})
	wire.Answer(c.server, pattern, most, func(r *http.Request, in *In) (out Out, err error) {
		q, err := api.NewCall(r, role, text.Params)
		if err == nil {
			out, err = f(q, in)
			err = cmp.Or(q.Invalid, err)
		}
		return out, c.refuser.Refusal(r.Context(), err)
	})
}

// stream registers f, which writes the answer to GET requests of a path itself. An error that it
// returns is answered instead.
func stream[Out any](c *Coordinator, path, media string, text api.Doc, f func(*api.Call, http.ResponseWriter) error) {
	c.operations = append(c.operations, api.Operation{Pattern: "GET " + path, Role: access.MayRead, About: text,
		Out: api.TypeOf[Out](), Media: media})
	c.server.Mount("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := api.NewCall(r, access.MayRead, text.Params)
		if err == nil {
			err = f(q, w)
		}
		if err != nil {
			wire.Fail(w, c.refuser.Refusal(r.Context(), err))
		}
	}))
}

// public registers a handler of requests without authentication.
func (c *Coordinator) public(pattern, media string, text api.Doc, h http.Handler) {
	c.operations = append(c.operations, api.Operation{Pattern: pattern, About: text, Media: media, Public: true})
	c.server.Public(pattern, h)
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
