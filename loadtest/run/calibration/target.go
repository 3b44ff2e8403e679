package calibration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/loadtest/engine"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// mostListed is how many listed files without a size are asked about.
const mostListed = 1000

// prepare finds or makes the files that both sides read. Our own driver does
// it for both.
func (c *calibrator) prepare() error {
	own := c.sides[0]
	if workload.Writes(own.plan.Work) {
		return c.folders(own.config) // shows whether writing is allowed; each step makes its own again
	}
	var listed []workload.File
	if name := own.plan.Files.List; name != "" {
		list, err := scenario.ReadList(name, own.plan.Target)
		if err != nil {
			return &run.UsageError{Err: err}
		}
		listed = list.Files[:min(len(list.Files), mostListed)]
	}
	files, err := engine.Prepare(c.Finish, own.config, listed, nil)
	if err != nil && own.plan.Files.Make != nil && c.Finish.Err() == nil {
		files, err = c.readListing(err)
	}
	if err != nil {
		return err
	}
	c.made, err = c.sizes(files)
	return err
}

// readListing is for services that cannot be written to: what is there is read.
func (c *calibrator) readListing(refused error) ([]workload.File, error) {
	switch storage.Classify(refused) {
	case storage.Refused, storage.Timeout, storage.Reset:
		return nil, fmt.Errorf("the target cannot be reached: %w", refused)
	}
	for _, s := range c.sides {
		s.plan.Files = scenario.Files{Listing: true}
	}
	files, err := engine.Prepare(c.Finish, c.sides[0].config, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("there is nothing to read: files cannot be made (%w), nor found (%w); name a folder where you may write, "+
			"or files that are there with --list FILE", refused, err)
	}
	c.Console.Say("no file may be made (%s): reading %d that are there\n", c.line(refused), len(files))
	return files, nil
}

// sizes asks for the sizes that are not known, so that no side has to.
func (c *calibrator) sizes(files []workload.File) ([]workload.File, error) {
	client := c.sides[0].config.Service.Client()
	defer func() { _ = client.Close() }() // nothing is left to be said
	known := files[:0:0]
	var denied error
	for _, f := range files {
		if f.Size < 0 && len(known) < mostListed {
			res, err := client.Do(c.Finish, &storage.Op{Kind: storage.Stat, Path: f.Path, Timeout: lookTimeout}, &witness{})
			if errors.Is(err, fs.ErrPermission) { // others may be read
				denied = err
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("size of a file: %w", err)
			}
			f.Size = res.Size
		}
		known = append(known, f)
	}
	if denied == nil {
		return known, nil
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("none of %s can be read: %w", say.Plural(len(files), "file"), denied)
	}
	c.Console.Warn("weir: %s left out: %s\n", say.Plural(len(files)-len(known), "file"), c.line(denied))
	return known, nil
}

// folders makes the folders of a side that writes, with our own driver.
func (c *calibrator) folders(config engine.Config) error {
	config.Service = c.sides[0].config.Service
	_, err := engine.Prepare(c.Finish, config, nil, nil)
	return err
}

// clean removes what both sides have made.
func (c *calibrator) clean() error {
	return errors.Join(c.cleanSide(c.sides[2]), c.cleanSide(c.sides[1]), c.cleanSide(c.sides[0]))
}

func (c *calibrator) cleanSide(s *side) error {
	if run.Keeps(s.plan) {
		return nil
	}
	config := s.config
	config.Service = c.sides[0].config.Service
	left, err := run.Sweep(c.Interrupts, config, s.manifest, s.name, s.dir, nil)
	return errors.Join(left, err)
}

// idleFor is how long the servers are watched before the load begins.
const idleFor = 500 * time.Millisecond

// listen finds out whether the servers tell about themselves, and what they do
// without us.
func (c *calibrator) listen(ctx context.Context) {
	asks, ok := c.sides[0].config.Service.(storage.Reporter)
	if !ok {
		return
	}
	servers, err := asks.Servers(ctx)
	if err != nil {
		c.Console.Say("the servers do not tell about themselves: %s\n", c.line(err))
		return
	}
	c.asks, c.asked = asks, servers
	before := c.read(ctx)
	if len(before) == 0 {
		c.asks = nil
		return
	}
	began := time.Now()
	pause.For(c.Finish, idleFor)
	for name, after := range c.read(ctx) {
		if s, ok := after.Since(before[name]); ok {
			withoutUs(s, 1)
			c.given.Idle = append(c.given.Idle, s)
		}
	}
	c.given.IdleSeconds = time.Since(began).Seconds()
}

// read asks all servers about themselves; who does not answer is left out.
func (c *calibrator) read(ctx context.Context) map[string]monitor.Reading {
	all := map[string]monitor.Reading{}
	if c.asks == nil {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, name := range c.asked {
		if r, err := monitor.Read(ctx, c.asks, name); err == nil {
			all[name] = r
		}
	}
	if len(all) < len(c.asked) {
		return nil // a part of the servers would be taken for all
	}
	return all
}

// settled reads until the servers have noticed that all clients are gone: they
// count some things only then. It says how often it has asked.
func (c *calibrator) settled(ctx context.Context, before map[string]monitor.Reading) (last map[string]monitor.Reading, asked int64) {
	last, asked = c.read(ctx), 1
	for ; asked < 40 && len(last) > 0; asked++ {
		pause.For(ctx, 25*time.Millisecond)
		now := c.read(ctx)
		if quiet(last, now) && gone(before, now) {
			return now, asked + 1
		}
		last = now
	}
	return last, asked
}

// withoutUs takes our own questions out of what a server counted.
func withoutUs(s *monitor.Service, asked int64) {
	if n := s.Ops[ownKind] - asked; n > 0 {
		s.Ops[ownKind] = n
	} else {
		delete(s.Ops, ownKind)
	}
}

// ownKind is among which requests a server counts a question about itself.
const ownKind = "other"

// quiet reports whether nothing was counted between two readings.
func quiet(before, after map[string]monitor.Reading) bool {
	for name, r := range after {
		if s, ok := r.Since(before[name]); ok && s.Operations()+s.Logins > 1 { // the one is ours
			return false
		}
	}
	return true
}

// gone reports whether no server has more connections than before.
func gone(before, after map[string]monitor.Reading) bool {
	for name, r := range after {
		s, ok := r.Since(before[name])
		was, known := before[name].Since(before[name])
		if ok && known && s.Connections > was.Connections {
			return false
		}
	}
	return true
}
