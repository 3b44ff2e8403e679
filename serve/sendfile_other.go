//go:build !linux

package serve

import "os"

func (c *conn) sendHeld(bool) error { return c.release() }

func (c *conn) sendFile(*os.File, int64, int64) (int64, error) { return 0, errNoSendfile }
