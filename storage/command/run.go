package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"weir/storage"
)

// Intervals at which a running program is sampled, at first and later, and the kept length of its
// messages.
const (
	lookFirst = 5 * time.Millisecond
	lookEvery = 500 * time.Millisecond
	keepWords = 8 << 10
	keepAll   = 64 << 20
)

// A result is the output and the status of a program that has ended.
type result struct {
	stdout []byte
	words  []byte // the end of its standard error, or of its standard output if standard error is empty
	status int    // exit status, 128 + signal if one ended it
	signal syscall.Signal
	usage  *storage.Usage
}

// run runs argv to its end, or until ctx ends, which kills its process group. look is called at
// intervals while the program runs, and once when it has ended but is not reaped. If everything is
// true, all of standard output is kept. The error is ctx's error, or the reason why the program
// could not be started; the result has the outcome of the program.
func (s *service) run(ctx context.Context, l line, argv []string, everything bool, look func(pid int)) (result, error) {
	out, words := output{max: keepWords}, output{max: keepWords}
	if everything {
		out = output{max: keepAll, head: true}
	}
	cred, err := s.renewed()
	if err != nil {
		return result{}, unclassed{err}
	}
	p, err := s.starter.begin(&exec.Cmd{
		Path: l.path, Args: argv, Dir: l.dir, Env: s.environ(l.dir, cred.Token), SysProcAttr: attributes(), Stdout: &out, Stderr: &words,
		WaitDelay: 100 * time.Millisecond, // for processes that left the group and hold the other ends of the pipes
	})
	if err != nil {
		return result{}, fmt.Errorf("start %s: %w", l.program, unclassed{err})
	}
	memory := newPeak()
	ended := p.watch(ctx, func(pid int) {
		memory.look(pid)
		look(pid)
	})
	if ended == nil {
		look(p.pid())
	}
	// The leader is not reaped yet, so the number of its group is still its own.
	_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	state, err := p.waitExit()
	if err != nil {
		return result{}, fmt.Errorf("wait for %s: %w", l.program, err)
	}
	r := result{stdout: out.kept, words: words.kept}
	if len(r.words) == 0 {
		r.words = out.kept[max(0, len(out.kept)-keepWords):]
	}
	r.fill(state, memory)
	return r, ended
}

// An unclassed error is one of this machine, not of the service: its output is kept, but "no such
// file" and "permission denied" must not count as results.
type unclassed struct{ err error }

func (u unclassed) Error() string { return u.err.Error() }

// watch waits for the end of the program or of ctx, whose error it returns.
func (p *process) watch(ctx context.Context, look func(pid int)) error {
	stop := context.AfterFunc(ctx, p.wake)
	defer stop()
	for begin, rest := time.Now(), lookFirst; ; rest = max(lookFirst, min(time.Since(begin)/6, lookEvery)) {
		ended, err := p.waitUntil(ctx, time.Now().Add(rest))
		switch {
		case err != nil:
			return err
		case ended:
			return nil
		}
		look(p.pid())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// waitExit waits for the exit status of a program that has ended or was just killed. It gives up if the program is
// blocked in the kernel.
func (p *process) waitExit() (*os.ProcessState, error) {
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); {
		if ended, err := p.waitUntil(context.Background(), limit); err != nil || !ended {
			continue // a late wake
		}
		if err := p.reap(); p.cmd.ProcessState == nil {
			return nil, err
		}
		return p.cmd.ProcessState, nil
	}
	go func() { _ = p.reap() }() // it ends when the kernel releases the program
	return nil, errors.New("it was killed 10 s ago and still has not ended")
}

func (r *result) fill(state *os.ProcessState, memory *peak) {
	r.usage = &storage.Usage{User: state.UserTime(), System: state.SystemTime()}
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.usage.MaxRSS = memory.of(u.Maxrss)
	}
	r.status = state.ExitCode()
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		r.signal = w.Signal()
		r.status = 128 + int(r.signal)
	}
	r.usage.ExitCode = r.status
}

