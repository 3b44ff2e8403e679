package results

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unicode/utf8"

	"weir/internal/lock"
)

// A Manifest lists the files that a run creates on its target, so that the run removes only these,
// even after it was killed. Its methods are safe for concurrent use.
type Manifest struct {
	f       *os.File
	buffers sync.Pool // of *[]byte
}

// A Made is one file that the run created, or was about to create.
type Made struct {
	Path string // as in storage.Op: below the target, unescaped
	Size int64  // bytes
	Seed uint64 // the content, as package content generates it
}

// OpenManifest opens the manifest of run directory dir, and creates it if necessary. A line that a
// killed run left unfinished is cut off: its file was never created.
func OpenManifest(dir string) (*Manifest, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ManifestFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := cutTail(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_ = lock.TryShared(f) // Resume waits until all processes of a killed run have ended
	m := &Manifest{f: f}
	m.buffers.New = func() any { b := make([]byte, 0, 256); return &b }
	return m, nil
}

// Created records that path is about to be created. It is called before the creation; after it has
// returned nil, the kernel has the line.
func (m *Manifest) Created(path string, size int64, seed uint64) error {
	b := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(b)
	line := appendPath(append((*b)[:0], `{"op":"create",`...), path)
	line = strconv.AppendInt(append(line, `,"size_bytes":`...), size, 10)
	line = strconv.AppendUint(append(line, `,"seed":`...), seed, 10)
	*b = append(line, "}\n"...)
	return m.write(*b)
}

// Removed records that path was removed. It is called after the removal.
func (m *Manifest) Removed(path string) error {
	b := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(b)
	*b = append(appendPath(append((*b)[:0], `{"op":"remove",`...), path), "}\n"...)
	return m.write(*b)
}

// write needs no lock: the kernel appends each write atomically.
func (m *Manifest) write(line []byte) error {
	if _, err := m.f.Write(line); err != nil {
		return err
	}
	return nil
}

// appendPath writes path as JSON. JSON cannot represent a path that is not UTF-8, so such a path is
// written as base64 under another key.
func appendPath(b []byte, path string) []byte {
	if !utf8.ValidString(path) {
		raw, _ := json.Marshal([]byte(path)) // never fails for bytes
		return append(append(b, `"path_base64":`...), raw...)
	}
	b = append(b, `"path":`...)
	for i := range len(path) {
		if c := path[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			quoted, _ := json.Marshal(path) // never fails for strings
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), path...), '"')
}

// manifestLine is one line of the manifest.
type manifestLine struct {
	Op   string  `json:"op"` // create or remove
	Path *string `json:"path,omitempty"`
	Raw  []byte  `json:"path_base64,omitempty"`
	Size int64   `json:"size_bytes,omitempty"`
	Seed uint64  `json:"seed,omitempty"`
}

func (l *manifestLine) check() error {
	if l.Op != "create" && l.Op != "remove" || (l.Path == nil) == (l.Raw == nil) {
		return errors.New(`damaged line: want {"op":"create" or "remove","path":...}`)
	}
	return nil
}

// Left returns the files that were created (or about to be created) and not removed, in the order
// of creation. Some of them may not exist: the run may have been killed before the creation.
func (m *Manifest) Left() ([]Made, error) {
	var made []Made
	index := map[string]int{} // path: index in made, plus one
	for l, err := range lines(m.f.Name(), (*manifestLine).check) {
		if err != nil {
			return nil, err
		}
		path := string(l.Raw)
		if l.Path != nil {
			path = *l.Path
		}
		if l.Op == "remove" {
			delete(index, path)
			continue
		}
		made = append(made, Made{path, l.Size, l.Seed})
		index[path] = len(made)
	}
	left := make([]Made, 0, len(index))
	for i, f := range made {
		if index[f.Path] == i+1 {
			left = append(left, f)
		}
	}
	return left, nil
}

// Close syncs the manifest to the disk and closes it.
func (m *Manifest) Close() error {
	if err := errors.Join(m.f.Sync(), m.f.Close()); err != nil {
		return err
	}
	return nil
}
