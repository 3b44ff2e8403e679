package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// StatusBytes returns an amount of memory of a process in bytes, by its name in /proc/PID/status, such as "VmRSS:".
func StatusBytes(pid int, what string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, what); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", what)
}
