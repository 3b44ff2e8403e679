package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"weir/link"
)

// An order is what the maker of links says to the mover, a JSON line. Exactly
// one field is set.
type order struct {
	Links  []orderLink `json:"links,omitempty"` // first: their devices are the descriptors from 3 on, two each
	Change *orderLink  `json:"change,omitempty"`
}

type orderLink struct {
	Name    string  `json:"name"`
	Setting setting `json:"setting"`
	Seed    uint64  `json:"seed,omitempty"`
}

// A report is what the mover says. Exactly one field is set.
type report struct {
	Ready  bool    `json:"ready,omitempty"`
	Sample *Sample `json:"sample,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// firstDevice is the descriptor of the first device that a mover inherits.
const firstDevice = 3

// Move is the life of a mover, the process that carries the packets of links
// in user space: an engine's garbage must not hold packets up, and the CPU
// time of the emulation is not to be mistaken for the clients'. It takes orders
// from in and says on out what the links carried; it returns when in ends, so
// that it does not outlive who started it.
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
			return errors.Join(err, m.say(report{Error: err.Error()}))
		}
		m.start(c)
	}
	if err := m.say(report{Ready: true}); err != nil {
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
	*jsonWriter // takes reports

	cables []*cable
	group  sync.WaitGroup
}

func (m *mover) start(c *cable) {
	m.cables = append(m.cables, c)
	m.group.Go(func() {
		if err := c.run(); err != nil {
			_ = m.say(report{Error: fmt.Sprintf("link %s: %v", c.name, err)}) // nobody is left to tell
		}
	})
	m.group.Go(func() {
		for s := range c.samps {
			_ = m.say(report{Sample: s.sample(c.name)}) // the same
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

// sample turns what the cable has counted into what is told.
func (s *cableSample) sample(name string) *Sample {
	out := &Sample{
		Time: s.time, Seconds: float64(s.ns) / 1e9, Link: name, Down: s.setting.Down, Cost: s.cost,
		Rate: s.setting.Spec.Rate, Up: s.setting.Spec.FromClients(),
	}
	for i, to := range []*link.Traffic{&out.ToClients, &out.FromClients} {
		t := &s.ways[i]
		*to = t.Traffic
		to.Wait, to.Late = t.wait.quantiles(), t.late.quantiles()
	}
	return out
}
