package serve

import (
	"path"
	"time"

	"weir/internal/content"
)

// A memUpload compares the received bytes with content of package content. It keeps bytes only
// until it is sure, or if it is something else.
type memUpload struct {
	t    *synthetic
	name string
	size int64
	seed uint64
	made bool   // all bytes so far are content of seed
	kept []byte // all bytes so far, unless made
	held int64  // number of them in t.bytes
}

func (t *synthetic) create(name string) (upload, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if _, err := t.folder(name); err != nil {
		return nil, err
	}
	if n := t.find(name); n != nil && n.children != nil {
		return nil, ErrIsFolder
	} else if n == nil && t.nodes >= t.most {
		return nil, errFull
	}
	return &memUpload{t: t, name: name}, nil
}

// Write implements io.Writer. Its error is errFull.
func (u *memUpload) Write(p []byte) (int, error) {
	switch {
	case u.made && content.Equal(p, u.seed, u.size):
		u.size += int64(len(p))
		return len(p), nil
	case u.made: // until here it was: make it again, and keep it
		if err := u.hold(u.size); err != nil {
			return 0, err
		}
		u.kept = make([]byte, u.size)
		content.Fill(u.kept, u.seed, 0)
		u.made = false
	case u.size+int64(len(p)) < content.HeadSize: // too short to recognize, and too short to count
		u.kept = append(u.kept, p...)
		u.size += int64(len(p))
		return len(p), nil
	case u.size < content.HeadSize:
		if u.recognize(p) {
			return len(p), nil
		}
		if err := u.hold(u.size); err != nil {
			return 0, err
		}
	}
	if err := u.hold(int64(len(p))); err != nil {
		return 0, err
	}
	u.kept = append(u.kept, p...)
	u.size += int64(len(p))
	return len(p), nil
}

// recognize takes p, which completes a head or ends the upload, if it can be
// made again together with the few bytes before it.
func (u *memUpload) recognize(p []byte) bool {
	var first [content.HeadSize]byte
	n := copy(first[:], u.kept)
	n += copy(first[n:], p)
	seed, ok := content.Recognize(first[:n])
	if !ok || !content.Equal(p, seed, u.size) {
		return false
	}
	u.seed, u.size, u.made, u.kept = seed, u.size+int64(len(p)), true, nil
	return true
}

// hold books n more bytes of memory.
func (u *memUpload) hold(n int64) error {
	u.t.mu.Lock()
	defer u.t.mu.Unlock()
	if u.t.bytes+n > u.t.limit {
		return errFull
	}
	u.t.bytes += n
	u.held += n
	return nil
}

func (u *memUpload) free() {
	u.t.mu.Lock()
	defer u.t.mu.Unlock()
	u.t.bytes -= u.held
	u.held = 0
}

func (u *memUpload) abort() { u.free() }

func (u *memUpload) commit(replace bool) (entry, bool, error) {
	if u.size < content.HeadSize && !u.recognize(nil) {
		if err := u.hold(u.size); err != nil {
			return entry{}, false, err
		}
	}
	n := &node{modified: time.Now(), size: u.size, seed: u.seed}
	if !u.made {
		n.kept = append(make([]byte, 0, len(u.kept)), u.kept...)
	}
	u.t.mu.Lock()
	there := u.t.find(u.name)
	err := u.publish(n, there, replace)
	u.t.mu.Unlock()
	if err != nil {
		u.free()
		return entry{}, false, err
	}
	return n.entry(u.name), there == nil, nil
}

// publish makes n a file; its memory is then the tree's. The caller holds t.mu.
func (u *memUpload) publish(n, there *node, replace bool) error {
	f, err := u.t.folder(u.name)
	switch {
	case err != nil:
		return err
	case there != nil && there.children != nil:
		return ErrIsFolder
	case there != nil && !replace:
		return ErrExists
	}
	return u.t.put(f, path.Base(u.name), n)
}
