package monitor

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

var (
	errNoListener = errors.New("nothing listens on the port here")
	errHidden     = errors.New("the process that listens on the port cannot be seen (another user's, or a container's)")
)

// servers returns the processes that hold a listening socket, and above them the parents of the same name.
func (f *procFS) servers(addr netip.Addr, port int) ([]int, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	inodes, err := f.listening(addr, port)
	if err != nil {
		return nil, fmt.Errorf("find the process that listens on port %d: %w", port, err)
	}
	if len(inodes) == 0 {
		return nil, fmt.Errorf("port %d: %w", port, errNoListener)
	}
	pids, err := f.holders(inodes)
	if err != nil {
		return nil, fmt.Errorf("find the process that listens on port %d: %w", port, err)
	}
	if len(pids) > 1 && pids[0] == 1 {
		pids = pids[1:] // an init that opened the socket for the service
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("port %d: %w", port, errHidden)
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

// listening returns the inodes of the sockets that listen on a port of addr, or on all addresses. An invalid addr
// represents any.
func (f *procFS) listening(addr netip.Addr, port int) (map[string]bool, error) {
	inodes := map[string]bool{}
	var errs []error
	for _, name := range [...]string{"net/tcp", "net/tcp6"} {
		file, err := os.Open(f.proc + "/" + name)
		if err == nil {
			err = parseSockets(file, addr, port, inodes)
			_ = file.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(errs) == 2 {
		return nil, errs[0]
	}
	return inodes, nil
}

// parseSockets reads /proc/net/tcp or tcp6. The kernel lists listening sockets first, so once one is found the
// thousands of connections that follow are not read.
func parseSockets(r io.Reader, addr netip.Addr, port int, inodes map[string]bool) error {
	const listen = "0A"
	lines := bufio.NewScanner(r)
	lines.Scan() // heading
	found := false
	for lines.Scan() {
		_, rest := cutField(lines.Bytes())
		local, rest := cutField(rest)
		_, rest = cutField(rest)
		state, rest := cutField(rest)
		if string(state) != listen {
			if found {
				return nil
			}
			continue
		}
		at, n, err := parseEndpoint(local)
		if err != nil {
			return err
		}
		if n != port || addr.IsValid() && !at.IsUnspecified() && at != addr.Unmap() {
			continue
		}
		inode, _ := cutField(skipFields(rest, 5))
		if _, ok := number(inode); !ok {
			return fmt.Errorf("inode in %q", clip(lines.Bytes()))
		}
		inodes[string(inode)] = true
		found = true
	}
	return lines.Err()
}

// parseEndpoint reads "0100007F:1F90": the address in words of the machine's byte order, little-endian on every
// machine that this is built for but s390x, and the port.
func parseEndpoint(b []byte) (netip.Addr, int, error) {
	host, port, _ := bytes.Cut(b, []byte{':'})
	n, err := strconv.ParseUint(string(port), 16, 16)
	raw, err2 := hex.DecodeString(string(host))
	if err != nil || err2 != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.Addr{}, 0, fmt.Errorf("socket address in %q", clip(b))
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr.Unmap(), int(n), nil
}

// holders returns the processes that have one of the sockets open, ascending.
func (f *procFS) holders(inodes map[string]bool) (pids []int, err error) {
	all, err := f.pids(nil)
	for _, pid := range all {
		if f.holds(pid, inodes) {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

func (f *procFS) holds(pid int, inodes map[string]bool) bool {
	dir, err := os.Open(f.ofPid(pid, "fd"))
	if err != nil {
		return false // it ended, or belongs to another user
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			link, _ := os.Readlink(dir.Name() + "/" + name)
			inode, found := strings.CutPrefix(link, "socket:[")
			if found && inodes[strings.TrimSuffix(inode, "]")] {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}
