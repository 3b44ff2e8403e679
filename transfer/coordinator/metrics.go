package coordinator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"weir/transfer"
	"weir/transfer/queue"
)

// A gauge is a metric in the text format of Prometheus (0.0.4).
type gauge struct {
	name, help string
	rows       []string
}

func newGauge(name, help string) *gauge { return &gauge{name: "weir_transfer_" + name, help: help} }

// add adds a value with labels: name, value, ...
func (g *gauge) add(value float64, labels ...string) {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var list []string
	for i := 0; i+1 < len(labels); i += 2 {
		list = append(list, labels[i]+`="`+escape.Replace(labels[i+1])+`"`)
	}
	g.rows = append(g.rows, fmt.Sprintf("%s{%s} %g\n", g.name, strings.Join(list, ","), value))
}

func (g *gauge) addBool(value bool, labels ...string) {
	n := 0.0
	if value {
		n = 1
	}
	g.add(n, labels...)
}

// metrics answers Prometheus.
func (c *Coordinator) metrics(q *call, w http.ResponseWriter) error {
	open, err := c.queue.Pending(q.Context())
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, g := range append(requestGauges(open), c.registryGauges()...) {
		slices.Sort(g.rows)
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n%s", g.name, g.help, g.name, strings.Join(g.rows, ""))
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(text.String())) // a client that has disconnected asks again
	return nil
}

// requestGauges count open requests by destination and status, and their files by destination and
// state.
func requestGauges(open []queue.Pending) []*gauge {
	requests, files := newGauge("requests", "Requests that have not ended."), newGauge("files", "Files of requests that have not ended.")
	counts := map[[2]string]int64{}
	for _, o := range open {
		requests.add(float64(o.Requests), "dest", o.Dest, "status", string(o.Status))
		n := o.Count
		for s, count := range map[transfer.State]int64{
			transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased,
			transfer.Done: n.Done, transfer.Skipped: n.Skipped, transfer.FileFailed: n.Failed,
		} {
			counts[[2]string{o.Dest, string(s)}] += count
		}
	}
	for key, count := range counts {
		files.add(float64(count), "dest", key[0], "state", key[1])
	}
	return []*gauge{requests, files}
}

// registryGauges describe sites, links and failures.
func (c *Coordinator) registryGauges() []*gauge {
	up := newGauge("site_up", "Whether a site can be reached.")
	refuses := newGauge("site_refuses", "Whether a site refuses every request (credentials, storage), so that its files wait.")
	free := newGauge("site_free_bytes", "Free space of a site, where it is known.")
	active := newGauge("link_copies", "Transfers that are running or wait at their mover.")
	limit := newGauge("link_limit", "Limit of concurrent transfers of a link.")
	rate := newGauge("link_bytes_per_second", "Throughput of a link in the last seconds.")
	success := newGauge("link_success_ratio", "Ratio of recent transfers of a link that succeeded.")
	trouble := newGauge("trouble", "Parts of the coordinator that do not work now.")
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	refusals := c.refusals()
	for _, s := range c.registry.sites {
		up.addBool(s.Up, "site", s.Name, "kind", string(s.Kind))
		refuses.addBool(refusals[s.Name] != "", "site", s.Name)
		if s.Free >= 0 {
			free.add(float64(s.Free), "site", s.Name)
		}
	}
	for _, l := range c.registry.net.Links() {
		at := []string{"source", l.Source, "dest", l.Dest}
		active.add(float64(l.Active), at...)
		limit.add(float64(l.Limit), at...)
		rate.add(l.Rate, at...)
		success.add(l.Success, at...)
	}
	for what := range c.health.list() {
		trouble.add(1, "what", what)
	}
	return []*gauge{up, refuses, free, active, limit, rate, success, trouble}
}
