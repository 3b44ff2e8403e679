package cluster

import (
	"context"
	"net/netip"
	"sync"

	"weir/loadtest/scenario"
)

// vacancy returns the site at which a worker that comes is needed most: where the fewest are, or, if each is one client,
// where the most are missing of the site's share.
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
		if need := share / float64(2*there[i]+1); need > most { // as link.Deal does
			best, most = i, need
		}
	}
	return best
}

// reach answers workers that ask where they reach servers. That may take a while, and nothing waits for the answers.
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
			_ = s.say(order{Way: &at}) // a lost worker needs no answer
		})
	}
}
