package v1

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/dispatch"
	"weir/transfer/metrics"
	"weir/transfer/queue"
)

// metrics writes the metrics for Prometheus.
func (h *Handlers) metrics(q *api.Call, w http.ResponseWriter) error {
	open, err := h.Queue.Read.Pending(q.Context())
	if err != nil {
		return err
	}
	p := metrics.NewPage()
	p.Add(metrics.Info, 1, cmp.Or(h.Version, "unknown"))
	p.Add(metrics.StartTime, float64(h.Begun.Unix()))
	for what := range h.Health.List() {
		p.Add(metrics.Trouble, 1, what)
	}
	if err := h.messageMetrics(q.Context(), p); err != nil {
		return err
	}
	h.queueMetrics(p, open)
	h.siteMetrics(p)
	h.Counters.Write(p, h.State.Leases.Links())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(p.Text())) // a client that has disconnected repeats the request
	return nil
}

// messageMetrics adds the number and age of messages that wait for the broker, if a broker is
// configured.
func (h *Handlers) messageMetrics(ctx context.Context, p *metrics.Page) error {
	if !h.Messages {
		return nil
	}
	n, oldest, err := h.Queue.KeptChanges(ctx)
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, h.Now().Sub(oldest).Seconds())
	}
	p.Add(metrics.MessagesWaiting, float64(n))
	p.Add(metrics.OldestMessage, age)
	return err
}

// queueMetrics adds the requests that have not ended, and their files.
func (h *Handlers) queueMetrics(p *metrics.Page, open []queue.Pending) {
	now := h.Now()
	type place struct{ dest, activity string }
	oldest := map[place]time.Duration{}
	for _, o := range open {
		n, at := o.Count, place{h.Counters.Dest(o.Dest), h.Counters.Activity(o.Activity)}
		p.Add(metrics.Requests, float64(o.Requests), at.dest, string(o.Status))
		for s, count := range map[transfer.State]int64{
			transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased,
			transfer.Done: n.Done, transfer.Skipped: n.Skipped, transfer.FileFailed: n.Failed,
		} {
			p.Add(metrics.Files, float64(count), at.dest, string(s))
		}
		p.Add(metrics.Waiting, float64(n.Queued+n.NoSource), at.dest, at.activity)
		age := time.Duration(0)
		if !o.Oldest.IsZero() {
			age = max(0, now.Sub(o.Oldest))
		}
		oldest[at] = max(oldest[at], age)
	}
	for at, age := range oldest {
		p.Add(metrics.OldestWaiting, age.Seconds(), at.dest, at.activity)
	}
}

// siteMetrics adds the sites: all are counted, and the first sites, sorted by kind and name, have
// metrics of their own.
func (h *Handlers) siteMetrics(p *metrics.Page) {
	sites := h.State.Sites.States()
	for _, s := range sites {
		state := "down"
		if s.Up {
			state = "up"
		}
		p.Add(metrics.Sites, 1, string(s.Kind), state)
	}
	slices.SortFunc(sites, func(a, b dispatch.SiteState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) // sites of kind url are last
	})
	for _, s := range sites[:min(len(sites), metrics.MaxSites)] {
		p.AddBool(metrics.SiteUp, s.Up, s.Name, string(s.Kind))
		p.AddBool(metrics.SiteRefuses, s.Refuses, s.Name)
		if s.Free >= 0 {
			p.Add(metrics.SiteFree, float64(s.Free), s.Name)
		}
		p.Add(metrics.SiteCopies, float64(s.Copies), s.Name)
		if s.Max > 0 {
			p.Add(metrics.SiteLimit, float64(s.Max), s.Name)
		}
		if s.Agent {
			p.Add(metrics.SiteSlots, float64(s.Slots), s.Name)
		}
	}
}
