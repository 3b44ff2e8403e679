package screen

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// changed receives a signal when the size of the terminal changes, or when the process
// is continued.
func changed() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGWINCH, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}

func resumed(s os.Signal) bool { return s == syscall.SIGCONT }

// front reports whether this process is in the foreground of its terminal.
func (s *Screen) front() bool {
	group, err := unix.IoctlGetInt(int(s.term.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// Shield keeps this process running after the loss of its terminal: writing to a pipe without a
// reader returns an error, and writing from the background does not suspend it. release undoes it.
func Shield() (release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	signal.Ignore(syscall.SIGTTOU)
	return func() {
		signal.Stop(c)
		signal.Reset(syscall.SIGTTOU)
	}
}
