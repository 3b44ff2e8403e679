//go:build unix

package mover

import "syscall"

// nonblock keeps a named pipe from blocking whoever opens it.
const nonblock = syscall.O_NONBLOCK
