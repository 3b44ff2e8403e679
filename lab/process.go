package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A question returns nil when a server gives a right answer of its protocol.
type question func(ctx context.Context) error

// A process is one server: a program that leads its own process group.
type process struct {
	name   string
	argv   []string
	env    []string
	dir    string         // working folder
	log    string         // file for standard output and standard error
	user   int            // user and group id, -1 for the ids of this process
	server string         // name of the System's Server it belongs to, if any
	stale  string         // file that the program makes, or that reports its network to it: removed before it starts
	apart  bool           // in namespaces of its own (mounts, processes, host name): all that it started ends with it
	home   string         // folder in which only it and its children work, if these leave its group
	end    syscall.Signal // signal that requests its end; 0 is SIGTERM
	wire   *wire          // to a network of its own, only for separated processes
	groups []string       // folders of the control groups in which it runs
	ask    question
	lost   func(name string, why error) // called when the process ends by itself after it has responded; may be nil

	pid    int
	done   chan struct{} // closed when the process and its group have ended
	exit   error         // valid after done
	wanted atomic.Bool   // it has responded and has not been stopped since
}

func (p *process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// start runs the program and returns when it has a process id.
func (p *process) start() error {
	if p.running() {
		return fmt.Errorf("%s is already running", p.name)
	}
	if p.stale != "" {
		if err := os.Remove(p.stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	out, err := os.OpenFile(p.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, out, out
	cmd.SysProcAttr = p.attributes()
	if p.user >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.user), Gid: uint32(p.user)}
	}
	started := make(chan error)
	p.done = make(chan struct{})
	go p.mind(cmd, out, started)
	if err := <-started; err != nil || p.wire == nil {
		return err
	}
	err = p.wire.to(p.pid)
	if err == nil {
		err = os.WriteFile(p.stale, nil, 0o600)
	}
	if err != nil {
		p.stop(0)
	}
	return err
}

// namespaces is the result of find for processes in namespaces of their own.
const namespaces = "namespaces"

// tryApart returns nil if processes can be separated here.
func tryApart() error {
	cmd := exec.Command("/bin/sh", "-c", "mount --make-rslave / && mount -t proc proc /proc")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	setApart(cmd.SysProcAttr)
	if out, err := cmd.CombinedOutput(); err != nil {
		return &MissingError{Program: namespaces, Why: fmt.Sprintf("this machine gives its users no namespaces of mounts and processes (%s): "+
			"only root can start this here", strings.TrimSpace(err.Error()+" "+string(out)))}
	}
	return nil
}

// mind starts cmd, waits for its end and ends the remaining processes of its group. It keeps its
// thread the whole time: the kernel ties the parent-death signal of cmd to the thread that started
// it.
func (p *process) mind(cmd *exec.Cmd, out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer out.Close()
	release, err := enter(p.groups, cmd)
	if err == nil {
		err = errors.Join(cmd.Start(), release())
	}
	if err != nil {
		p.exit = err
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	awaitExit(cmd.Process)
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	for deadline := time.Now().Add(dying); (alive(p.pid) || p.orphans()) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	p.exit = cmd.Wait()
	switch {
	case p.exit == nil:
		p.exit = errors.New("exit status 0")
	case strings.Contains(p.exit.Error(), syscall.SIGKILL.String()) && overMemory(p.groups):
		p.exit = fmt.Errorf("%w by the kernel: it needed more than its --memory-limit", p.exit)
	}
	if p.wanted.Swap(false) && p.lost != nil {
		p.lost(p.name, p.exit)
	}
}

// overMemory reports whether the kernel killed a process of control groups because they needed more than their memory.
func overMemory(groups []string) bool {
	for _, folder := range groups {
		for _, file := range []string{"memory.oom_control", "memory.events"} { // of versions 1 and 2
			b, _ := os.ReadFile(filepath.Join(folder, file))
			for line := range strings.Lines(string(b)) {
				if n, ok := strings.CutPrefix(line, "oom_kill "); ok && strings.TrimSpace(n) != "0" {
					return true
				}
			}
		}
	}
	return false
}

// orphans reports whether there are children that have left the group, after telling them to end.
func (p *process) orphans() (found bool) {
	if p.home == "" {
		return false
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, d := range dirs {
		if at, err := os.Readlink(d); err == nil && at == p.home {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it has ended
		}
	}
	return found
}

// dying limits the time that killed processes may need to release their ports.
const dying = 5 * time.Second

// alive reports whether a process group has members that run. Zombies do not count:
// they hold nothing.
func alive(pgid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // state, parent, group
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" {
			return true
		}
	}
	return false
}

func (p *process) signal(sig syscall.Signal) error {
	if !p.running() {
		return nil
	}
	err := syscall.Kill(-p.pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// endSignal returns the signal that requests the end of the process.
func (p *process) endSignal() syscall.Signal { return cmp.Or(p.end, syscall.SIGTERM) }

// stop ends the process: with its signal and that much patience, then with SIGKILL. It returns when
// it has ended.
func (p *process) stop(patience time.Duration) {
	p.wanted.Store(false)
	if !p.running() {
		return
	}
	if patience > 0 && !p.apart { // which takes all that it started along, and there is no output
		_ = p.signal(p.endSignal())
		_ = p.signal(syscall.SIGCONT) // a stopped process would never hear it
		select {
		case <-p.done:
			return
		case <-time.After(patience):
		}
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// wait polls the server until it responds, has ended, or ctx is over.
func (p *process) wait(ctx context.Context) error {
	err := poll(ctx, 5*time.Millisecond, time.Second, p.ask, p.done)
	switch {
	case !p.running():
		return fmt.Errorf("%s ended: %w", p.name, p.exit)
	case err != nil:
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.wanted.Store(true)
	return nil
}

// poll repeats the question until it succeeds, ctx is over or over is closed, with a time limit for
// each attempt.
func poll(ctx context.Context, every, bound time.Duration, ask question, over <-chan struct{}) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, bound)
		err := ask(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-over:
			return err
		case <-ctx.Done():
			return fmt.Errorf("no right answer in time: %w", err)
		case <-tick.C:
		}
	}
}

// lastLines returns the end of a log, each line indented on a line of its own.
func lastLines(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "\n\t" + err.Error()
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return "\n\t(it wrote nothing)"
	}
	lines := strings.Split(string(b), "\n")
	lines = lines[max(0, len(lines)-12):]
	return "\n\t" + strings.Join(lines, "\n\t")
}
