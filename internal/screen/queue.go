package screen

import (
	"io"
	"slices"
	"sync"
)

// A Queue writes in a goroutine of its own, so that a terminal that was halted (Ctrl-S)
// or a reader that hangs does not block who measures. It may be used by several
// goroutines at once.
type Queue struct {
	to    io.Writer
	ended chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	closed  bool
	err     error
}

// maxWaiting bounds the bytes that wait; more are lost.
const maxWaiting = 16 << 20

// NewQueue returns a queue that writes to w until it is closed.
func NewQueue(w io.Writer) *Queue {
	q := &Queue{to: w, ended: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write takes p and returns at once. Its error is that of an earlier p.
func (q *Queue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil:
		return 0, q.err
	case q.closed || len(q.waiting)+len(p) > maxWaiting:
		return 0, io.ErrShortWrite
	}
	q.waiting = append(q.waiting, p...)
	q.changed.Signal()
	return len(p), nil
}

// Close waits until all is written or a write has failed, and returns that error.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	<-q.ended
	return q.err
}

func (q *Queue) run() {
	defer close(q.ended)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 && !q.closed {
			q.changed.Wait()
		}
		if len(q.waiting) == 0 || q.err != nil {
			return
		}
		next := slices.Clone(q.waiting)
		q.waiting = q.waiting[:0]
		q.mu.Unlock()
		_, err := q.to.Write(next)
		q.mu.Lock()
		q.err = err
	}
}
