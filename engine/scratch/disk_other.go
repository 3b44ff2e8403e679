//go:build !linux

package scratch

import "io/fs"

// ours tells that nobody knows whose a folder is, so that it is left alone.
func ours(fs.FileInfo) bool { return false }

// On tells that nobody knows.
func On(string) Disk { return Disk{Free: -1} }
