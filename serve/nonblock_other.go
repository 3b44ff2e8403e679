//go:build !unix || solaris || aix

package serve

import "io/fs"

const nonblock = 0

// linked tells whether a file has another name, too: it is not known here.
func linked(fs.FileInfo) bool { return false }
