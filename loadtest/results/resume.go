package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/internal/lock"
	"weir/internal/redact"
)

// ErrBusy is the error for a run directory that another process is writing.
var ErrBusy = errors.New("another process is writing this run")

// Resume opens the run directory dir, whose run was interrupted, to continue writing. It returns
// the errors of Open, and ErrBusy for a run that a live process is still writing. An incomplete
// last line is cut off; nothing else is changed. It waits up to ten seconds for workers of a killed
// run to end.
//
// The caller writes an event "resume", which records that the run continues and which step was
// interrupted; see [Run.Progress].
func Resume(dir string) (*Writer, *Run, error) {
	run, err := Open(dir)
	if err != nil {
		return nil, nil, err
	}
	w := &Writer{dir: dir, about: run.About, secrets: new(redact.Values), resumed: true}
	if err := w.reopen(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	run.Torn = nil
	return w, run, nil
}

// reopenLineFile opens a file of an interrupted run, which need not exist.
func reopenLineFile(path string) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return linesOf(f), nil
}

// reopen opens the files that grow and repairs their ends.
func (w *Writer) reopen() (err error) {
	if err := w.grow(reopenLineFile); err != nil {
		return err
	}
	for _, l := range []*lineFile{w.intervals, w.hosts, w.events} {
		if err == nil {
			l.size, err = mend(l.f)
		}
	}
	if err == nil {
		err = unattended(filepath.Join(w.dir, ManifestFile))
	}
	if err != nil {
		for _, l := range []*lineFile{w.intervals, w.hosts, w.events} {
			_ = l.f.Close() // the first error is more helpful
		}
	}
	return err
}

// taken locks f exclusively. It returns true if another process holds the lock. If there are no
// locks (some network file systems), it returns false. Followers hold the lock for an instant to
// test it; taken waits for them.
func taken(f *os.File) bool {
	for range 20 {
		if !errors.Is(lock.Alone(f), lock.ErrTaken) {
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
	return true
}

// mend makes f end with a newline: a complete last line is terminated, an incomplete last line is
// cut off. It returns f's size.
func mend(f *os.File) (int64, error) {
	at, text, err := lastLine(f)
	if err != nil || len(text) == 0 {
		return at, err
	}
	if len(text) < longest && json.Valid(text) {
		_, err = f.WriteString("\n")
		return at + int64(len(text)) + 1, err
	}
	return at, f.Truncate(at)
}

// unattended waits until no process has the manifest at path open any more: workers of a run that
// was killed detect that with a small delay.
func unattended(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for range 100 {
		if !taken(f) { // which takes a tenth of a second
			return nil
		}
	}
	return fmt.Errorf("its manifest is still open: %w", ErrBusy)
}
