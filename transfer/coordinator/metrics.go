package coordinator

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"weir/transfer"
	"weir/transfer/queue"
)

// A gauge is a metric with its samples, as Prometheus reads it (text format 0.0.4).
type gauge struct {
	name, help string
	rows       []string
}

func (g *gauge) add(value float64, labels ...string) {
	text := ""
	for i := 0; i+1 < len(labels); i += 2 {
		if text != "" {
			text += ","
		}
		text += fmt.Sprintf("%s=\"%s\"", labels[i], strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(labels[i+1]))
	}
	if text != "" {
		text = "{" + text + "}"
	}
	g.rows = append(g.rows, fmt.Sprintf("%s%s %g\n", g.name, text, value))
}

// metrics answers with a page for Prometheus.
func (c *Coordinator) metrics(w http.ResponseWriter, r *http.Request) {
	if _, err := need(r, mayRead); err != nil {
		answerError(w, err)
		return
	}
	open, err := c.queue.Pending(r.Context())
	if err != nil {
		answerError(w, c.refusal(err))
		return
	}
	var text strings.Builder
	for _, g := range append(requestGauges(open), c.registryGauges()...) {
		slices.Sort(g.rows)
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n%s", g.name, g.help, g.name, strings.Join(g.rows, ""))
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(text.String())) // who is gone asks again
}

// requestGauges count open requests by destination and status, and their files by
// destination and state.
func requestGauges(open []queue.Pending) []*gauge {
	requests := &gauge{name: "weir_transfer_requests", help: "Requests that have not ended."}
	files := &gauge{name: "weir_transfer_files", help: "Files of requests that have not ended."}
	byDest := map[string]transfer.Counts{}
	for _, o := range open {
		requests.add(float64(o.Requests), "dest", o.Dest, "status", string(o.Status))
		n := byDest[o.Dest]
		n.Queued += o.Count.Queued
		n.NoSource += o.Count.NoSource
		n.Leased += o.Count.Leased
		n.Done += o.Count.Done
		n.Skipped += o.Count.Skipped
		n.Failed += o.Count.Failed
		byDest[o.Dest] = n
	}
	for dest, n := range byDest {
		for s, count := range map[transfer.State]int64{
			transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased, transfer.Done: n.Done, transfer.Skipped: n.Skipped, transfer.FileFailed: n.Failed,
		} {
			files.add(float64(count), "dest", dest, "state", string(s))
		}
	}
	return []*gauge{requests, files}
}

// registryGauges are those of sites, links and what does not work.
func (c *Coordinator) registryGauges() []*gauge {
	up := &gauge{name: "weir_transfer_site_up", help: "Whether a site can be reached."}
	free := &gauge{name: "weir_transfer_site_free_bytes", help: "Free space of a site, where it is known."}
	active := &gauge{name: "weir_transfer_link_copies", help: "Copies that go on, or wait at their mover."}
	limit := &gauge{name: "weir_transfer_link_limit", help: "Copies at once that a link may have."}
	rate := &gauge{name: "weir_transfer_link_bytes_per_second", help: "What a link has moved lately."}
	success := &gauge{name: "weir_transfer_link_success_ratio", help: "Share of recent copies of a link that succeeded."}
	refuses := &gauge{name: "weir_transfer_site_refuses", help: "Whether a site refuses whatever is asked (credentials, storage), so that its files wait."}
	wrong := &gauge{name: "weir_transfer_trouble", help: "What does not work now."}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	refusals := c.refusals()
	for _, s := range c.registry.sites {
		v := 0.0
		if s.Up {
			v = 1
		}
		up.add(v, "site", s.Name, "kind", string(s.Kind))
		v = 0
		if _, yes := refusals[s.Name]; yes {
			v = 1
		}
		refuses.add(v, "site", s.Name)
		if s.Free >= 0 {
			free.add(float64(s.Free), "site", s.Name)
		}
	}
	links := c.registry.net.Links()
	slices.SortFunc(links, func(a, b transfer.Link) int { return cmp.Compare(a.Source, b.Source) })
	for _, l := range links {
		at := []string{"source", l.Source, "dest", l.Dest}
		active.add(float64(l.Active), at...)
		limit.add(float64(l.Limit), at...)
		rate.add(l.Rate, at...)
		success.add(l.Success, at...)
	}
	for what := range c.health.list() {
		wrong.add(1, "what", what)
	}
	return []*gauge{up, refuses, free, active, limit, rate, success, wrong}
}
