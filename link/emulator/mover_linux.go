package emulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/link"
)

// An order is what the maker of links says to the mover, a JSON line. Exactly one field is set.
type order struct {
	Links  []orderLink `json:"links,omitempty"` // first: their devices are the descriptors from 3 on, two each
	Change *orderLink  `json:"change,omitempty"`
}

type orderLink struct {
	Name    string  `json:"name"`
	Setting setting `json:"setting"`
	Seed    uint64  `json:"seed,omitempty"`
}

// firstDevice is the descriptor of the first device that a mover inherits.
const firstDevice = 3

// Move is the life of a mover, the process that carries the packets of links in user space: an engine's garbage must
// not hold packets up, and the CPU time of the emulation is not to be mistaken for the clients'. It takes orders from
// in and says on out what the links carried; it returns when in ends, so that it does not outlive who started it.
func Move(ctx context.Context, in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(in)
	var first order
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("mover: first order: %w", err)
	}
	runtime.GOMAXPROCS(len(first.Links) + 2) // no link waits for another
	raisePriority(len(first.Links))
	m := &mover{jsonWriter: newJSONWriter(out)}
	defer m.wait()
	for i, l := range first.Links {
		c, err := newCable(l.Name, l.Setting, firstDevice+2*i, firstDevice+2*i+1, l.Seed)
		if err != nil {
			return errors.Join(err, m.say(message{Error: err.Error()}))
		}
		m.start(c)
	}
	if err := m.say(message{Up: &state{}}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("mover: %w", err)
		}
		for _, c := range m.cables {
			if o.Change != nil && o.Change.Name == c.name {
				c.change(o.Change.Setting)
			}
		}
	}
	return ctx.Err()
}

type mover struct {
	*jsonWriter // of messages

	cables []*cable
	group  sync.WaitGroup
}

func (m *mover) start(c *cable) {
	m.cables = append(m.cables, c)
	m.group.Go(func() {
		if err := c.run(); err != nil {
			_ = m.say(message{Error: fmt.Sprintf("link %s: %v", c.name, err)}) // the other end is closed
		}
	})
	m.group.Go(func() {
		for s := range c.samps {
			_ = m.say(message{Sample: s.sample(c.name)}) // the same
		}
	})
}

func (m *mover) wait() {
	for _, c := range m.cables {
		c.end()
	}
	m.group.Wait()
	for i := range m.cables {
		_ = errors.Join(unix.Close(firstDevice+2*i), unix.Close(firstDevice+2*i+1)) // the process ends
	}
}

// sample turns what the cable has counted into a sample.
func (s *cableSample) sample(name string) *Sample {
	out := s.setting.sample(name, s.time, time.Duration(s.ns), func(way int) link.Traffic { return s.ways[way].traffic() })
	out.Cost = s.cost
	return out
}

// userspace makes TUN devices at both ends of all links, and starts the mover that carries packets between them.
func (s *star) userspace(ctx context.Context, n *Network, o Options) error {
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
	if len(o.Mover) == 0 {
		return errors.New("no program was named that carries packets")
	}
	c := newHelper("carries packets", o.Mover, o.Take, o.Log)
	s.closers = append(s.closers, func() error { c.close(func() {}); return nil })
	if err := c.start(ctx, false, files, first); err != nil {
		return err
	}
	n.fail, n.over, n.pids = c.Err, c.over, []int{c.cmd.Process.Pid}
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
