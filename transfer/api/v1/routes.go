package v1

import (
	"net/http"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/requests"
)

const base = "/api/v1/"

// Register adds the routes to a server.
func (h *Handlers) Register(to *api.Routes) {
	to.Public("GET "+OpenAPIPath, "application/json", api.About("This description"), http.HandlerFunc(describeAPI))
	h.addAgents(to)
	h.addCatalog(to)
	h.addRequests(to)
	h.addService(to)
	to.Server.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire.Fail(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}

func (h *Handlers) addAgents(to *api.Routes) {
	api.Handle(to, "POST "+transfer.RegisterPath, api.Middle, "", api.About("Register an agent"), h.register)
	api.Handle(to, "POST "+transfer.DeregisterPath, api.Middle, "", api.About("Deregister an agent"), h.deregister)
	api.Handle(to, "POST "+transfer.WorkPath, api.Middle, "", api.About("Wait for work of an agent, up to 20 seconds"), h.poll)
	api.Handle(to, "POST "+transfer.ReportPath, api.Large, "", api.About("Report outcomes and progress of an agent"), h.report)
	api.Handle(to, "POST "+transfer.ClockPath, api.Small, "", api.About("Time of the coordinator"),
		func(*api.Call, *struct{}) (transfer.Clock, error) { return transfer.Clock{Now: h.Now()}, nil })
}

func (h *Handlers) addCatalog(to *api.Routes) {
	api.Handle(to, "GET "+base+"sites", 0, access.MayRead, api.About("List sites"), h.listSites)
	api.Handle(to, "POST "+base+"sites", 128<<10, access.MayAdmin, api.About("Add or change a site without an agent"), h.addSite)
	api.Handle(to, "POST "+base+"sites/{name}/remove", api.Small, access.MayAdmin,
		api.About("Remove a site and its replicas from the catalog"), h.removeSite)
	api.Handle(to, "GET "+base+"datasets", 0, access.MayRead, api.About("List datasets by name", "from", "after", "n"), h.datasets)
	api.Handle(to, "GET "+base+"dataset", 0, access.MayRead, api.About("Show a dataset", "name"), h.dataset)
	api.Handle(to, "GET "+base+"dataset/files", 0, access.MayRead, api.About("List files of a dataset with their replicas", "name",
		"after", "n"), h.files)
	api.Handle(to, "POST "+base+"dataset/files", api.Middle, access.MayAdmin, api.About("Add files that a site has to a dataset"), h.addFiles)
	api.Handle(to, "POST "+base+"dataset/remove", api.Small, access.MayAdmin, api.About("Remove a dataset from the catalog"), h.removeDataset)
	api.Handle(to, "POST "+base+"scans", api.Small, access.MayAdmin, api.About("Have an agent list the files of a dataset"), h.addScan)
	api.Handle(to, "GET "+base+"scans/{number}", 0, access.MayRead, api.About("Show the progress of a scan"), h.showScan)
}

func (h *Handlers) addService(to *api.Routes) {
	api.Handle(to, "GET "+base+"links", 0, access.MayRead, api.About("List links with their limits and the reasons"), h.links)
	api.Handle(to, "GET "+base+"links/changes", 0, access.MayRead, api.About("List the last changes of limits, the oldest first", "source",
		"dest", "after", "n"), h.listLimitChanges)
	api.Handle(to, "GET "+base+"history", 0, access.MayRead, api.About("List attempts, the oldest first", "after", "n"), h.history)
	api.Handle(to, "GET "+base+"samples", 0, access.MayRead, api.About("List samples of a site's host, the oldest first", "site", "after",
		"n"), h.listSamples)
	api.Handle(to, "POST "+base+"tokens", api.Small, access.MayAdmin, api.About("Issue a token"), h.newToken)
	api.Handle(to, "GET "+base+"tokens", 0, access.MayAdmin, api.About("List tokens"), h.tokens)
	api.Handle(to, "POST "+base+"tokens/{id}/revoke", api.Small, access.MayAdmin, api.About("Revoke a token"), h.revoke)
	api.Handle(to, "GET "+base+"notifications", 0, access.MayAdmin, api.About("List notifications, the newest first"), h.listNotifications)
	api.Handle(to, "POST "+base+"notifications/test", api.Small, access.MayAdmin, api.About("Send a test to targets of notifications"),
		h.testNotify)
	api.Stream[transfer.Event](to, base+"events", "text/event-stream", api.About("Follow events", "after"), h.events)
	api.Stream[string](to, "/metrics", "text/plain", api.About("Metrics for Prometheus"), h.metrics)
}

func (h *Handlers) addRequests(to *api.Routes) {
	const request = base + "requests/{number}"
	api.Handle(to, "GET "+base+"requests", 0, access.MayRead, api.About("List requests, the newest first", "status", "open", "to", "dataset",
		"by", "before", "n"), h.list)
	api.Handle(to, "POST "+base+"requests", api.Large, access.MaySubmit, api.About("Submit a request"), h.submit)
	api.Handle(to, "GET "+request, 0, access.MayRead, api.About("Show a request"), h.show)
	api.Handle(to, "GET "+request+"/items", 0, access.MayRead, api.About("List files of a request", "state", "after", "n"), h.items)
	api.Handle(to, "GET "+request+"/attempts", 0, access.MayRead, api.About("List attempts of a request", "item", "after", "epoch", "late",
		"n"), h.attempts)
	api.Handle(to, "GET "+request+"/explain", 0, access.MayRead, api.About("Explain why files of a request do not move", "file"), h.explain)
	decision := func(verb, text string, decide requests.Decision, role string) {
		api.Handle(to, "POST "+request+"/"+verb, api.Small, role, api.About(text), h.decisionHandler(verb, decide))
	}
	decision("approve", "Approve a request", h.Queue.Approve, access.MayApprove)
	decision("reject", "Reject a request", h.Queue.Reject, access.MayApprove)
	decision("cancel", "Cancel a request", h.Requests.Cancel, "")
	decision("retry", "Retry the failed and cancelled files of a request", h.Requests.Retry, "")
	api.Stream[transfer.Manifest](to, request+"/manifest", "", api.About("Manifest of a request: all its files, and a digest"), h.manifest)
}
