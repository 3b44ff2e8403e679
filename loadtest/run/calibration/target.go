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

// mostListed is the number of listed files without a size whose sizes are requested.
const mostListed = 1000

// prepare finds or makes the files that both sides read. Weir's own driver does it for both sides.
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

// readListing uses the existing files of services that cannot be written to.
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

// sizes requests the sizes that are not known, so that no side has to.
func (c *calibrator) sizes(files []workload.File) ([]workload.File, error) {
	client := c.sides[0].config.Service.Client()
	defer func() { _ = client.Close() }() // all its operations have ended
	known := files[:0:0]
	var denied error
	for _, f := range files {
		if f.Size < 0 && len(known) < mostListed {
			res, err := client.Do(c.Finish, &storage.Op{Kind: storage.Stat, Path: f.Path, Timeout: lookTimeout}, &witness{})
			if errors.Is(err, fs.ErrPermission) { // other files may be readable
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

// folders makes the folders of a side that writes, with weir's own driver.
func (c *calibrator) folders(config engine.Config) error {
	config.Service = c.sides[0].config.Service
	_, err := engine.Prepare(c.Finish, config, nil, nil)
	return err
}

// clean removes the files and folders of both sides.
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

// idleFor is the time for which the servers are monitored before the load begins.
const idleFor = 500 * time.Millisecond

// listen finds out whether the servers report statistics, and measures their load without weir's
// clients.
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

// read requests the statistics of all servers; it leaves out servers that do not respond.
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

// settled reads until the servers have noticed that all clients are gone: they count some numbers
// only then. It returns the number of requests that it has made.
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

// withoutUs subtracts weir's own requests for statistics from the counts of a server.
func withoutUs(s *monitor.Service, asked int64) {
	if n := s.Ops[ownKind] - asked; n > 0 {
		s.Ops[ownKind] = n
	} else {
		delete(s.Ops, ownKind)
	}
}

// ownKind is the kind under which a server counts requests for its statistics.
const ownKind = "other"

// quiet reports whether nothing was counted between two readings.
func quiet(before, after map[string]monitor.Reading) bool {
	for name, r := range after {
		if s, ok := r.Since(before[name]); ok && s.Operations()+s.Logins > 1 { // one is our own
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
