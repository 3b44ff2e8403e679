//go:build !linux

package mover

import "os"

// room is not asked here: a disk that becomes full says so.
func room(*os.File, int64) error { return nil }
