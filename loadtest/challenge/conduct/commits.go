package conduct

import "sync"

// commits do work when the final lines of copies that were written before it was added are on stable
// storage: a copy whose line could get lost must not be removed. One sync serves all work that was
// added before it. Its owner calls run from time to time, and close at the end.
type commits struct {
	sync func() error

	running sync.WaitGroup
	mu      sync.Mutex
	waiting []func()
	busy    bool  // a sync is running
	err     error // of the first sync that failed: the work that waited for it is not done
}

func (c *commits) add(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, do)
}

// run starts a sync, unless one is running or nothing waits. It returns the error of an earlier one.
func (c *commits) run() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.busy || len(c.waiting) == 0 {
		return c.err
	}
	all := c.waiting
	c.waiting, c.busy = nil, true
	c.running.Go(func() { c.commit(all) })
	return nil
}

// commit syncs and does the work.
func (c *commits) commit(all []func()) {
	err := c.sync()
	if err == nil {
		for _, do := range all {
			do()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.err == nil {
		c.err = err
	}
}

// close waits for the sync that is running, and does the work that waits after a last one.
func (c *commits) close() error {
	c.running.Wait()
	if err := c.run(); err != nil {
		return err
	}
	c.running.Wait()
	return c.run()
}
