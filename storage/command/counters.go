package command

import (
	"slices"

	"github.com/prometheus/procfs"
)

// counters returns the bytes that a process has read and written with read and
// write calls: of files, pipes and devices, not of sockets. The process runs or
// has ended and is not reaped. ok is false where there is no /proc.
func counters(pid int) (read, written int64, ok bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, false
	}
	io, err := p.IO()
	return int64(io.RChar), int64(io.WChar), err == nil
}

// holds reports whether a process has the file open.
func holds(pid int, file string) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	open, err := p.FileDescriptorTargets()
	return err == nil && slices.Contains(open, file)
}
