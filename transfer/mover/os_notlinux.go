//go:build !linux

package mover

import (
	"os"
)

// room does not check here: the write fails if the disk is full.
func room(*os.File, int64) error { return nil }

// gather does nothing: other systems do not support the hint.
func gather(*conn, int64, int) {}

// quiet cannot check the connection here; a request that fails is sent again.
func quiet(c *conn) bool { return c.in.Buffered() == 0 }

// near always returns false: the round trip is not known here.
func near(*conn) bool { return false }
