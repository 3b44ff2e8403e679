package command

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// counters returns what the kernel counted for a process that runs or has
// ended but is not reaped: bytes that it read and wrote with read and write
// calls, of files, pipes and devices, not of sockets.
func counters(pid int) (read, written int64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, 0, false
	}
	for l := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		switch name {
		case "rchar":
			read, ok = n, true
		case "wchar":
			written = n
		}
	}
	return read, written, ok
}

// holds says whether a process has the file open.
func holds(pid int, file string) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if to, err := os.Readlink(dir + fd.Name()); err == nil && to == file {
			return true
		}
	}
	return false
}
