//go:build unix && !solaris && !aix

package serve

import "golang.org/x/sys/unix"

const nonblock = unix.O_NONBLOCK
