package monitor

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"
)

// A procStat has the fields of /proc/PID/stat.
type procStat struct {
	pid, ppid, pgrp int
	comm            []byte // 15 bytes at most; good until the next read
	dead            bool   // ended, not yet waited for
	kernel          bool   // a thread of the kernel
	start           int64  // ticks after boot; with pid it names the process for ever
	threads         int
	rss             int64 // bytes
	self, kids      usage // CPU only; kids: of the children that were waited for
}

// kernelThread is PF_KTHREAD of Linux's include/linux/sched.h, in a process's flags.
const kernelThread = 0x00200000

// A usage is the usage of a process: CPU time in microseconds, and bytes.
type usage struct{ user, system, read, written int64 }

func (u usage) plus(v usage) usage {
	return usage{u.user + v.user, u.system + v.system, u.read + v.read, u.written + v.written}
}

func (u usage) minus(v usage) usage {
	return usage{u.user - v.user, u.system - v.system, u.read - v.read, u.written - v.written}
}

// most returns the larger value of each field.
func (u usage) most(v usage) usage {
	return usage{max(u.user, v.user), max(u.system, v.system), max(u.read, v.read), max(u.written, v.written)}
}

// parseProcStat reads /proc/PID/stat. The name in parentheses may hold anything, parentheses and line ends among it.
func parseProcStat(b []byte) (procStat, error) {
	var s procStat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return s, fmt.Errorf("no program name in %q", clip(b))
	}
	s.comm = b[open+1 : end]
	pid, _, ok := cutNumber(b[:open])
	state, rest := cutField(b[end+1:])
	var ppid, pgrp int64
	if !ok || len(state) != 1 || numbers(rest, &ppid, &pgrp) < 2 {
		return s, fmt.Errorf("start of %q", clip(b))
	}
	var utime, stime, cutime, cstime, threads, start, rss, skip int64
	rest = skipFields(rest, 5) // ppid to the terminal's group, which may be -1
	var flags int64
	if numbers(rest, &flags) < 1 {
		return s, fmt.Errorf("flags in %q", clip(b))
	}
	rest = skipFields(rest, 5) // these, and four counts of page faults
	if numbers(rest, &utime, &stime, &cutime, &cstime) < 4 {
		return s, fmt.Errorf("CPU times in %q", clip(b))
	}
	rest = skipFields(rest, 6) // these and priority, nice, which may be negative
	if numbers(rest, &threads, &skip, &start, &skip, &rss) < 5 || threads > 1<<30 || rss > 1<<50 {
		return s, fmt.Errorf("threads, start and memory in %q", clip(b))
	}
	if max(utime, stime, cutime, cstime) > 1<<48 || max(pid, ppid, pgrp) > 1<<30 {
		return s, fmt.Errorf("a value out of all bounds in %q", clip(b))
	}
	const us = 10_000 // microseconds a tick
	s.pid, s.ppid, s.pgrp = int(pid), int(ppid), int(pgrp)
	s.dead = state[0] == 'Z' || state[0] == 'X'
	s.kernel = flags&kernelThread != 0
	s.start, s.threads, s.rss = start, int(threads), rss*int64(os.Getpagesize())
	s.self = usage{user: utime * us, system: stime * us}
	s.kids = usage{user: cutime * us, system: cstime * us}
	return s, nil
}

// parseProcIO reads /proc/PID/io.
func parseProcIO(b []byte) (read, written int64, err error) {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		name, rest := cutField(line)
		n, _, ok := cutNumber(rest)
		switch string(name) {
		case "rchar:":
			read = n
		case "wchar:":
			written = n
			if ok {
				return read, written, nil
			}
		default:
			continue
		}
		if !ok {
			return 0, 0, fmt.Errorf("number in %q", clip(line))
		}
	}
	return 0, 0, fmt.Errorf("no rchar and wchar in it")
}

// parseIgnored reports, from /proc/PID/status, whether a process ignores the end of its children,
// so that the kernel discards their usage.
func parseIgnored(b []byte) bool {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		mask, found := bytes.CutPrefix(line, []byte("SigIgn:"))
		if !found {
			continue
		}
		mask = bytes.TrimSpace(mask)
		const place = 4 // hex digit from the right that holds bit 16: SIGCHLD is 17
		return len(mask) > place && strings.IndexByte("13579bdfBDF", mask[len(mask)-1-place]) >= 0
	}
	return false
}

// programNames returns the names of a process besides its comm: the last part of argv[0] and of its
// executable's path. Each can be "".
func (f *procFS) programNames(pid int) (argv0, exe string) {
	if b, err := f.readPid(pid, "cmdline"); err == nil && len(b) > 0 {
		first, _, _ := bytes.Cut(b, []byte{0})
		argv0 = path.Base(string(first))
	}
	if link, err := os.Readlink(f.ofPid(pid, "exe")); err == nil {
		exe = strings.TrimSuffix(path.Base(link), " (deleted)")
	}
	return argv0, exe
}

// calledBy reports whether a process goes by name.
func calledBy(name, comm, argv0, exe string) bool {
	const longest = 15 // bytes of a name that the kernel keeps
	if comm == name || argv0 == name || exe == name {
		return true
	}
	return len(name) > longest && comm == name[:longest] && exe == "" && argv0 == ""
}
