// Package pause waits for a while, unless a context ends first.
package pause

import (
	"context"
	"net/http"
	"strconv"
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

// After returns the pause that a server requests with Retry-After (RFC 9110, section 10.2.3:
// seconds, or a date), from now on, limited to most. It is 0 if text is neither.
func After(text string, now time.Time, most time.Duration) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.Atoi(text); err == nil {
		d = min(time.Duration(max(n, 0)), most/time.Second+1) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), most)
}
