package coordinator

import (
	"cmp"
	"context"
	"slices"

	"weir/transfer"
	"weir/transfer/queue"
)

// applyOutcomes writes outcomes to the queue and updates the registry. from is the site whose agent
// has reported the outcomes, or "" for the coordinator. Outcomes of leases of other sites change
// nothing; they are acknowledged, so that they are not repeated.
func (c *Coordinator) applyOutcomes(ctx context.Context, from string, all []transfer.Outcome) error {
	if len(all) == 0 {
		return nil
	}
	all = c.leases.Classify(from, all)
	changes, err := c.queue.Report(ctx, from, all)
	if err == nil {
		c.applyChanges(from, changes, all)
	}
	return err
}

// applyChanges removes the leases of changed files and wakes all goroutines that wait for changes.
// If the agent of a site has reported the outcomes, only leases of this site are removed.
func (c *Coordinator) applyChanges(from string, changes []queue.Change, outcomes []transfer.Outcome) {
	if len(changes) == 0 {
		return
	}
	c.leases.ApplyChanges(from, changes, outcomes)
	c.wake.Broadcast()
	c.eventsChanged.Broadcast()
	for _, ch := range changes {
		if ch.Ended != "" {
			c.log.Info("request ended", "request", ch.Request, "status", string(ch.Ended))
		}
	}
}

// renew renews the leases in the database whose movers have reported, and aborts the leases whose
// requests were stopped. It is called before leases expire, so that leases of live movers survive
// an unavailable database.
func (c *Coordinator) renew(ctx context.Context) error {
	now := c.now()
	all := c.leases.Unrenewed(now)
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
	_, gone, err := c.queue.Renew(ctx, all)
	if err != nil {
		return err
	}
	return c.applyOutcomes(ctx, "", c.leases.Renewed(now, all, gone))
}

// wakeAll wakes the loops that depend on the state of a request.
func (c *Coordinator) wakeAll() {
	c.leases.ClearBackoff()
	c.work.Broadcast()
	c.wake.Broadcast()
	c.eventsChanged.Broadcast()
}
