package monitor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// UseCores permanently restricts this process, including the kernel's work for it, to n processors.
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
	return pin(&shall)
}

// UseProcessors permanently restricts this process, including the kernel's work for it, to the
// processors with these numbers.
func UseProcessors(numbers []int) error {
	var shall, may unix.CPUSet
	for _, n := range numbers {
		if n < 0 || n >= len(shall)*64 {
			return fmt.Errorf("processor %d: use a number from 0 to %d", n, len(shall)*64-1)
		}
		shall.Set(n)
	}
	if err := pin(&shall); errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("this machine has no processor %s that this process may use", strings.Trim(fmt.Sprint(numbers), "[]"))
	} else if err != nil {
		return err
	}
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	for _, n := range numbers { // the kernel ignores missing processors
		if !may.IsSet(n) {
			return fmt.Errorf("this machine has no processor %d that this process may use", n)
		}
	}
	runtime.GOMAXPROCS(shall.Count())
	return nil
}

// pin moves all threads of this process to the processors of shall.
func pin(shall *unix.CPUSet) error {
	for done := map[int]bool{}; ; { // new threads inherit the restriction, existing threads need a call each
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
			if err := unix.SchedSetaffinity(id, shall); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("sched_setaffinity", err)
			}
			done[id] = true
		}
		if len(done) == before {
			return nil
		}
	}
}
