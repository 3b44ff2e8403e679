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
)

// An order is a request to the mover process, a JSON line. Exactly one field is set.
type order struct {
	Links  []orderLink `json:"links,omitempty"` // first: their devices are the descriptors from 3 on, two each
	Trunks []orderLink `json:"trunks,omitempty"`
	Change *orderLink  `json:"change,omitempty"`
}

type orderLink struct {
	Name    string  `json:"name"`
	Setting setting `json:"setting"`
	Seed    uint64  `json:"seed,omitempty"`
}

// firstDevice is the descriptor of the first device that a mover inherits.
const firstDevice = 3

// Move runs a mover, the process that carries the packets of links in user space: garbage
// collection in an engine must not delay packets, and the CPU time of the emulation must not be
// counted as the clients'. It reads orders from in and reports the traffic of the links on out; it
// returns when in ends, so that it does not outlive its parent process.
func Move(ctx context.Context, in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(in)
	var first order
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("links: first order: %w", err)
	}
	runtime.GOMAXPROCS(len(first.Links) + 2) // no link waits for another
	raisePriority(len(first.Links))
	m := &mover{jsonWriter: newJSONWriter(out)}
	defer m.wait()
	if err := m.cable(first); err != nil {
		return errors.Join(err, m.say(message{Error: err.Error()}))
	}
	if err := m.say(message{Up: &state{}}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("links: %w", err)
		}
		for _, c := range m.cables {
			if o.Change != nil {
				c.change(o.Change.Name, o.Change.Setting)
			}
		}
	}
	return ctx.Err()
}

type mover struct {
	*jsonWriter // of messages

	links  int
	cables []*cable
	group  sync.WaitGroup
}

// cable makes and starts a cable for each link without a trunk, and for each trunk with its links.
func (m *mover) cable(first order) error {
	m.links = len(first.Links)
	start := func(trunk *orderLink, is func(l *orderLink) bool) error {
		var links []orderLink
		var ends [][2]int
		for i := range first.Links {
			if is(&first.Links[i]) {
				links = append(links, first.Links[i])
				ends = append(ends, [2]int{firstDevice + 2*i, firstDevice + 2*i + 1})
			}
		}
		c, err := newCable(links, ends, trunk)
		if err == nil {
			m.start(c)
		}
		return err
	}
	for i := range first.Links {
		if first.Links[i].Setting.Spec.Trunk == "" {
			if err := start(nil, func(l *orderLink) bool { return l == &first.Links[i] }); err != nil {
				return err
			}
		}
	}
	for i := range first.Trunks {
		t := &first.Trunks[i]
		if err := start(t, func(l *orderLink) bool { return l.Setting.Spec.Trunk == t.Name }); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) start(c *cable) {
	m.cables = append(m.cables, c)
	m.group.Go(func() {
		if err := c.run(); err != nil {
			_ = m.say(message{Error: fmt.Sprintf("link %s: %v", c.all()[len(c.lines)-1].name, err)}) // the other end is closed
		}
	})
	m.group.Go(func() {
		for s := range c.samps {
			_ = m.say(message{Sample: s.sample()}) // the same
		}
	})
}

func (m *mover) wait() {
	for _, c := range m.cables {
		c.end()
	}
	m.group.Wait()
	for i := range m.links {
		_ = errors.Join(unix.Close(firstDevice+2*i), unix.Close(firstDevice+2*i+1)) // the process ends
	}
}

// sample converts the counts of the cable into a sample.
func (s *lineSample) sample() *Sample {
	spec := s.setting.Spec
	return &Sample{
		Time: s.time, Seconds: time.Duration(s.ns).Seconds(), Link: s.name, Rate: spec.Rate, Up: spec.FromClients(), Down: s.setting.Down,
		ToClients: s.ways[toClients].traffic(), FromClients: s.ways[fromClients].traffic(), Cost: s.cost,
	}
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
	for i, t := range s.trunks {
		first.Trunks = append(first.Trunks, orderLink{Name: t.name, Setting: withoutLoss(t.spec), Seed: o.Seed + 2*uint64(len(s.spokes)+i)})
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
	change := func(name string, to setting) error { return c.say(order{Change: &orderLink{Name: name, Setting: to}}) }
	for _, t := range s.trunks {
		t.adjust = func(to setting) error { return s.adjustTrunk(t, to, change) }
	}
	for _, sp := range s.spokes {
		sp.adjust = func(to setting) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			sp.spec = to.Spec
			return errors.Join(change(sp.name, to), sp.burst())
		}
		if err := sp.burst(); err != nil {
			return err
		}
		if err := sp.up(); err != nil {
			return err
		}
	}
	return nil
}

// adjustTrunk changes the settings of a trunk.
func (s *star) adjustTrunk(t *trunk, to setting, change func(name string, to setting) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.spec = to.Spec
	err := change(t.name, to)
	for _, sp := range s.spokes {
		if sp.trunk == t {
			err = errors.Join(err, sp.burst())
		}
	}
	return err
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

// burst makes the two devices deliver super-packets as large as the rates of link and trunk allow.
func (sp *spoke) burst() error {
	path := sp.path()
	setSpeed(sp.here.name, path.Rate)
	return errors.Join(sp.here.setBurst(path.Rate, path.MTU), sp.there.setBurst(path.FromClients(), path.MTU))
}
