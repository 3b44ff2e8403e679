//go:build !unix

package serve

import "time"

func usage() (user, system time.Duration, rss int64, ok bool) { return 0, 0, 0, false }
