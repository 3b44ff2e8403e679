//go:build !linux

package serve

import (
	"os"
	"syscall"
)

func (c *conn) sendHeld(bool) error { return c.release() }

func (c *conn) sendFile(*os.File, int64, int64) (int64, error) { return 0, errNoSendfile }

// unpaced leaves the listener as it is: the behavior of other systems on loopback is unknown.
func unpaced(string, string, syscall.RawConn) error { return nil }
