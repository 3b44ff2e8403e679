package thirdparty

import (
	"context"
	"slices"
	"sync"

	"weir/transfer"
)

// mostTogether bounds the outcomes of third-party copies that one transaction writes.
const mostTogether = 500

// An outcomeBatch collects the outcomes of third-party copies while others are being written. Its zero value is ready.
type outcomeBatch struct {
	mu      sync.Mutex
	waiting []waitingOutcome
	writing bool
}

type waitingOutcome struct {
	outcome transfer.Outcome
	written chan error
}

// applyOutcome writes the outcome of a third-party copy with applyOutcomes. Copies that end at the
// same time share a transaction: a transaction for each copy would cost three times as much.
func (c *Copier) applyOutcome(ctx context.Context, o transfer.Outcome) error {
	b := &c.outcomes
	mine := waitingOutcome{o, make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, mine)
	first := !b.writing
	b.writing = true
	b.mu.Unlock()
	if first {
		c.writeOutcomes(ctx)
	}
	return <-mine.written
}

// writeOutcomes writes waiting outcomes until the list is empty.
func (c *Copier) writeOutcomes(ctx context.Context) {
	b := &c.outcomes
	for {
		b.mu.Lock()
		n := min(len(b.waiting), mostTogether)
		some := slices.Clone(b.waiting[:n])
		b.waiting = slices.Delete(b.waiting, 0, n)
		b.writing = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		var all []transfer.Outcome
		for _, w := range some {
			all = append(all, w.outcome)
		}
		c.ForgetTemporaries(ctx, "", all)
		err := c.apply(ctx, all)
		for _, w := range some {
			w.written <- err
		}
	}
}
