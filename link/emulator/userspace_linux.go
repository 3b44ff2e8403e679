package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// userspace makes TUN devices at both ends of all links, and starts the mover
// that carries packets between them.
func (s *star) userspace(n *Network, o Options) error {
	var files []*os.File
	defer func() { // the mover has its own of them, so that the devices end with it
		for _, f := range files {
			_ = f.Close()
		}
	}()
	first := order{}
	for i, sp := range s.spokes {
		both, err := sp.devices(cmp.Or(o.device, tunPath))
		files = append(files, both...)
		if err != nil {
			return err
		}
		first.Links = append(first.Links, orderLink{Name: sp.name, Setting: sp.first(), Seed: o.Seed + 2*uint64(i)})
	}
	c, err := startCarrier(o, files, first)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, c.close)
	n.fail, n.over, n.pids = c.failure, c.over, []int{c.cmd.Process.Pid}
	for _, sp := range s.spokes {
		sp.adjust = func(s setting) error {
			err := c.say(order{Change: &orderLink{Name: sp.name, Setting: s}})
			return errors.Join(err, sp.burst(s))
		}
		if err := sp.burst(setting{Spec: sp.spec}); err != nil {
			return err
		}
		if err := sp.up(); err != nil {
			return err
		}
	}
	return nil
}

// devices makes the devices of both ends.
func (sp *spoke) devices(path string) ([]*os.File, error) {
	here, err := newTun(path)
	if err != nil {
		return nil, fmt.Errorf("make a device at the service's end: %w", err)
	}
	files := []*os.File{here.file}
	var there *tun
	err = sp.space.in(func() error { there, err = newTun(path); return err })
	if err != nil {
		return files, fmt.Errorf("make a device at the site: %w", err)
	}
	sp.here.name, sp.there.name = here.name, there.name
	return append(files, there.file), nil
}

// burst has both devices hand over super-packets as large as the rates allow.
func (sp *spoke) burst(s setting) error {
	setSpeed(sp.here.name, s.Spec.Rate)
	return errors.Join(sp.here.setBurst(s.Spec.Rate, s.Spec.MTU), sp.there.setBurst(s.Spec.FromClients(), s.Spec.MTU))
}

// A carrier is the mover, seen from the process that has started it.
type carrier struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	take func(*Sample)
	over chan struct{} // closed when it has ended

	*jsonWriter // takes orders

	mu     sync.Mutex
	err    error // why it has ended
	closed bool
}

// startCarrier starts the mover with the devices and returns when it carries
// packets.
func startCarrier(o Options, files []*os.File, first order) (*carrier, error) {
	if len(o.Mover) == 0 {
		return nil, errors.New("no program was named that carries packets")
	}
	cmd := exec.Command(o.Mover[0], o.Mover[1:]...)
	cmd.Args[0], cmd.ExtraFiles, cmd.Stderr = "weir", files, o.Log
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start what carries packets: %w", err)
	}
	c := &carrier{cmd: cmd, in: in, take: o.Take, over: make(chan struct{}), jsonWriter: newJSONWriter(in)}
	ready := make(chan struct{})
	go c.listen(out, ready)
	err = c.say(first)
	select {
	case <-ready:
	case <-c.over:
	}
	if err = errors.Join(err, c.failure()); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// listen takes what the mover says until it ends.
func (c *carrier) listen(out io.Reader, ready chan struct{}) {
	defer close(c.over)
	dec := json.NewDecoder(out)
	for {
		var r report
		if err := dec.Decode(&r); err != nil {
			break
		}
		switch {
		case r.Ready:
			close(ready)
		case r.Error != "":
			c.ended(fmt.Errorf("what carries packets: %s", r.Error))
		case r.Sample != nil && c.take != nil:
			c.take(r.Sample)
		}
	}
	if err := c.cmd.Wait(); err != nil {
		c.ended(fmt.Errorf("%w: %w", errCarrier, err))
	} else {
		c.ended(errCarrier)
	}
}

var errCarrier = errors.New("what carries packets has ended")

// ended notes why nothing is carried any more: the first reason counts.
func (c *carrier) ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.closed {
		c.err = err
	}
}

func (c *carrier) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *carrier) close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	err := c.in.Close()
	<-c.over
	if errors.Is(err, os.ErrClosed) { // it had ended by itself
		return nil
	}
	return err
}
