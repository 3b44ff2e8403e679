package service

import (
	"context"
	"time"
)

// A Wake wakes a goroutine. Several signals before it wakes count as one.
type Wake chan struct{}

// NewWake returns a Wake without a signal.
func NewWake() Wake { return make(Wake, 1) }

// Signal wakes the goroutine that waits for w, or that waits for it next. It does not block.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Wait waits for a signal, but no longer than d. It returns false if ctx ends first.
func (w Wake) Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// pollShare limits the requests to a slow service: a round is followed by a pause of so many times
// its duration.
const pollShare = 4

// Rounds calls round again and again until ctx ends: when w is signaled, or after a pause between
// least and most that grows with the duration of a round.
func (w Wake) Rounds(ctx context.Context, least, most time.Duration, round func()) {
	for wait := least; w.Wait(ctx, wait); {
		begun := time.Now()
		round()
		wait = min(max(pollShare*time.Since(begun), least), most)
	}
}
