package monitor

import "golang.org/x/sys/unix"

// A coreSet is a set of cores. The zero value is empty.
type coreSet struct{ unix.CPUSet }

func (s *coreSet) join(o *coreSet) {
	for i := range s.CPUSet {
		s.CPUSet[i] |= o.CPUSet[i]
	}
}

// allowedCores returns on which cores a process may run; ok is false if it is unknown.
func (f *procFS) allowedCores(pid int) (set coreSet, ok bool) {
	if !f.real() {
		return set, false
	}
	return set, unix.SchedGetaffinity(pid, &set.CPUSet) == nil
}
