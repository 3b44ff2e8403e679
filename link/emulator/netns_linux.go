package emulator

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A space is a network namespace without a name: it exists as long as a process has its file open
// or runs in it, or a device is in it.
type space struct{ file *os.File }

// onThread calls f in a thread of its own, which f unlocks if it leaves it as it was; otherwise the thread ends. It
// is never the program's first thread: that cannot end, and /proc/self/net, which everybody reads, is its network.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		done := make(chan struct{})
		onThread(func() { defer close(done); f() })
		<-done // and keep the first thread from others until then
		runtime.UnlockOSThread()
	}()
}

// newSpace makes a network namespace.
func newSpace() (*space, error) {
	type made struct {
		f   *os.File
		err error
	}
	done := make(chan made)
	onThread(func() { // the thread has left the process's namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- made{nil, os.NewSyscallError("unshare", err)}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		done <- made{f, err}
	})
	m := <-done
	if m.err != nil {
		return nil, fmt.Errorf("network namespace: %w", m.err)
	}
	return &space{m.f}, nil
}

// in calls f in a thread that is in the namespace.
func (s *space) in(f func() error) error {
	done := make(chan error)
	onThread(func() {
		back, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		defer back.Close()
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("enter a network namespace: %w", os.NewSyscallError("setns", err))
			return
		}
		err = f()
		if e := unix.Setns(int(back.Fd()), unix.CLONE_NEWNET); e == nil {
			runtime.UnlockOSThread() // otherwise the thread dies with the goroutine
		}
		done <- err
	})
	return <-done
}

func (s *space) close() error { return s.file.Close() }

// A tun is a TUN device. It disappears when its file is closed.
type tun struct {
	file *os.File
	name string
}

// newTun makes a TUN device in the namespace of the calling thread, through the device file at path. The kernel hands
// super-packets over to it.
func newTun(path string) (*tun, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	t, err := setTun(fd)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return t, nil
}

func setTun(fd int) (*tun, error) {
	req, err := unix.NewIfreq("weir%d") // the kernel finds a number that is free
	if err != nil {
		return nil, err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, os.NewSyscallError("TUNSETIFF", err)
	}
	// Checksums are not computed: nothing gets broken on the way.
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4); err != nil {
		return nil, os.NewSyscallError("TUNSETOFFLOAD", err)
	}
	return &tun{file: os.NewFile(uintptr(fd), req.Name()), name: req.Name()}, nil
}
