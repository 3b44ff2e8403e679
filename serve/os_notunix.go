//go:build !unix || solaris || aix

package serve

import "time"

const nonblock = 0

func usage() (user, system time.Duration, rss int64, ok bool) { return 0, 0, 0, false }
