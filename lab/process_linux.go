package lab

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// awaitExit waits for the end of a process and does not reap it: until then its number cannot be given to another one.
func awaitExit(p *os.Process) {
	for unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// attributes returns how the process is started: as the leader of a group that ends with this process, in its namespaces.
func (p *process) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: p.endSignal()}
	if p.apart {
		setApart(attr)
	}
	if p.wire != nil {
		attr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return attr
}

// setApart gives a program, of which it becomes the first process, namespaces of mounts, processes and host name, and
// makes it root there if it is not root already.
func setApart(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
	attr.Pdeathsig = syscall.SIGKILL // the first process of a namespace receives no other signal
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
}

// useGroup makes a program start in the control group of version 2 whose folder is open.
func useGroup(attr *syscall.SysProcAttr, folder *os.File) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(folder.Fd())
}
