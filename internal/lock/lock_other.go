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

// Mine tells that nobody knows whose a file is.
func Mine(fs.FileInfo) bool { return false }
