//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// changed tells when the terminal has another size, or when we go on after we
// were stopped.
func changed() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGWINCH, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}

func resumed(s os.Signal) bool { return s == syscall.SIGCONT }

// front tells whether this process is in the foreground of its terminal.
// Another terminal than ours has no foreground that we know of.
func (s *Screen) front() bool {
	group, err := unix.IoctlGetInt(int(s.term.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// Shield keeps what happens to a terminal from ending this process: a pipe
// that nobody reads any more is an error of who writes, and writing from the
// background stops nobody. release undoes it.
func Shield() (release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	signal.Ignore(syscall.SIGTTOU)
	return func() {
		signal.Stop(c)
		signal.Reset(syscall.SIGTTOU)
	}
}
