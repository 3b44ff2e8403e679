package engine

import "sync"

// mostIdle is the largest number of goroutines of an executor that wait for a client: their stacks
// have grown for operations, and are memory.
const mostIdle = 64

// An executor runs clients in goroutines, as many as there are clients awake.
// It keeps some of them, because a new goroutine's stack has to grow first.
type executor struct {
	run  func(c *client) // until c sleeps or has ended
	all  sync.WaitGroup  // of goroutines
	mu   sync.Mutex
	idle []chan *client // of each goroutine that waits; the last to wait at the end
	over bool           // no client comes any more
}

// start has a goroutine run c. It does not block.
func (e *executor) start(c *client) {
	e.mu.Lock()
	last := len(e.idle) - 1
	if last < 0 {
		e.mu.Unlock()
		e.all.Go(func() { e.loop(c) })
		return
	}
	next := e.idle[last]
	e.idle = e.idle[:last]
	e.mu.Unlock()
	next <- c // it has room for one
}

// loop runs c, and then other clients as long as the goroutine is kept.
func (e *executor) loop(c *client) {
	next := make(chan *client, 1)
	for more := true; more; c, more = <-next {
		e.run(c)
		e.mu.Lock()
		if e.over || len(e.idle) == mostIdle {
			e.mu.Unlock()
			return
		}
		e.idle = append(e.idle, next)
		e.mu.Unlock()
	}
}

// close waits until all goroutines have ended. All clients have ended before.
func (e *executor) close() {
	e.mu.Lock()
	e.over = true
	for _, next := range e.idle {
		close(next)
	}
	e.idle = nil
	e.mu.Unlock()
	e.all.Wait()
}
