package emulator

import (
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// raisePriority makes the kernel run this process, which only carries packets, as soon as it is
// runnable. If clients or service use all CPU time, packets would otherwise be tens of milliseconds
// late. It has priority over all other processes, which takes little from them, as it nearly always
// waits. All its threads have the priority, since each may hold a lock that another needs. For the
// same reason garbage, of which there is a little each second, is not collected. Without the
// privilege for this priority the packets are late on a busy machine; samples contain the delay.
func raisePriority(links int) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(mostMemory * int64(links+1))
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks { // later threads inherit the priority of the threads that start them
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
		if unix.SchedSetAttr(id, &attr, 0) != nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, -20)
		}
	}
}

// mostMemory is the memory for each link that a mover may have before it collects garbage after
// all: the packets on their way take 800 MB at most.
const mostMemory = 1 << 30
