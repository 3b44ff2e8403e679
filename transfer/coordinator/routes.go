package coordinator

import (
	"net/http"

	"weir/internal/wire"
	"weir/transfer"
)

// Lengths of questions, in bytes.
const (
	small   = 64 << 10
	middle  = 4 << 20
	reports = 32 << 20
)

// routes are the questions that are answered.
func (c *Coordinator) routes() {
	s := c.server
	c.public()
	wire.Answer(s, "POST "+transfer.RegisterPath, middle, c.register)
	wire.Answer(s, "POST "+transfer.DeregisterPath, middle, c.deregister)
	wire.Answer(s, "POST "+transfer.WorkPath, middle, c.poll)
	wire.Answer(s, "POST "+transfer.ReportPath, reports, c.report)
	wire.Answer(s, "POST "+transfer.ClockPath, small, c.clock)

	const api = "/api/v1/"
	wire.Answer(s, "GET "+api+"sites", 0, c.listSites)
	wire.Answer(s, "POST "+api+"sites", 128<<10, c.addSite)
	wire.Answer(s, "POST "+api+"sites/{name}/remove", small, c.removeSite)
	wire.Answer(s, "GET "+api+"datasets", 0, c.datasets)
	wire.Answer(s, "GET "+api+"dataset", 0, c.dataset)
	wire.Answer(s, "GET "+api+"dataset/files", 0, c.files)
	wire.Answer(s, "POST "+api+"dataset/files", middle, c.addFiles)
	wire.Answer(s, "POST "+api+"dataset/remove", small, c.removeDataset)
	wire.Answer(s, "POST "+api+"scans", small, c.addScan)
	wire.Answer(s, "GET "+api+"scans/{id}", 0, c.showScan)
	wire.Answer(s, "GET "+api+"links", 0, c.links)
	wire.Answer(s, "GET "+api+"history", 0, c.tries)
	wire.Answer(s, "GET "+api+"samples", 0, c.listSamples)
	wire.Answer(s, "POST "+api+"tokens", small, c.newToken)
	wire.Answer(s, "GET "+api+"tokens", 0, c.tokens)
	wire.Answer(s, "POST "+api+"tokens/{id}/revoke", small, c.revoke)
	s.Mount("GET "+api+"events", http.HandlerFunc(c.events))
	s.Mount("GET /metrics", http.HandlerFunc(c.metrics))

	const request = api + "requests/{id}"
	wire.Answer(s, "GET "+api+"requests", 0, c.list)
	wire.Answer(s, "POST "+api+"requests", reports, c.submit)
	wire.Answer(s, "GET "+request, 0, c.show)
	wire.Answer(s, "GET "+request+"/items", 0, c.items)
	wire.Answer(s, "GET "+request+"/attempts", 0, c.attempts)
	s.Mount("GET "+request+"/manifest", http.HandlerFunc(c.manifest))
	wire.Answer(s, "GET "+request+"/explain", 0, c.explain)
	wire.Answer(s, "POST "+request+"/approve", small, c.decisionHandler("approve", c.queue.Approve))
	wire.Answer(s, "POST "+request+"/reject", small, c.decisionHandler("reject", c.queue.Reject))
	wire.Answer(s, "POST "+request+"/cancel", small, c.decisionHandler("cancel", c.cancel))
	wire.Answer(s, "POST "+request+"/retry", small, c.decisionHandler("retry", c.queue.Retry))
	s.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerError(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}
