package monitor

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// UseCores restricts this process, and what the kernel does for it, to n processors for
// good.
func UseCores(n int) error {
	runtime.GOMAXPROCS(min(n, runtime.NumCPU()))
	var may, shall unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	for cpu := len(may)*64 - 1; cpu >= 0 && shall.Count() < n; cpu-- { // from the last on: the first has more to do
		if may.IsSet(cpu) {
			shall.Set(cpu)
		}
	}
	for done := map[int]bool{}; ; { // threads inherit it, but for those that were there
		before := len(done)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &shall); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("sched_setaffinity", err)
			}
			done[id] = true
		}
		if len(done) == before {
			return nil
		}
	}
}
