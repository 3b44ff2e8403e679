//go:build !unix || solaris || aix

package serve

import (
	"io/fs"
	"time"
)

const nonblock = 0

// linked tells whether a file has another name, too: it is not known here.
func linked(fs.FileInfo) bool { return false }

func usage() (user, system time.Duration, rss int64, ok bool) { return 0, 0, 0, false }
