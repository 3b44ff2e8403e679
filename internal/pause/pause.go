// Package pause waits for a while, unless a context ends first.
package pause

import (
	"context"
	"time"
)

// For waits for d, and returns false if ctx ends first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
