package monitor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Errors of [Listeners].
var (
	// ErrNoListener says that nothing on this machine listens on the port.
	ErrNoListener = errors.New("nothing listens on the port here")
	// ErrHidden says that something does, but that the process cannot be
	// seen: it belongs to another user, or it is in a container.
	ErrHidden = errors.New("who listens on the port cannot be seen (another user's process, or a container's)")
)

// Listeners returns the ids of the processes of the service on a TCP port of
// this machine, ascending: those that have the listening socket open, their
// parents of the same name, and all that descend from these. Errors are
// [ErrNoListener], [ErrHidden], or about /proc itself.
func Listeners(port int) ([]int, error) {
	f := newProcFS("", "")
	defer f.close()
	return f.listeners(port)
}

func (f *procFS) listeners(port int) ([]int, error) {
	roots, err := f.servers(netip.Addr{}, port)
	if err != nil {
		return nil, err
	}
	all, err := f.pids(nil)
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, pid := range all {
		if s, err := f.stat(pid); err == nil {
			children[s.ppid] = append(children[s.ppid], pid)
		}
	}
	var out []int
	for todo := roots; len(todo) > 0; todo = todo[1:] {
		if slices.Contains(out, todo[0]) {
			continue
		}
		out = append(out, todo[0])
		if todo[0] != 1 {
			todo = append(todo, children[todo[0]]...)
		}
	}
	slices.Sort(out)
	return out, nil
}

// servers returns the processes that hold a listening socket, and above them
// the parents of the same name.
func (f *procFS) servers(addr netip.Addr, port int) ([]int, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	inodes, err := f.listening(addr, port)
	if err != nil {
		return nil, fmt.Errorf("find who listens on port %d: %w", port, err)
	}
	if len(inodes) == 0 {
		return nil, fmt.Errorf("port %d: %w", port, ErrNoListener)
	}
	pids, _, err := f.holders(inodes)
	if err != nil {
		return nil, fmt.Errorf("find who listens on port %d: %w", port, err)
	}
	if len(pids) > 1 && pids[0] == 1 {
		pids = pids[1:] // an init that opened the socket for the service
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("port %d: %w", port, ErrHidden)
	}
	return f.withParents(pids), nil
}

// withParents adds to each process the chain of its parents that have its name.
func (f *procFS) withParents(pids []int) []int {
	for i := 0; i < len(pids); i++ { // grows on the way
		s, err := f.stat(pids[i])
		if err != nil || s.ppid <= 1 || slices.Contains(pids, s.ppid) {
			continue
		}
		name := string(s.comm)
		if parent, err := f.stat(s.ppid); err == nil && string(parent.comm) == name {
			pids = append(pids, parent.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// stat reads /proc/PID/stat; the name in it is good until the next read.
func (f *procFS) stat(pid int) (procStat, error) {
	b, err := f.readPid(pid, "stat")
	if err != nil {
		return procStat{}, err
	}
	return parseProcStat(b)
}
