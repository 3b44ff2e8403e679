package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A jsonWriter writes values as JSON lines, in which the processes of the emulation exchange messages. It may be used
// by several goroutines.
type jsonWriter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newJSONWriter(w io.Writer) *jsonWriter { return &jsonWriter{enc: json.NewEncoder(w)} }

func (w *jsonWriter) say(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(v)
}

// A message is a report of a helper. Exactly one field is set.
type message struct {
	Up      *state   `json:"up,omitempty"` // first
	Sample  *Sample  `json:"sample,omitempty"`
	Reached *reached `json:"reached,omitempty"`
	Error   string   `json:"error,omitempty"` // the links are gone, or were not made
}

type state struct {
	Service string `json:"service"` // as Network.Service
	Pids    []int  `json:"pids"`    // of the emulation's own processes
}

type reached struct {
	ID      int    `json:"id"`
	Address string `json:"address,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Error   string `json:"error,omitempty"`
}

// A helper is another process of the emulation: this program with other arguments. It reads requests from its
// standard input, writes messages to its standard output, and ends when its input does.
type helper struct {
	*jsonWriter // of requests

	what  string // it does, for errors
	cmd   *exec.Cmd
	in    io.WriteCloser // nil: it was not started
	take  func(*Sample)
	up    state // valid after start
	asked calls[reached]
	gone  chan struct{} // closed when it fails before close
	over  chan struct{} // closed when it has ended

	mu     sync.Mutex
	err    error // why it failed
	closed bool
}

func newHelper(what string, command []string, take func(*Sample), log io.Writer) *helper {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Args[0], cmd.Stderr, cmd.WaitDelay = "weir", log, 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of the terminal's Ctrl-C: the end of its input ends it
	return &helper{what: what, cmd: cmd, take: take, gone: make(chan struct{}), over: make(chan struct{})}
}

// start starts the process with the descriptors of files from 3 on, sends the first request and returns when the
// process is ready.
func (h *helper) start(ctx context.Context, isolated bool, files []*os.File, first any) error {
	in, err1 := h.cmd.StdinPipe()
	out, err2 := h.cmd.StdoutPipe()
	err := errors.Join(err1, err2)
	h.cmd.ExtraFiles = files
	var dialer *HostDialer
	if err == nil && isolated {
		dialer, err = Isolate(h.cmd)
	}
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		if dialer != nil {
			err = errors.Join(err, dialer.Close())
		}
		return fmt.Errorf("start the process that %s: %w", h.what, err)
	}
	h.in, h.jsonWriter = in, newJSONWriter(in)
	ready := make(chan struct{})
	go func() {
		h.listen(out, ready)
		failure := fmt.Errorf("the process that %s has ended", h.what)
		if err := h.cmd.Wait(); err != nil {
			failure = fmt.Errorf("%w: %w", failure, err)
		}
		if dialer != nil {
			_ = dialer.Close() // the isolated process has ended
		}
		h.fail(failure)
		h.asked.end(errors.New("the links are gone"))
		close(h.over)
	}()
	err = h.say(first)
	select {
	case <-ready:
	case <-h.gone:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, h.Err())
}

// listen reads messages until the process ends or sends invalid input.
func (h *helper) listen(out io.Reader, ready chan struct{}) {
	defer h.in.Close()
	for dec := json.NewDecoder(out); ; {
		var m message
		if dec.Decode(&m) != nil {
			return
		}
		switch {
		case m.Up != nil:
			h.up = *m.Up
			close(ready)
		case m.Sample != nil && h.take != nil:
			h.take(m.Sample)
		case m.Reached != nil:
			h.asked.answer(m.Reached.ID, *m.Reached)
		case m.Error != "":
			h.fail(errors.New(m.Error))
		}
	}
}

// fail notes why the process failed, unless it was closed, and has it end. The first reason counts.
func (h *helper) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil && !h.closed {
		h.err = err
		close(h.gone)
		_ = h.in.Close()
	}
}

// Err returns why the links are gone before Close, nil while they are there.
func (h *helper) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Gone returns a channel that is closed when the links are lost before Close. Programs at the sites
// continue until their input ends, as at Close.
func (h *helper) Gone() <-chan struct{} { return h.gone }

// close ends the process and waits until it has ended. Before its input is closed, it calls first.
func (h *helper) close(first func()) {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	h.mu.Unlock()
	first()
	if !again && h.in != nil {
		_ = h.in.Close() // it may have been closed
		<-h.over
	}
}

// calls are requests that wait for their responses, by number. The zero value is ready for use.
type calls[T any] struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan T
	over    error // reason for which no more responses arrive
}

// ask sends a request and waits for its response.
func (c *calls[T]) ask(ctx context.Context, send func(id int) error) (answer T, err error) {
	c.mu.Lock()
	if c.over != nil {
		defer c.mu.Unlock()
		return answer, c.over
	}
	if c.waiting == nil {
		c.waiting = map[int]chan T{}
	}
	c.last++
	id, come := c.last, make(chan T, 1)
	c.waiting[id] = come
	c.mu.Unlock()
	if err = send(id); err == nil {
		select {
		case answer, ok := <-come:
			return answer, c.lost(ok)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if c.waits(id) != nil {
		return answer, err
	}
	answer, ok := <-come // it came in this moment
	return answer, c.lost(ok)
}

func (c *calls[T]) lost(ok bool) error {
	if ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// waits returns where the answer to a request is awaited, for one answer; nil if it is not.
func (c *calls[T]) waits(id int) chan T {
	c.mu.Lock()
	defer c.mu.Unlock()
	come := c.waiting[id]
	delete(c.waiting, id)
	return come
}

// answer hands over an answer and returns whether it was awaited.
func (c *calls[T]) answer(id int, a T) bool {
	come := c.waits(id)
	if come != nil {
		come <- a
	}
	return come != nil
}

// end fails all pending and all later requests.
func (c *calls[T]) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = err
	for _, come := range c.waiting {
		close(come)
	}
	c.waiting = nil
}
