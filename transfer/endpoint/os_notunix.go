//go:build !unix || solaris || aix

package endpoint

import "io/fs"

const nonblock = 0

// linked is not known here.
func linked(fs.FileInfo) bool { return false }
