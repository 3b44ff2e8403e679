package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/queue"
)

const rounds = 4 // number of queries for candidates, each with fewer sources

// dispatch dispatches waiting files until no further file can be dispatched.
func (c *Coordinator) dispatch(ctx context.Context) error {
	if c.uncertain.Load() {
		if err := c.recall(ctx); err != nil {
			return err
		}
	}
	dests, err := c.queue.Destinations(ctx)
	if err != nil {
		return err
	}
	banned := c.sites.Banned()
	for _, dest := range dests {
		if _, is := banned[dest]; is {
			continue
		}
		busy := slices.Collect(maps.Keys(banned))
		for range rounds {
			given, full, err := c.dispatchTo(ctx, dest, busy)
			if err != nil {
				return err
			}
			full = slices.DeleteFunc(full, func(s string) bool { return slices.Contains(busy, s) })
			if given == 0 && len(full) == 0 {
				break
			}
			busy = append(busy, full...)
		}
	}
	return nil
}

// dispatchTo dispatches files to one destination. full lists the sources that could not be used, so
// that the next query excludes them.
func (c *Coordinator) dispatchTo(ctx context.Context, dest string, busy []string) (given int, full []string, err error) {
	n := c.leases.RoomAt(dest)
	if n == 0 {
		return 0, nil, nil
	}
	candidates, err := c.queue.Waiting(ctx, queue.Want{Dest: dest, N: n, Busy: busy})
	if err != nil || len(candidates) == 0 {
		return 0, nil, err
	}
	choices, plans, full := c.leases.Choose(dest, candidates)
	leases, err := c.queue.Take(ctx, choices)
	if err != nil {
		leases = nil
		if errors.Is(err, db.ErrUnsure) {
			c.uncertain.Store(true)
		}
	}
	leases, back := c.endpoints.AddCredentials(ctx, leases)
	if recordErr := c.copier.RecordTemporaries(ctx, leases); recordErr != nil { // each temporary is recorded before it is created
		c.uncertain.Store(true) // so these leases are recalled
		leases, err = nil, errors.Join(err, recordErr)
	}
	copies, gone := c.leases.HandOver(ctx, leases, plans)
	for _, one := range copies {
		c.copier.Start(ctx, one)
	}
	if len(leases) == 0 {
		c.backOff(dest, err == nil && len(choices) == 0 && len(full) > 0)
	}
	return len(leases), full, errors.Join(err, c.applyOutcomes(ctx, "", append(gone, back...)))
}

// backOff schedules the next look at a destination. Each look reads as many files as the
// destination has room for. A destination whose links are full is therefore not looked at again
// until a copy ends, a request changes, or the scheduler may have raised a limit.
func (c *Coordinator) backOff(dest string, full bool) {
	wait := c.leases.BackOff(dest, full)
	time.AfterFunc(wait, c.wake.Broadcast)
}

// recall takes back leases that the database granted while the connection to it was lost, so that
// no mover received them. These leases are in the database now, and were not in the registry
// before. It is called between Takes.
func (c *Coordinator) recall(ctx context.Context) error {
	known := c.leases.IDs()
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	var back []transfer.Outcome
	for _, l := range leases {
		if !known[l.ID()] {
			now := c.now()
			back = append(back, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.MoverStopped, Begin: now, End: now,
				Reason: "the connection to the database was lost while it was given out"})
		}
	}
	err = c.applyOutcomes(ctx, "", back)
	c.uncertain.Store(err != nil)
	return err
}
