//go:build !linux

package monitor

// A coreSet is a set of cores. The zero value is empty.
type coreSet struct{}

func (*coreSet) join(*coreSet) {}

// Count returns the number of cores in the set.
func (*coreSet) Count() int { return 0 }

// allowedCores returns on which cores a process may run; ok is false if it is unknown.
func (*procFS) allowedCores(int) (coreSet, bool) { return coreSet{}, false }
