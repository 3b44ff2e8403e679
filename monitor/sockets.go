package monitor

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// listening returns the inodes of the sockets that listen on a port of addr,
// or on all addresses. An invalid addr stands for any.
func (f *procFS) listening(addr netip.Addr, port int) (map[string]bool, error) {
	inodes := map[string]bool{}
	var first error
	readable := false
	for _, name := range [...]string{"net/tcp", "net/tcp6"} {
		file, err := os.Open(f.proc + "/" + name)
		if err == nil {
			err = parseSockets(file, addr, port, inodes)
			_ = file.Close()
		}
		if err == nil {
			readable = true
		} else if first == nil {
			first = fmt.Errorf("%s: %w", name, err)
		}
	}
	if !readable {
		return nil, first
	}
	return inodes, nil
}

// parseSockets reads /proc/net/tcp or tcp6. The kernel lists listening sockets
// first, so once one is found the thousands of connections that follow are
// not read.
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

// parseEndpoint reads "0100007F:1F90": the address in words of the machine's
// byte order, little-endian on every machine that this is built for but s390x,
// and the port.
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

// holders returns the processes that have one of the sockets open, ascending,
// and how many processes could not be looked into.
func (f *procFS) holders(inodes map[string]bool) (pids []int, hidden int, err error) {
	all, err := f.pids(nil)
	if err != nil {
		return nil, 0, err
	}
	for _, pid := range all {
		holds, err := f.holds(pid, inodes)
		switch {
		case holds:
			pids = append(pids, pid)
		case os.IsPermission(err):
			hidden++
		}
	}
	return pids, hidden, nil
}

func (f *procFS) holds(pid int, inodes map[string]bool) (bool, error) {
	dir, err := os.Open(f.ofPid(pid, "fd"))
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			link, _ := os.Readlink(dir.Name() + "/" + name)
			inode, found := strings.CutPrefix(link, "socket:[")
			if found && inodes[strings.TrimSuffix(inode, "]")] {
				return true, nil
			}
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
