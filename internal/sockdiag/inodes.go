package sockdiag

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Inodes returns the inodes of the sockets that a process has open, sockets of other protocols among
// them. It needs the rights of the process's user. The systems other than Linux have no /proc/PID/fd.
func Inodes(pid int) (map[uint32]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the open files of process %d: %w", pid, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list the open files of process %d: %w", pid, err)
	}
	all := map[uint32]bool{}
	for _, name := range names {
		target, err := os.Readlink(dir + "/" + name)
		if err != nil {
			continue // closed in between
		}
		if n, ok := strings.CutPrefix(target, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(n, "]"), 10, 32); err == nil {
				all[uint32(inode)] = true
			}
		}
	}
	return all, nil
}
