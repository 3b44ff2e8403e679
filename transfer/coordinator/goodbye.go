package coordinator

import (
	"net/http"
	"time"

	"weir/internal/wire"
	"weir/transfer"
)

// deregister takes note that an agent ends: its site is down at once, and leases
// that it has not begun, or has told nothing of, wait for the next mover.
func (c *Coordinator) deregister(r *http.Request, in *transfer.Deregister) (struct{}, error) {
	if err := mine(r, in.Site); err != nil {
		return struct{}{}, err
	}
	if len(in.Holding) > mostHeld {
		return struct{}{}, wire.Refuse(http.StatusBadRequest, "an agent holds at most %d leases", mostHeld)
	}
	now := c.now()
	holds, problem := holdings(in.Holding), "its agent was ended at "+clockTime(now)
	c.registry.mu.Lock()
	a, err := c.known(in.Site, in.Session)
	if err != nil {
		c.registry.mu.Unlock()
		return struct{}{}, err
	}
	delete(c.registry.agents, in.Site)
	a.ring() // its question is answered: it is not known any more
	var left []transfer.Outcome
	for _, l := range c.registry.leases {
		if l.mover == in.Site && !l.lost && holds[l.Item] != l.Epoch {
			left = append(left, c.without(l, transfer.MoverStopped, "the agent of site "+in.Site+" was ended"))
		}
	}
	s, known := c.registry.sites[in.Site]
	if known {
		s.Up, s.Problem = false, problem
		c.registry.sites[in.Site] = s
	}
	c.registry.mu.Unlock()
	c.log.Info("an agent has gone", "site", in.Site, "leases", len(left))
	if !known {
		return struct{}{}, nil // it was removed
	}
	if err := c.catalog.Saw(r.Context(), in.Site, time.Time{}, false, s.Free, problem); err != nil {
		return struct{}{}, c.refusal(err)
	}
	if err := c.ended(r.Context(), "", left); err != nil {
		return struct{}{}, c.refusal(err)
	}
	c.stir()
	return struct{}{}, nil
}
