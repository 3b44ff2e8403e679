// Package lock has the kernel keep two processes from using one file or folder
// at once. A lock is given back when its file is closed, also by the end of the
// process, however that ends.
package lock

import "errors"

var (
	// ErrTaken tells that another process has the lock.
	ErrTaken = errors.New("another process has locked it")
	// ErrNone tells that this system has no such locks.
	ErrNone = errors.New("this system has no locks of files")
)
