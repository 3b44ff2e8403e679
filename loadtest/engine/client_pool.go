package engine

import (
	"sync"
	"sync/atomic"

	"weir/loadtest/measure"
)

// A clientPool holds the virtual clients that are running. Clients are numbered from 0; the last to
// start is the first to end, and a client that reuses a number continues with that number's random
// numbers and file names.
type clientPool struct {
	exec   *executor
	rec    *measure.Recorder
	count  bool // clients count as active from start to end
	wg     sync.WaitGroup
	there  atomic.Int64 // clients that have not ended
	empty  wakeup       // there has become 0
	mu     sync.Mutex
	tasks  int       // of clients that start; 0: until leave is called
	active []*client // by number
	idle   []*client // ended, by number, to start again
}

func newClientPool(exec *executor, rec *measure.Recorder, count bool) *clientPool {
	return &clientPool{exec: exec, rec: rec, count: count, empty: newWakeup()}
}

// step sets the number of tasks of clients that start from now on; 0: until leave is called.
func (w *clientPool) step(tasks int) {
	w.mu.Lock()
	w.tasks = tasks
	w.mu.Unlock()
}

func (w *clientPool) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.active)
}

// resize starts clients, or ends the last clients after their current tasks, until n stay. It does
// not wait for them.
func (w *clientPool) resize(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.active) > n {
		last := len(w.active) - 1
		w.active[last].leave()
		w.idle = append(w.idle, w.active[last])
		w.active[last] = nil
		w.active = w.active[:last]
	}
	for len(w.active) < n {
		w.active = append(w.active, w.come())
	}
}

// come starts the client of the next number. The caller holds the lock.
func (w *clientPool) come() *client {
	var before *client
	if last := len(w.idle) - 1; last >= 0 {
		before = w.idle[last] // numbers are freed from the top, so this is the next number
		w.idle = w.idle[:last]
	}
	c := &client{exec: w.exec, number: len(w.active), tasks: w.tasks, past: before}
	w.there.Add(1)
	w.wg.Add(1)
	if before != nil && !before.ended {
		before.next = c // which counts until then
		return c
	}
	if w.count {
		w.rec.Active(1)
	}
	w.exec.start(c)
	return c
}

// end counts c as ended, and starts the client that waits for its number.
func (w *clientPool) end(c *client) {
	w.mu.Lock()
	c.ended = true
	next := c.next
	w.mu.Unlock()
	if next != nil {
		w.exec.start(next) // and counts in the place of c
	} else if w.count {
		w.rec.Active(-1)
	}
	if w.there.Add(-1) == 0 {
		w.empty.Wake()
	}
	w.wg.Done()
}

// wait returns when all clients have ended.
func (w *clientPool) wait() { w.wg.Wait() }
