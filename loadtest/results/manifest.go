package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unicode/utf8"

	"weir/internal/lock"
)

// A Manifest lists what a run creates on its target, so that it removes that
// and nothing else, also after it was killed. Its methods may be called by
// several goroutines at once.
type Manifest struct {
	f       *os.File
	buffers sync.Pool // of *[]byte
}

// A Made is one file that the run created, or was about to create.
type Made struct {
	Path string // as in storage.Op: below the target, unescaped
	Size int64  // bytes
	Seed uint64 // which content, as package content makes it
}

// OpenManifest opens the manifest of run directory dir, a new one if there is
// none yet. A line that a killed run left unfinished is cut off: what it was to
// announce was never created.
func OpenManifest(dir string) (*Manifest, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, ManifestFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if err := cutTail(f); err != nil {
		return nil, fmt.Errorf("results: %w", errors.Join(err, f.Close()))
	}
	_ = lock.TryShared(f) // Resume waits until the last of a killed run's processes is gone
	m := &Manifest{f: f}
	m.buffers.New = func() any { b := make([]byte, 0, 256); return &b }
	return m, nil
}

// Created notes that path is about to be created. It is called before the
// creation; when it returns nil, the line is with the kernel.
func (m *Manifest) Created(path string, size int64, seed uint64) error {
	b := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(b)
	line := appendPath(append((*b)[:0], `{"op":"create",`...), path)
	line = strconv.AppendInt(append(line, `,"size_bytes":`...), size, 10)
	line = strconv.AppendUint(append(line, `,"seed":`...), seed, 10)
	*b = append(line, "}\n"...)
	return m.write(*b)
}

// Removed notes that path is gone. It is called after the removal.
func (m *Manifest) Removed(path string) error {
	b := m.buffers.Get().(*[]byte)
	defer m.buffers.Put(b)
	*b = append(appendPath(append((*b)[:0], `{"op":"remove",`...), path), "}\n"...)
	return m.write(*b)
}

// write needs no lock: the kernel appends each write whole.
func (m *Manifest) write(line []byte) error {
	if _, err := m.f.Write(line); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}

// appendPath writes path as JSON. A path that is no UTF-8 would not survive
// that, so it is written as base64 under another key.
func appendPath(b []byte, path string) []byte {
	if !utf8.ValidString(path) {
		raw, _ := json.Marshal([]byte(path)) // bytes always can
		return append(append(b, `"path_base64":`...), raw...)
	}
	b = append(b, `"path":`...)
	for i := range len(path) {
		if c := path[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			quoted, _ := json.Marshal(path) // strings always can
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), path...), '"')
}

// manifestLine is one line of the manifest.
type manifestLine struct {
	Op   string  `json:"op"` // create, remove
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

// Left returns what was created (or was about to be) and not removed, in the
// order of creation. Some of it may not exist: the run was killed in between.
func (m *Manifest) Left() ([]Made, error) {
	var made []Made
	index := map[string]int{} // path: place in made, plus one
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

// Close brings the manifest to the disk and closes it.
func (m *Manifest) Close() error {
	if err := errors.Join(m.f.Sync(), m.f.Close()); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}
