//go:build !linux

package durable

import "os"

// RenameNew gives a file below root another name, never instead of another file:
// the error is fs.ErrExist then. The folders need not be open.
func RenameNew(root *os.Root, _, _ *os.File, from, to string) error { return link(root, from, to) }
