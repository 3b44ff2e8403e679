package serve

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/burn"
)

// Limits of the cost of pages: a page is served to its end even if its client has gone.
const (
	maxPageCPU = 10 * time.Second
	maxThreads = 1024
)

// pageThreads are the threads of a server whose pages cost CPU time. Each serves one
// page at a time; pages beyond wait in one queue. They are threads of the system, so
// that their CPU time is seen as that of any other server's threads.
type pageThreads struct {
	cost    time.Duration      // CPU time of a page
	size    int64              // bytes of a page; 0: a read request is one
	queue   chan chan struct{} // of pages; the channel sent back signals that a page's time is over
	stop    chan struct{}
	running sync.WaitGroup
	cores   int // that Go used before

	served, waiting atomic.Int64 // pages
}

// newPageThreads starts n threads. Go gets as many cores more until close: threads that compute all
// the time would delay responses to other connections.
func newPageThreads(cost time.Duration, size int64, n int) *pageThreads {
	p := &pageThreads{cost: cost, size: size, queue: make(chan chan struct{}), stop: make(chan struct{}), cores: runtime.GOMAXPROCS(0)}
	runtime.GOMAXPROCS(p.cores + n)
	for range n {
		p.running.Go(p.run)
	}
	return p
}

func (p *pageThreads) close() {
	if p == nil {
		return
	}
	close(p.stop)
	p.running.Wait()
	runtime.GOMAXPROCS(p.cores)
}

func (p *pageThreads) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var b burn.Burner
	for {
		select {
		case done := <-p.queue:
			b.For(p.cost)
			p.served.Add(1)
			done <- struct{}{}
		case <-p.stop:
			return
		}
	}
}

// errEnds ends the waits for a thread when the server is closed.
var errEnds = errors.New("the server ends")

// serve waits until a thread has served one page, or ctx ends. done has room for one.
func (p *pageThreads) serve(ctx context.Context, done chan struct{}) error {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	select {
	case p.queue <- done:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.stop:
		return errEnds
	}
	<-done
	return nil
}

// reader returns f so that each page that is read of it is served by one of the threads first.
func (p *pageThreads) reader(ctx context.Context, f io.ReadSeeker) io.ReadSeeker {
	if p == nil {
		return f
	}
	return &pageReader{ReadSeeker: f, ctx: ctx, threads: p, done: make(chan struct{}, 1), fresh: true}
}

// A pageReader reads page by page. The first page begins where reading begins, so that a
// range of a page's size is one page wherever it lies.
type pageReader struct {
	io.ReadSeeker
	ctx     context.Context
	threads *pageThreads
	done    chan struct{}
	left    int64 // bytes of the page that is served
	fresh   bool  // nothing was read yet
}

// Seek implements io.Seeker. The data after the new position belongs to another page.
func (r *pageReader) Seek(offset int64, whence int) (int64, error) {
	r.left = 0
	return r.ReadSeeker.Seek(offset, whence)
}

// Read implements io.Reader.
func (r *pageReader) Read(b []byte) (int, error) {
	size := r.threads.size
	if r.fresh || size > 0 && r.left == 0 {
		if err := r.threads.serve(r.ctx, r.done); err != nil {
			return 0, err
		}
		r.fresh, r.left = false, size
	}
	if size == 0 {
		return r.ReadSeeker.Read(b)
	}
	n, err := r.ReadSeeker.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	return n, err
}
