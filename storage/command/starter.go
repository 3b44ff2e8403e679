package command

import (
	"os"
	"runtime"
)

// A starter starts processes on a thread of its own that lives until close:
// the kernel ties "end when your parent dies" to the thread that started a
// process, and Go's other threads may end at any time.
type starter struct {
	jobs chan job
	done chan struct{}
}

type job struct {
	path  string
	argv  []string
	attr  *os.ProcAttr
	reply chan<- started
}

type started struct {
	process *os.Process
	err     error
}

func newStarter() *starter {
	s := &starter{jobs: make(chan job), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.done)
	for j := range s.jobs {
		p, err := os.StartProcess(j.path, j.argv, j.attr)
		j.reply <- started{p, err}
	}
}

func (s *starter) start(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	reply := make(chan started, 1)
	s.jobs <- job{path, argv, attr, reply}
	got := <-reply
	return got.process, got.err
}

// close ends the thread; nothing is started afterwards.
func (s *starter) close() {
	close(s.jobs)
	<-s.done
}
