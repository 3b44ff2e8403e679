//go:build !linux

package mover

import (
	"os"
)

// room is not asked here: a disk that becomes full says so.
func room(*os.File, int64) error { return nil }

// gather is a hint that other systems do not know.
func gather(*conn, int64, int) {}

// quiet cannot be asked here; a request that fails is sent again.
func quiet(c *conn) bool { return c.in.Buffered() == 0 }

// near is not known here.
func near(*conn) bool { return false }
