package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"weir/internal/durable"
	"weir/internal/token"
	"weir/serve"
	"weir/transfer"
)

// PartsClass is the compliance class (RFC 4918, section 10.1) with which OPTIONS reports Parts.
const PartsClass = "weir-parts"

// Parts is an Extension that keeps the received bytes of an interrupted upload to
// .weir/ITEM.EPOCH.part. The next attempt at the item, which has a later epoch, resumes the upload:
//
//	POST /.weir/ITEM.EPOCH.part?size=BYTES    takes over the latest part of the item that an earlier
//	                                          epoch left, and returns the checksums of its present bytes,
//	                                          as GET /.weir/chunks/ does; without a part, size_bytes is 0
//	PUT  /.weir/ITEM.EPOCH.part               with Content-Range: bytes FIRST-LAST/SIZE writes these
//
// The two requests need the right to modify exactly this name: a client that may write the part of
// an epoch may take over the parts of earlier epochs. Parts needs a folder that is not ReadOnly.
// The zero value with Busy is ready.
type Parts struct {
	// Busy reports whether another part of the process writes such a file of an item now. It is
	// called by several goroutines.
	Busy func(item int64) bool

	server *serve.Server
	root   *os.Root
	mu     sync.Mutex
	now    map[string]*writer // of each part: the latest request that changes it
}

// A writer is a request that changes a part.
type writer struct {
	r     *serve.Request
	ended atomic.Bool
	done  chan struct{}
}

// Attach implements serve.Extension.
func (p *Parts) Attach(s *serve.Server) (err error) {
	c := s.Config()
	if c.Dir == "" || c.ReadOnly {
		return errors.New("parts of uploads can be kept only in a folder that is written to")
	}
	p.server, p.now = s, map[string]*writer{}
	s.Announce(PartsClass)
	p.root, err = os.OpenRoot(c.Dir)
	return err
}

// Close implements serve.Extension.
func (p *Parts) Close() error { return p.root.Close() }

// Answer implements serve.Extension.
func (p *Parts) Answer(r *serve.Request) bool {
	h, ok := transfer.ParsePartName(r.Name)
	if !ok {
		return false
	}
	switch r.Method {
	case http.MethodPut, http.MethodDelete, http.MethodPost, "MKCOL", "MOVE":
	default:
		return false
	}
	if !r.Must(token.Modify, r.Name) {
		return true
	}
	mine, err := p.take(r.Context(), r.Name, r)
	if err != nil {
		r.FailWith(err)
		return true
	}
	defer p.leave(r.Name)
	switch {
	case r.Method == http.MethodPost:
		p.takeOver(r, h)
	case r.Method == http.MethodPut && r.Header.Get("Content-Range") != "":
		p.put(r, mine)
	default:
		r.Change()
	}
	return true
}

// errEnded ends a request whose part another request has taken over.
var errEnded = &serve.Refusal{Code: http.StatusLocked, Reason: "a later request for the same part has ended this one"}

// take ends the request that changes a part, and waits for its end. The caller calls leave after
// changing the part.
func (p *Parts) take(ctx context.Context, name string, r *serve.Request) (*writer, error) {
	mine := &writer{r: r, done: make(chan struct{})}
	for {
		p.mu.Lock()
		other := p.now[name]
		if other == nil {
			p.now[name] = mine
			p.mu.Unlock()
			return mine, nil
		}
		other.ended.Store(true)
		_ = http.NewResponseController(other.r.Response()).SetReadDeadline(time.Unix(1, 0)) // a request that cannot be woken ends later
		p.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond): // it may have moved the deadline just now
		}
	}
}

func (p *Parts) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.now[name].done)
	delete(p.now, name)
}

// takeOver handles POST.
func (p *Parts) takeOver(r *serve.Request, h transfer.LeaseID) {
	err := p.inherit(r, h)
	if err == nil {
		err = p.sync(r.Name) // the client does not send the reported bytes again
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.FailWith(err)
		return
	}
	p.server.Forget(r.Name)
	r.SendChunks()
}

