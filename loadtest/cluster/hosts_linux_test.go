package cluster

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"weir/internal/require"
)

// A worker in a container counts under its process id on this machine; a worker in a container of
// another machine does not count.
func TestAWorkerInAContainer(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sleep", "60")
	id := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID, UidMappings: id}
	if err := c.Start(); err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	inside, err := os.Readlink("/proc/" + strconv.Itoa(c.Process.Pid) + "/ns/pid")
	require.NoError(t, err)
	here := thisMachine()
	d := &Server{run: &run{controller: &controller{here: here}, sessions: map[string]*session{}}}
	machines := map[string]machine{"here": here, "container": {here.boot, inside}, "none": {here.boot, "pid:[1]"}, "other": {"other", inside}}
	for name, on := range machines {
		s := newSession(0)
		if s.worker = (&remote{on: on, pid: 1}); name == "here" {
			s.worker.pid = os.Getpid()
		}
		d.run.sessions[name] = s
	}
	want := []int{os.Getpid(), c.Process.Pid}
	slices.Sort(want)
	for range 2 {
		got := d.Pids()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
