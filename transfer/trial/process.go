package trial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is the time limit for a process to report its address, and to end.
const patience = time.Minute

// A Process is a coordinator or an agent in its own process. It ends when this process ends, in any
// way. Its methods must not be called by several goroutines at once.
type Process struct {
	name    string
	program []string
	args    []string
	env     []string
	log     io.Writer
	begin   func(*exec.Cmd) error // starts it in its namespace; nil: in the namespace of this process

	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.Closer
	ended chan struct{} // closed when cmd has
	err   error         // its result
}

// Pid returns the process's number, or 0 if it does not run.
func (p *Process) Pid() int {
	if !p.Running() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Start starts the process, again if it has ended, and waits until it reports its address.
func (p *Process) Start(ctx context.Context) error {
	if p.Running() {
		return fmt.Errorf("%s runs already", p.name)
	}
	args := append(p.program[1:len(p.program):len(p.program)], p.args...)
	cmd := exec.Command(p.program[0], args...)
	cmd.Args[0] = "weir"
	cmd.Env, cmd.Stderr = p.env, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of the terminal's Ctrl-C: this process decides when it ends
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begin := (*exec.Cmd).Start
	if p.begin != nil {
		begin = p.begin
	}
	if err := begin(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	first, ended := make(chan string, 1), make(chan struct{})
	p.mu.Lock()
	p.cmd, p.in, p.ended = cmd, in, ended
	p.mu.Unlock()
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r)
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(ended)
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case line := <-first:
		if line != "" {
			return nil
		}
		<-ended
		return fmt.Errorf("%s ended at once: %w", p.name, p.err)
	case <-late.C:
		return errors.Join(fmt.Errorf("%s says nothing", p.name), p.Kill())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Kill())
	}
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() error { return p.end(os.Kill) }

// Stop ends the process as a service manager does, by SIGTERM, and waits for its end. It fails if
// the exit code is not 0.
func (p *Process) Stop() error {
	if !p.Running() {
		return nil
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("%s was to end: %w", p.name, p.err)
	}
	return nil
}

func (p *Process) end(how os.Signal) error {
	if !p.Running() {
		return nil
	}
	p.mu.Lock()
	cmd, in, ended := p.cmd, p.in, p.ended
	p.mu.Unlock()
	if err := cmd.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not end within %v: it was killed", p.name, patience)
	}
	_ = in.Close() // it is not read any more
	return nil
}

// Restart ends the process, if it runs, and starts it again.
func (p *Process) Restart(ctx context.Context) error {
	return errors.Join(p.Kill(), p.Start(ctx))
}
