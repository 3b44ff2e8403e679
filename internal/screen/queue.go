package screen

import (
	"io"
	"slices"
	"sync"
)

// A Queue writes what it is given, in order, in a goroutine of its own: a
// terminal that was halted (Ctrl-S), or a reader that hangs, holds up nobody
// who measures. It may be used by several goroutines at once.
type Queue struct {
	to    io.Writer
	ended chan struct{}

	mu      sync.Mutex
	more    *sync.Cond // something was given, or all was
	waiting []byte
	closed  bool
	err     error
}

// mostWaiting is how many bytes wait at most; what is more is lost.
const mostWaiting = 16 << 20

// NewQueue returns a queue that writes to w until it is closed.
func NewQueue(w io.Writer) *Queue {
	q := &Queue{to: w, ended: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
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
	case q.closed || len(q.waiting)+len(p) > mostWaiting:
		return 0, io.ErrShortWrite
	}
	q.waiting = append(q.waiting, p...)
	q.more.Signal()
	return len(p), nil
}

// Close waits until all was written, or an error came, which it returns.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.more.Signal()
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
			q.more.Wait()
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
