package mover

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"sync"
	"time"

	"weir/internal/adler"
	"weir/transfer"
)

// A pull is one attempt to fetch a file.
type pull struct {
	m    *Mover
	l    transfer.Lease
	r    *reporter
	url  *url.URL
	part *part
	out  *transfer.Outcome

	queue queue
	bad   int // chunks that were wrong at the last comparison
	vain  int // rounds of fetching those chunks again without making them fewer

	mu        sync.Mutex
	tag       string // the source's identifier of this version of the file; "" if unknown
	sourceSum sum    // the checksum computed by the source
	asked     bool   // sourceSum was requested
	whole     bool   // the source does not serve ranges
	failed    int    // consecutive broken connections that transferred nothing
}

const (
	patience = 4       // consecutive failures
	inline   = 4 << 20 // for files up to this size the checksum is requested together with the data
)

// pull fetches a file.
func (m *Mover) pull(ctx context.Context, l transfer.Lease, r *reporter, out *transfer.Outcome) (err error) {
	p := &pull{m: m, l: l, r: r, out: out}
	if p.url, err = address(l.Source); err != nil {
		return err
	}
	has, same, err := m.there(ctx, l, func() (sum, error) { return p.wanted(ctx) }, r)
	if err != nil {
		return err
	}
	if same {
		m.discard(l.Item)
		return p.existed(ctx, has)
	}
	if p.part, err = m.openPart(l); err != nil {
		return err
	}
	defer func() { p.leave(ctx, err) }()
	p.tag, out.Resumed = p.part.from.tag, p.part.resumed
	if err = p.fetch(ctx); err == nil {
		err = p.verify(ctx)
	}
	out.Moved = r.moved.Load()
	if err != nil {
		return err
	}
	return p.commit(ctx)
}

// address parses the URL of an end.
func address(e transfer.End) (*url.URL, error) {
	if e.URL == "" {
		return nil, failf(transfer.Permanent, "site %s has no endpoint to copy from or to", e.Site)
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, failf(transfer.Permanent, "the address at site %s is no http or https URL", e.Site) // it may hold a secret
	}
	return u, nil
}

// discard removes the data that earlier attempts left.
func (m *Mover) discard(item int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch, there := m.kept[item]; there {
		m.made.remove(item, epoch)
		delete(m.kept, item)
	}
}

// existed records the outcome of a file that existed already, with the checksum has.
func (p *pull) existed(ctx context.Context, has uint32) error {
	want, err := p.wanted(ctx)
	p.out.Existed, p.out.Size, p.out.Adler, p.out.Verified = true, p.l.Size, adler.Text(has), want.known
	return err
}

// leave closes the part, and removes it if it cannot be resumed.
func (p *pull) leave(ctx context.Context, err error) {
	_ = p.part.close() // its errors would have been returned earlier
	if err != nil && !worthKeeping(troubleOf(ctx, err).fault) {
		p.part.remove()
	}
}

// fetch fetches all missing data.
func (p *pull) fetch(ctx context.Context) error {
	if p.l.Size == 0 {
		return p.look(ctx)
	}
	for again := 0; ; again++ {
		p.queue.fill(p.part, p.streams())
		err := p.run(ctx)
		switch {
		case errors.Is(err, errWhole) && again >= patience:
			return failf(transfer.Transient, "%s breaks off again and again, and gives no parts of files to go on with", p.url.Host)
		case errors.Is(err, errWhole): // from the start, in one request
			p.whole = true
		case errors.Is(err, errChanged) && again > 1:
			return failf(transfer.SourceBad, "%s changes while it is read", shown(p.url))
		case errors.Is(err, errChanged):
			p.tag = ""
		default:
			return err
		}
		for i := range p.part.chunks {
			p.part.void(i)
		}
		p.out.Resumed = 0
	}
}

// look checks that an empty file exists and is empty.
func (p *pull) look(ctx context.Context) error {
	a, reported, err := p.m.askHead(ctx, p.url, p.l.Source, 0, sum{})
	if err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return a.refused("read "+p.l.Name, transfer.SourceBad)
	}
	if a.ContentLength > 0 {
		return p.wrongSize(a.ContentLength)
	}
	p.sourceSum, p.asked = reported, true
	return nil
}

