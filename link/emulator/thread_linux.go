package emulator

import (
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// raisePriority has this process, which only carries packets, run when it must. Where clients or service use all CPU,
// packets would otherwise be tens of milliseconds late. It goes before all other processes, which takes little from
// them, as it nearly always waits. All its threads do, since each may hold what another needs to go on. For the same
// reason garbage, of which there is a little each second, is left where it is. Without the privilege to go first the
// packets are as late as the machine is busy; samples tell how late.
func raisePriority(links int) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(mostMemory * int64(links+1))
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks { // those that come later are like those that start them
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

// mostMemory is how much memory a mover may have for each link before it collects garbage after all: what can be
// under way takes 800 MB at most.
const mostMemory = 1 << 30
