package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"weir/internal/durable"
)

// A Journal is a file of JSON lines that is appended to: the requests of a challenge, each written
// before it is sent. It is safe for concurrent use.
type Journal struct {
	mu sync.Mutex
	f  *os.File
}

// OpenJournal opens the journal of the given name in a folder, which it creates if necessary, and
// passes each line to read. A last line that was cut off by a kill is removed. The caller closes it.
func OpenJournal(dir, name string, read func(line []byte) error) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{f: f}
	if err := errors.Join(j.replay(read), durable.SyncFolder(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
	}
	return j, nil
}

func (j *Journal) replay(read func([]byte) error) error {
	text, err := io.ReadAll(j.f)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err := j.f.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := j.f.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	n := 0
	for line := range bytes.Lines(text[:whole]) {
		n++
		if err := read(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// Append appends a value as a line and returns once it is on stable storage.
func (j *Journal) Append(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.Write(append(line, '\n')); err != nil {
		return err
	}
	return j.f.Sync()
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }
