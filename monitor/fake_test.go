package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A fakeProc is a /proc made by a test. Files are changed in place, so that a file that stays open
// shows new content.
type fakeProc struct {
	t    testing.TB
	root string
}

func newFakeProc(t testing.TB) *fakeProc {
	f := &fakeProc{t, t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "weir-proc-"); err == nil { // memory is faster than a disk
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		f.root = dir
	}
	f.copyFrom("testdata/proc", "stat", "loadavg", "meminfo", "diskstats", "net/dev", "net/snmp", "net/netstat", "net/tcp", "net/tcp6")
	return f
}

func (f *fakeProc) copyFrom(dir string, names ...string) {
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.t.Fatal(err)
		}
		f.write(name, string(b))
	}
}

func (f *fakeProc) write(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// A fakeProcess is one process of a fakeProc; times are in ticks.
type fakeProcess struct {
	pid, ppid, pgrp int
	comm            string
	state           string
	start           int64
	user, system    int64
	kidsUser        int64
	kidsSystem      int64
	read, written   int64
	ignores         bool // SIGCHLD
	kernel          bool
}

func (f *fakeProc) process(p fakeProcess) {
	f.t.Helper()
	if p.state == "" {
		p.state = "S"
	}
	flags := 4194304
	if p.kernel {
		flags |= kernelThread
	}
	dir := fmt.Sprint(p.pid)
	f.write(dir+"/stat", fmt.Sprintf("%d (%s) %s %d %d 1 0 -1 %d 9 0 0 0 %d %d %d %d 20 -5 3 0 %d 3133440 408 1844\n",
		p.pid, p.comm, p.state, p.ppid, p.pgrp, flags, p.user, p.system, p.kidsUser, p.kidsSystem, p.start))
	f.write(dir+"/io", fmt.Sprintf("rchar: %d\nwchar: %d\nsyscr: 1\nsyscw: 1\n", p.read, p.written))
	mask := "0000000000001000"
	if p.ignores {
		mask = "0000000000011000"
	}
	f.write(dir+"/status", "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t"+mask+"\nSigCgt:\t0\n")
	f.write(dir+"/cmdline", "/usr/sbin/"+p.comm+"\x00-x\x00")
}

func (f *fakeProc) remove(pid int) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.root, fmt.Sprint(pid))); err != nil {
		f.t.Fatal(err)
	}
}

// steadyClock advances by a second at every call.
func steadyClock() func() moment {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 0
	return func() moment {
		n++
		return moment{start.Add(time.Duration(n) * time.Second), time.Duration(n) * time.Second}
	}
}
