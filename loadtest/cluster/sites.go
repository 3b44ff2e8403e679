package cluster

import (
	"context"
	"net/netip"
	"sync"

	"weir/loadtest/scenario"
)

// vacancy returns the site at which a new worker is needed most: the site with the fewest workers,
// or, if each worker is one client, the site that lacks most of its share.
func (r *run) vacancy(sites scenario.Links) int {
	there := make([]int, len(sites))
	for _, s := range r.sessions {
		if !s.over() {
			there[s.worker.site]++
		}
	}
	best, most := 0, 0.0
	for i := range sites {
		share := 1.0
		if r.controller.options.JobPerClient {
			share = sites[i].Spec.Complete().Share
		}
		if need := share / float64(2*there[i]+1); need > most { // link.Deal uses the same rule
			best, most = i, need
		}
	}
	return best
}

// reach sends the addresses at which servers are reached to workers that request them. That may
// take a while, and nothing waits for it.
func (k *controller) reach(ctx context.Context, answers *sync.WaitGroup, h workerInput) {
	for _, r := range h.reports {
		s, ok := h.worker.connection.(*session)
		if r.Ask == "" || k.options.Reach == nil || !ok {
			continue
		}
		site := h.worker.site
		answers.Go(func() {
			here, from := s.ends()
			at := way{Server: r.Ask}
			if port, err := k.options.Reach(ctx, site, r.Ask, from); err != nil {
				at.Error = err.Error()
			} else {
				at.At = netip.AddrPortFrom(here, port).String()
			}
			_ = s.say(order{Way: &at}) // an error means that the worker is lost
		})
	}
}
