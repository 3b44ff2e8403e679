package lab

import (
	"io"
	"os/exec"
	"syscall"
)

// sweepScript waits for what its standard input brings. A word: we have cleared
// away ourselves. Its end: we died without a chance to, and it does so.
const sweepScript = `read -r _ && exit 0
for try in 1 2 3 4 5 6 7 8 9 10; do
	find "$1" -mindepth "$2" -delete && exit 0
	sleep 0.3
done 2>/dev/null`

// A sweeper is a process that outlives us for as long as it takes to remove what a
// system had on disk.
type sweeper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// sweep starts the sweeper of a folder, which keep says to leave empty instead of
// removing it.
func sweep(dir string, keep bool) (*sweeper, error) {
	depth := "0"
	if keep {
		depth = "1"
	}
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "weir-lab-sweeper", dir, depth) //nolint:noctx // ends when we do
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &sweeper{cmd, in}, cmd.Start()
}

// end ends the sweeper when there is nothing left for it.
func (w *sweeper) end() {
	_, _ = io.WriteString(w.in, "done\n")
	_ = w.in.Close()
	_ = w.cmd.Wait()
}