// inherit renames the latest part of an item's earlier epochs to the name of r, if that name is
// free, and removes the other parts.
func (p *Parts) inherit(r *serve.Request, h transfer.LeaseID) error {
	if _, err := p.root.Stat(r.Name); err == nil || p.Busy(h.Item) {
		return nil
	}
	entries, err := fs.ReadDir(p.root.FS(), transfer.Hidden)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var last int64
	var earlier []int64
	for _, e := range entries {
		found, ok := transfer.ParsePartName(path.Join(transfer.Hidden, e.Name()))
		if ok && found.Item == h.Item && found.Epoch < h.Epoch && e.Type().IsRegular() {
			last, earlier = max(last, found.Epoch), append(earlier, found.Epoch)
		}
	}
	for _, epoch := range earlier {
		if err := p.succeed(r, transfer.PartName(h.Item, epoch), epoch == last); err != nil {
			return err
		}
	}
	if last > 0 && p.Busy(h.Item) { // it may have been opened here just before: then it cannot be trusted
		return p.root.Remove(r.Name)
	}
	return nil
}

// succeed ends the request that writes an earlier part, and then renames the part to the name of r
// or removes it.
func (p *Parts) succeed(r *serve.Request, name string, last bool) error {
	if _, err := p.take(r.Context(), name, r); err != nil {
		return err
	}
	defer p.leave(name)
	p.server.Forget(name)
	if !last {
		return p.root.Remove(name)
	}
	err := durable.RenameNew(p.root, nil, nil, name, r.Name)
	if errors.Is(err, fs.ErrExist) {
		err = serve.ErrExists
	}
	if err == nil {
		err = p.sync(transfer.Hidden)
	}
	return err
}

// sync flushes a file, or the names in a folder, to stable storage if the server does.
func (p *Parts) sync(name string) error {
	if !p.server.Config().Sync {
		return nil
	}
	f, err := p.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// put handles PUT of a range. The received bytes stay, even if they are incomplete.
func (p *Parts) put(r *serve.Request, mine *writer) {
	first, n, size, ok := parseRange(r.Header.Get("Content-Range"))
	if !ok || r.ContentLength != n {
		r.Fail(http.StatusBadRequest, "Content-Range is bytes FIRST-LAST/SIZE, and the body as long as that")
		return
	}
	quota := r.Quota() // for all that the part can become
	defer quota.Release()
	if err := quota.Take(size); err != nil {
		r.NotReceived(err)
		return
	}
	f, err := p.open(r.Name, first, size)
	if err != nil {
		r.FailWith(err)
		return
	}
	err = r.Receive(&partFile{f, mine}, nil)
	p.server.Forget(r.Name)
	if err != nil {
		_ = f.Close() // the received bytes stay
		r.NotReceived(err)
		return
	}
	if p.server.Config().Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		r.FailWith(err)
		return
	}
	r.Done(first == 0)
}

// parseRange parses a Content-Range.
func parseRange(text string) (first, n, size int64, ok bool) {
	var last int64
	_, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size)
	ok = err == nil && 0 <= first && first <= last && last < size
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return first, last - first + 1, size, ok && text == "bytes "+number(first)+"-"+number(last)+"/"+number(size)
}

// open opens a part of a file of size bytes, to be written in place from first on.
func (p *Parts) open(name string, first, size int64) (*os.File, error) {
	flags := os.O_WRONLY | syscall.O_NONBLOCK // a named pipe must not block
	before, err := p.root.Lstat(name)
	if first == 0 && errors.Is(err, fs.ErrNotExist) {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := p.root.OpenFile(name, flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		err = serve.ErrNoParent
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case before != nil && !os.SameFile(before, info), !info.Mode().IsRegular(), linked(info):
		err = fs.ErrPermission // it is written in place: it must not be another file's
	case first > info.Size():
		err = errHole
	case info.Size() > size:
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(first, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// errHole is the error for bytes that would leave a hole.
var errHole = &serve.Refusal{Code: http.StatusConflict, Reason: "the part has fewer bytes than come before these"}

// A partFile is a part that a request writes until another request takes it over.
type partFile struct {
	*os.File
	writer *writer
}

// Write implements io.Writer.
func (f *partFile) Write(p []byte) (int, error) {
	if f.writer.ended.Load() {
		return 0, errEnded
	}
	return f.File.Write(p)
}

// linked reports whether a file also has another name.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