// streams returns the maximum number of connections for a file, see run. Files that are copied at
// the same time share them: writers of one file wait for each other.
func (p *pull) streams() int {
	switch {
	case p.whole:
		return 1
	case p.l.Streams > 0:
		return min(p.l.Streams, maxStreams)
	}
	return int(min(max(p.l.Size/worthStream, 1), max(defaultStreams/int64(p.m.atOnce()), 1)))
}

const (
	maxStreams     = 64
	defaultStreams = 4
	worthStream    = 256 << 20
)

// run fetches the spans in the queue over several connections at once, and in parallel it requests
// the checksum from the source. Unless the lease sets the number of connections, there is one until
// its round-trip time shows that the source is far away.
func (p *pull) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	if _, known := p.need(); !known && p.l.Size > inline {
		all.Go(func() {
			if _, err := p.wanted(ctx); err != nil {
				cancel(err)
			}
		})
	}
	n := min(p.streams(), p.queue.len())
	var more func()
	stream := func() {
		if err := p.stream(ctx, n > 1, more); err != nil {
			cancel(err)
		}
	}
	more = sync.OnceFunc(func() {
		for range n - 1 {
			all.Go(stream)
		}
	})
	if p.l.Streams > 0 {
		more()
	}
	all.Go(stream)
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// need returns the checksum to compare with, as far as it is known already: the checksum of the
// catalog, otherwise that of the source.
func (p *pull) need() (sum, bool) {
	if s := catalogSum(p.l); s.known {
		return s, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sourceSum, p.asked
}

// wanted returns the checksum to compare with; it requests it from the source if necessary. Without
// any checksum the file must not be copied, unless the lease allows it.
func (p *pull) wanted(ctx context.Context) (sum, error) {
	s, known := p.need()
	if !known {
		var err error
		if s, err = p.askSource(ctx); err != nil {
			return s, err
		}
	}
	if !s.known && !p.l.Unchecked {
		return s, failf(transfer.Unverified, "neither the catalog nor %s tells the adler32 of %s", p.url.Host, p.l.Name)
	}
	return s, nil
}

// askSource requests the checksum from the source.
func (p *pull) askSource(ctx context.Context) (sum, error) {
	a, reported, err := p.m.askHead(ctx, p.url, p.l.Source, p.l.Size, sum{})
	if err != nil {
		return sum{}, err
	}
	if a.StatusCode != http.StatusOK {
		return sum{}, a.refused("ask for the checksum of "+p.l.Name, transfer.SourceBad)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sourceSum, p.asked = reported, true
	return reported, nil
}

// commit puts the file on stable storage under its name.
func (p *pull) commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.r.stage(transfer.Committing)
	p.out.Size = p.l.Size
	if !p.m.opt.Unread {
		p.out.Adler = adler.Text(p.part.sum())
	}
	err := p.m.saver.save(p.part, p.l.Dest.Path)
	if !errors.Is(err, fs.ErrExist) {
		if err == nil {
			p.part.done()
		}
		return err
	}
	_, same, err := p.m.there(ctx, p.l, func() (sum, error) { return sum{p.part.sum(), true}, nil }, p.r) // another process was quicker
	if same {
		p.out.Existed = true
		p.part.remove()
	} else if err == nil {
		err = failf(transfer.Transient, "%s was there and is gone again", p.l.Dest.Path)
	}
	return err
}

func (p *pull) wrongSize(size int64) error {
	return failf(transfer.SourceBad, "%s has %d bytes, not the %d of the catalog", shown(p.url), size, p.l.Size)
}

// again reports whether a stream should try again after its connection broke. It waits for a short
// pause. Each received byte resets the number of failures.
func (p *pull) again(ctx context.Context, brought int64, err error) bool {
	if !broken(err) || ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	p.failed++
	if brought > 0 {
		p.failed = 1
	}
	n := p.failed
	p.mu.Unlock()
	if n >= patience {
		return false
	}
	t := time.NewTimer(time.Duration(50<<n) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
