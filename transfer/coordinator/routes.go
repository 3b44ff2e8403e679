package coordinator

import (
	"fmt"
	"net/http"
	"time"

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
	wire.Answer(s, "POST "+transfer.HelloPath, middle, c.hello)
	wire.Answer(s, "POST "+transfer.GoodbyePath, middle, c.goodbye)
	wire.Answer(s, "POST "+transfer.WorkPath, middle, c.askWork)
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
	wire.Answer(s, "POST "+request+"/approve", small, c.verdict("approve", c.queue.Approve))
	wire.Answer(s, "POST "+request+"/reject", small, c.verdict("reject", c.queue.Reject))
	wire.Answer(s, "POST "+request+"/cancel", small, c.verdict("cancel", c.cancel))
	wire.Answer(s, "POST "+request+"/retry", small, c.verdict("retry", c.queue.Retry))
	s.Mount("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerError(w, wire.Refuse(http.StatusNotFound, "there is no %s %.200s", r.Method, r.URL.Path))
	}))
}

// Lives of tokens that users are given.
const (
	usualLife   = 30 * 24 * time.Hour
	longestLife = 10 * 365 * 24 * time.Hour
)

// newToken makes a token.
func (c *Coordinator) newToken(r *http.Request, in *transfer.NewToken) (answer struct {
	Token string `json:"token"`
}, err error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return answer, err
	}
	if in.Life == 0 {
		in.Life = usualLife
	}
	err = fitToken(in)
	if err == nil {
		answer.Token, err = c.mintRole(in.Subject, in.Roles, in.Life)
	}
	if err != nil {
		return answer, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	c.log.Info("a token was made", "for", in.Subject, "roles", in.Roles, "life", in.Life.String(), "by", who.name)
	return answer, nil
}

func fitToken(in *transfer.NewToken) error {
	switch {
	case in.Subject == "" || len(in.Subject) > 200:
		return fmt.Errorf("a token is for somebody: a name of at most 200 letters")
	case len(in.Roles) == 0 || len(in.Roles) > 100:
		return fmt.Errorf("a token has roles: between 1 and 100 of them")
	case in.Life < time.Second || in.Life > longestLife:
		return fmt.Errorf("a token lives for a second at least, and %d days at most", int(longestLife.Hours()/24))
	}
	for _, role := range in.Roles {
		if err := roleIsOne(role); err != nil {
			return err
		}
	}
	return nil
}
