package mover

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weir/internal/unit"
	"weir/transfer"
)

// room looks whether the file system of f has n bytes left, so that a copy that
// cannot end does not begin.
func room(f *os.File, n int64) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil || s.Blocks == 0 {
		return nil //nolint:nilerr // a file system that does not tell
	}
	free := int64(s.Bavail) * s.Bsize //nolint:gosec // no disk has 2^63 bytes
	if n <= free {
		return nil
	}
	return failf(transfer.DestFull, "%s are needed, %s are free at the destination", unit.Bytes(float64(n)), fmt.Sprint(unit.Bytes(float64(free))))
}
