package coordinator

import (
	"context"
	"fmt"
	"time"

	"weir/internal/tpc"
)

// probeTime is how long an endpoint may take to say that it is there.
const probeTime = 10 * time.Second

// probe asks an endpoint whether it is there, and notes that in the catalog.
func (c *Coordinator) probe(ctx context.Context, name string) {
	c.registry.mu.Lock()
	site, d := c.registry.sites[name], c.registry.secrets[name]
	c.registry.mu.Unlock()
	if site.URL == "" {
		return
	}
	ask, cancel := context.WithTimeout(ctx, probeTime)
	can, err := c.tpc.Ask(ask, tpc.Target{URL: fileURL(site.URL, "/"), Token: d.Token, Pin: d.Pin, Servers: d.Servers})
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		c.learn(ctx, site, d, can)
	}
	now, up, problem := c.now(), true, ""
	switch tpc.KindOf(err) {
	case tpc.Unreachable, tpc.Stalled, tpc.Broken:
		up, problem = false, fmt.Sprintf("it could not be reached at %s: %s", clockTime(now), sentence(err.Error()))
		now = time.Time{}
	case tpc.Busy:
		problem = "it is busy"
	}
	c.registry.mu.Lock()
	s, known := c.registry.sites[name]
	was := s.Up
	if known {
		s.Up, s.Problem = up, problem
		c.registry.sites[name] = s
	}
	c.registry.mu.Unlock()
	if !known {
		return
	}
	if was != up {
		c.log.Info("a site has changed", "site", name, "up", up, "problem", problem)
	}
	c.health.say("database", c.catalog.Saw(ctx, name, now, up, s.Free, problem))
	if up && !was {
		c.wake.give()
	}
}
