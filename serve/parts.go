package serve

import (
	"context"
	"encoding/json"
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

	"weir/internal/token"
)

// With Config.Parts what a broken upload to .weir/ITEM.EPOCH.part has brought stays,
// so that the next attempt at the item, which has a later epoch, goes on with it:
//
//	POST /.weir/ITEM.EPOCH.part?size=BYTES    takes over the latest part of the item that an earlier
//	                                          epoch left, and tells the checksums of what is there now, as
//	                                          GET /.weir/chunks/ does; of nothing size_bytes is 0
//	PUT  /.weir/ITEM.EPOCH.part               with Content-Range: bytes FIRST-LAST/SIZE writes these
//
// Both need the right to modify that very name, and no other: who may write the part
// of an epoch may take over those of earlier ones. OPTIONS tells of it with the
// compliance class weir-parts (RFC 4918, section 10.1).
const (
	partsFolder = ".weir"
	partsClass  = "weir-parts"
)

// partOf reads ITEM.EPOCH.part in partsFolder, and no other name.
func partOf(name string) (item, epoch int64, ok bool) {
	folder, base := path.Split(name)
	_, err := fmt.Sscanf(base, "%d.%d"+partSuffix, &item, &epoch)
	return item, epoch, err == nil && folder == partsFolder+"/" && item > 0 && epoch > 0 && name == partName(item, epoch)
}

func partName(item, epoch int64) string {
	return fmt.Sprintf("%s/%d.%d%s", partsFolder, item, epoch, partSuffix)
}

// keeps says whether name is one whose broken uploads are kept.
func (s *Server) keeps(name string) (ok bool) {
	if s.conf.Parts != nil {
		_, _, ok = partOf(name)
	}
	return ok
}

// errEnded says that somebody else writes the same part now.
var errEnded = errors.New("a later request for the same part has ended this one")

// A turn is a request that changes a part.
type turn struct {
	r     *request
	ended atomic.Bool
	done  chan struct{}
}

// turns see to it that each part is changed by one request at a time, the latest.
type turns struct {
	mu  sync.Mutex
	now map[string]*turn
}

// take ends the request that changes a part, and waits for its end. Who has taken a
// turn leaves it.
func (t *turns) take(ctx context.Context, name string, r *request) (*turn, error) {
	mine := &turn{r: r, done: make(chan struct{})}
	for {
		t.mu.Lock()
		other := t.now[name]
		if other == nil {
			if t.now == nil {
				t.now = map[string]*turn{}
			}
			t.now[name] = mine
			t.mu.Unlock()
			return mine, nil
		}
		other.ended.Store(true)
		_ = http.NewResponseController(other.r.w).SetReadDeadline(time.Unix(1, 0)) // who cannot be woken ends later
		t.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond): // it may have moved the deadline just now
		}
	}
}

func (t *turns) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.now[name].done)
	delete(t.now, name)
}

// changePart is change for a part.
func (s *Server) changePart(r *request) {
	if !r.must(token.Modify, r.name) {
		return
	}
	mine, err := s.turns.take(r.Context(), r.name, r)
	if err != nil {
		r.failed(err)
		return
	}
	defer s.turns.leave(r.name)
	switch {
	case r.Method == http.MethodPost:
		s.goOn(r)
	case r.Method == http.MethodPut && r.Header.Get("Content-Range") != "":
		s.putPart(r, mine)
	default:
		s.change(r)
	}
}

// goOn answers POST.
func (s *Server) goOn(r *request) {
	err := s.inherit(r)
	if err != nil {
		r.failed(err)
		return
	}
	f, err := s.tree.open(r.name)
	if errors.Is(err, fs.ErrNotExist) {
		r.w.Header().Set("Content-Type", "application/json")
		r.broken(json.NewEncoder(uncounted{r.w}).Encode(chunkSums{Adler: []string{}}))
		return
	}
	if err != nil {
		r.failed(err)
		return
	}
	defer f.close()
	if f.dir {
		r.failed(errIsDir)
		return
	}
	if t, ok := s.tree.(*dirTree); ok && t.sync { // what is told of need not be sent again
		if err := t.syncFolder(r.name); err != nil {
			r.failed(err)
			return
		}
	}
	s.sums.forget(r.name, false)
	s.getChunks(r, f)
}

