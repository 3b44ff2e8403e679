//go:build !unix || solaris || aix

package lock

import (
	"io/fs"
	"os"
)

// Alone returns ErrNone.
func Alone(*os.File) error { return ErrNone }

// Shared returns ErrNone.
func Shared(*os.File) error { return ErrNone }

// TryShared returns ErrNone.
func TryShared(*os.File) error { return ErrNone }

// Free returns ErrNone.
func Free(*os.File) error { return ErrNone }

// Mine returns an error: locks are unknown on this system.
func Mine(fs.FileInfo) bool { return false }
