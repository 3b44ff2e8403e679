package command

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A peak finds out how much memory a program had at most. The kernel's own
// figure, ru_maxrss, cannot be less than ours: a process that was just made
// shares our memory until it executes the program, and what it had then counts
// (exec_mmap in Linux' fs/exec.c).
type peak struct {
	ours int64 // bytes, at least what we had when the program was started
	seen int64 // bytes of the largest process that was looked at
}

// newPeak is called after the program was started.
func newPeak() *peak { return &peak{ours: highWater("self")} }

// mostSeen bounds the processes of a program that are looked at.
const mostSeen = 64

// look looks at a running program and its descendants.
func (p *peak) look(pid int) {
	for all := []string{strconv.Itoa(pid)}; len(all) > 0 && len(all) < mostSeen; all = all[1:] {
		p.seen = max(p.seen, highWater(all[0]))
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%s/task/%[1]s/children", all[0])) // gone, or not known to this kernel
		all = append(all, strings.Fields(string(children))...)
	}
}

// of returns the most memory of one process, in bytes, 0 if it is not known;
// kib is what the kernel says.
func (p *peak) of(kib int64) int64 {
	if said := kib << 10; said > p.ours+p.ours/16+1<<20 { // counters of memory are not exact
		return said
	}
	return p.seen
}

// highWater returns the most resident memory that a process has had, in bytes, 0
// if nobody knows.
func highWater(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	line, _, _ := bytes.Cut(after, []byte(" kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