// inherit gives the latest part that earlier epochs of r's item left its name, if
// that is free, and removes the others.
func (s *Server) inherit(r *request) error {
	item, epoch, _ := partOf(r.name)
	if _, err := s.tree.stat(r.name); err == nil {
		return nil
	}
	var last int64
	var all []int64
	err := s.tree.list(partsFolder, func(e entry) error {
		if i, before, ok := partOf(path.Join(partsFolder, e.name)); ok && i == item && before < epoch && !e.dir {
			last, all = max(last, before), append(all, before)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.conf.Parts(item) {
		return nil
	}
	for _, before := range all {
		if err := s.succeed(r, partName(item, before), before == last); err != nil {
			return err
		}
	}
	if last > 0 && s.conf.Parts(item) { // somebody here may have opened it just before: then it is no good
		return s.tree.remove(r.name)
	}
	return nil
}

// succeed ends who writes an earlier part, and makes it r's or removes it.
func (s *Server) succeed(r *request, name string, last bool) error {
	if _, err := s.turns.take(r.Context(), name, r); err != nil {
		return err
	}
	defer s.turns.leave(name)
	s.sums.forget(name, false)
	if !last {
		return s.tree.remove(name)
	}
	_, err := s.tree.rename(name, r.name, false)
	return err
}

// putPart answers PUT of a range. What has arrived stays, also if it is not all.
func (s *Server) putPart(r *request, mine *turn) {
	first, n, size, ok := rangeOf(r.Header.Get("Content-Range"))
	if !ok || r.ContentLength != n {
		r.fail(http.StatusBadRequest, "Content-Range is bytes FIRST-LAST/SIZE, and the body as long as that")
		return
	}
	room := s.room(r) // for all that the part can become
	defer room.give()
	if err := room.take(size); err != nil {
		r.notReceived(err)
		return
	}
	up, err := s.tree.(*dirTree).part(r.name, first, size, mine)
	if err != nil {
		r.failed(parentless(err))
		return
	}
	err = s.receive(r, up, nil)
	s.sums.forget(r.name, false)
	if err != nil {
		up.abort()
		r.notReceived(err)
		return
	}
	if _, _, err := up.commit(true); err != nil {
		r.failed(err)
		return
	}
	r.done(first == 0)
}

// rangeOf reads a Content-Range.
func rangeOf(text string) (first, n, size int64, ok bool) {
	var last int64
	_, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size)
	ok = err == nil && 0 <= first && first <= last && last < size
	return first, last - first + 1, size, ok && text == "bytes "+strconv.FormatInt(first, 10)+"-"+strconv.FormatInt(last, 10)+"/"+strconv.FormatInt(size, 10)
}

// A partUpload writes a range of a part in its place.
type partUpload struct {
	*os.File
	turn *turn
	sync bool
}

// part opens a part of a file of size bytes, to be written from first on.
func (t *dirTree) part(name string, first, size int64, mine *turn) (upload, error) {
	if err := t.parent(name); err != nil {
		return nil, err
	}
	flags := os.O_WRONLY | nonblock
	before, err := t.root.Lstat(name)
	if first == 0 && errors.Is(err, fs.ErrNotExist) {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := t.root.OpenFile(name, flags, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case before != nil && !os.SameFile(before, info), !info.Mode().IsRegular(), linked(info):
		err = fs.ErrPermission // it is written in its place: that must not be another file's
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
	return &partUpload{File: f, turn: mine, sync: t.sync}, nil
}

// errHole says that bytes before those that come are missing.
var errHole = fmt.Errorf("the part has fewer bytes than come before these: %w", syscall.EINVAL)

// Write implements io.Writer.
func (u *partUpload) Write(p []byte) (int, error) {
	if u.turn.ended.Load() {
		return 0, errEnded
	}
	return u.File.Write(p)
}

func (u *partUpload) commit(bool) (e entry, created bool, err error) {
	if u.sync {
		err = u.Sync()
	}
	return entry{}, false, errors.Join(err, u.Close())
}

func (u *partUpload) abort() { _ = u.Close() } // what came stays