// An exitError has the exit status and the message of a failed program.
type exitError struct {
	program string
	result  result
	text    string
	class   error // sentinel, nil if unknown
}

func (e *exitError) Error() string {
	s := fmt.Sprintf("%s: exit status %d", e.program, e.result.status)
	if e.result.signal != 0 {
		s = fmt.Sprintf("%s: ended by signal %s (%v)", e.program, unix.SignalName(e.result.signal), e.result.signal)
	}
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

func (e *exitError) Unwrap() error { return e.class }

// Is reports whether the program crashed, for storage.ErrCrashed.
func (e *exitError) Is(target error) bool {
	return target == storage.ErrCrashed && slices.Contains([]syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE,
		syscall.SIGILL}, e.result.signal)
}

// check makes an error of an exit status that is not 0.
func (s *service) check(l line, r result) error {
	if r.status == 0 {
		return nil
	}
	e := &exitError{program: l.program, result: r, text: tidy(r.words, s.secrets())}
	if s.tool.fail != nil && r.signal == 0 {
		e.class = s.tool.fail(r.status, string(r.words))
	}
	if e.class == nil {
		e.class = byWords(string(r.words))
	}
	return e
}

// short returns the error for a program that ended by itself after too few or too many bytes.
func short(got, want int64) error {
	if got < want {
		return fmt.Errorf("%w: %d of %d", storage.ErrShort, got, want)
	}
	return fmt.Errorf("%w: %d bytes where %d were expected", storage.ErrSize, got, want)
}

var errUnknownSize = errors.New("placeholder {size} or {length}: the size of the file is not known")

// A starter starts processes on a thread of its own that lives until close: the kernel ties "end when your parent
// dies" to the thread that started a process, and Go's other threads may end at any time.
type starter struct {
	jobs chan func()
	done chan struct{}
}

func newStarter() *starter {
	s := &starter{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		for start := range s.jobs {
			start()
		}
	}()
	return s
}

func (s *starter) begin(cmd *exec.Cmd) (*process, error) {
	reply := make(chan error, 1)
	s.jobs <- func() { reply <- cmd.Start() }
	if err := <-reply; err != nil {
		return nil, err
	}
	return newProcess(cmd), nil
}

// close ends the thread; nothing is started afterwards.
func (s *starter) close() {
	close(s.jobs)
	<-s.done
}

// An output keeps a part of a program's output to one of its streams: the first max bytes, or the
// last.
type output struct {
	max  int
	head bool // keep the first bytes instead of the last
	kept []byte
}

// ReadFrom implements io.ReaderFrom, with a buffer smaller than that of io.Copy: thousands of programs may run.
func (o *output) ReadFrom(r io.Reader) (total int64, err error) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		o.keep(buf[:n])
		total += int64(n)
		if err != nil {
			return total, nil // the end, or the pipe was closed after WaitDelay
		}
	}
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.keep(b)
	return len(b), nil
}

func (o *output) keep(b []byte) {
	if o.head {
		o.kept = append(o.kept, b[:min(len(b), o.max-len(o.kept))]...)
		return
	}
	o.kept = append(o.kept, b...)
	if len(o.kept) > 2*o.max {
		o.kept = append(o.kept[:0], o.kept[len(o.kept)-o.max:]...)
	}
}

// tidy formats the end of a program's output for one line of an error: control characters and empty
// lines away, secrets blackened, bounded.
func tidy(text []byte, secrets []string) string {
	const most = 500
	var lines []string
	for l := range strings.Lines(strings.ToValidUTF8(string(text), "?")) {
		l = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, l))
		if l != "" {
			lines = append(lines, l)
		}
	}
	lines = lines[max(0, len(lines)-4):]
	s := strings.Join(lines, "; ")
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	if r := []rune(s); len(r) > most {
		s = "…" + string(r[len(r)-most:])
	}
	return s
}
