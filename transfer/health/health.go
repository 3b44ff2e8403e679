// Package health records which parts of a service do not work, repeats work until the database is
// available again, and reports whether it is available.
package health

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"weir/internal/pause"
)

const (
	longestRetry = 10 * time.Second
	betweenParts = 50 * time.Millisecond // of work for which other writers wait
)

// Health records which parts of a service do not work. It logs the beginning and the end of each failure.
type Health struct {
	log   *slog.Logger
	mu    sync.Mutex
	wrong map[string]string
}

// New returns a Health whose parts all work.
func New(log *slog.Logger) *Health { return &Health{log: log} }

// Set records the state of a part; err is nil if it works.
func (h *Health) Set(part string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, was := h.wrong[part]
	switch {
	case err == nil && was:
		delete(h.wrong, part)
		h.log.Info("works again", "what", part)
	case err != nil && (!was || old != err.Error()):
		if h.wrong == nil {
			h.wrong = map[string]string{}
		}
		h.wrong[part] = err.Error()
		h.log.Warn("does not work now", "what", part, "error", err)
	}
}

// Database records the state of the database.
func (h *Health) Database(err error) { h.Set("database", err) }

// List returns the errors of the parts that do not work.
func (h *Health) List() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.wrong)
}

// UntilDone calls f, which uses the database, until it succeeds or ctx ends.
func (h *Health) UntilDone(ctx context.Context, f func(context.Context) error) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		h.Database(err)
		if err == nil || !pause.For(ctx, wait) {
			return
		}
	}
}

// Repeatedly calls f, which does a bounded part of the work, with pauses for other writers, until
// no work is left. Then it waits.
func (h *Health) Repeatedly(ctx context.Context, every time.Duration, f func(context.Context) (more bool, err error)) {
	for more := true; more && ctx.Err() == nil; {
		begin := time.Now()
		h.UntilDone(ctx, func(ctx context.Context) (err error) {
			more, err = f(ctx)
			return err
		})
		if more {
			pause.For(ctx, max(betweenParts, time.Since(begin)))
		}
	}
	pause.For(ctx, every)
}
