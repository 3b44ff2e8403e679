package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// commands run the events of a plan while load is made. Each command has a process group of its own,
// which is ended with the load, and is recorded in the run directory.
type commands struct {
	events []scenario.Event
	record func(measure.Event) error
	ctx    context.Context //nolint:containedctx // of the load: the commands are begun by its first step
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	started bool
	err     error // of recording
}

// newCommands prepares the commands of a plan. The caller calls end after the load.
func newCommands(ctx context.Context, events []scenario.Event, record func(measure.Event) error) *commands {
	c := &commands{events: events, record: record}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

// begin starts the clock of the commands.
func (c *commands) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	for _, e := range c.events {
		c.done.Go(func() { c.run(e) })
	}
}

// end ends all commands and waits for them. It returns the error of recording them.
func (c *commands) end() error {
	c.stop()
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		for _, e := range c.events {
			c.err = errors.Join(c.err, c.record(commandEvent(e, measure.CommandNotRun, 0, "the load did not begin")))
		}
	}
	return c.err
}

// run waits for the time of an event, and runs its command.
func (c *commands) run(e scenario.Event) {
	select {
	case <-c.ctx.Done():
		c.note(e, measure.CommandNotRun, 0, "the load ended before")
		return
	case <-time.After(time.Duration(e.At)):
	}
	var said bytes.Buffer
	cmd := exec.Command("sh", "-c", e.Run) //nolint:noctx // its whole group is ended below
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a process in the background may keep the pipe
	if err := cmd.Start(); err != nil {
		c.note(e, measure.CommandNotRun, 0, err.Error())
		return
	}
	c.note(e, measure.CommandBegan, 0, "")
	ended := make(chan struct{})
	killed := make(chan bool, 1)
	go func() {
		select {
		case <-c.ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
			killed <- true
		case <-ended:
			killed <- false
		}
	}()
	_ = cmd.Wait() // the exit code is recorded
	close(ended)
	state := measure.CommandEnded
	if <-killed {
		state = measure.CommandKilled
	}
	c.note(e, state, cmd.ProcessState.ExitCode(), lastLine(said.String()))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return fmt.Sprintf("%.200s", lines[len(lines)-1])
}

// note records the state of a command.
func (c *commands) note(e scenario.Event, state string, exit int, detail string) {
	err := c.record(commandEvent(e, state, exit, detail))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}

func commandEvent(e scenario.Event, state string, exit int, detail string) measure.Event {
	text := fmt.Sprintf("command %s: %s", state, e.Run)
	if state == measure.CommandEnded && exit != 0 {
		text += fmt.Sprintf(" (exit code %d)", exit)
	}
	if detail != "" {
		text += ": " + detail
	}
	return measure.Event{Time: time.Now().UTC(), Kind: measure.EventCommand, Text: text,
		Command: &measure.Command{Run: e.Run, After: time.Duration(e.At).Seconds(), State: state, Exit: exit}}
}
