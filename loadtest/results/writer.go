package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/internal/durable"
	"weir/internal/redact"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// A Writer writes a run directory during a run. Every line reaches the kernel before its call
// returns, so a killed process loses no line, unless the disk accepts nothing for 0.2 s: then lines
// wait in memory. It is a measure.Sink and accepts the hosts' samples; its methods are safe for
// concurrent use, except Transfer and LinkInterval.
type Writer struct {
	dir       string
	about     About
	secrets   *redact.Values // of the plan; nil: no secrets are known
	intervals *lineFile
	hosts     *lineFile
	events    *lineFile
	transfers *lineFile // nil: no transfer was written yet
	links     *lineFile // nil: no interval of a link was written yet
	resumed   bool      // the run had files before

	opening sync.Mutex // of transfers
}

var _ measure.Sink = (*Writer)(nil)

// Create makes dir, with its parents, a run directory: about.json and plan.json are complete and on
// disk when it returns, without the secrets in URLs, which texts of events do not contain either.
// It returns an error if the folder already contains a run, or files that do not belong to a run.
func Create(dir string, plan *scenario.Plan, about About) (*Writer, error) {
	made := Missing(filepath.Clean(dir))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := fresh(dir); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, about: about.complete(plan.Seed), secrets: new(redact.Values)}
	w.secrets.Learn(plan.Secrets()...)
	if err := w.begin(plan.Public()); err != nil {
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, ErrBusy) { // it has no other run's files
			err = errors.Join(err, Discard(filepath.Clean(dir), made))
		}
		return nil, err
	}
	return w, nil
}

func (w *Writer) begin(plan *scenario.Plan) error {
	if err := writeOnce(w.dir, AboutFile, indented(w.about)); err != nil {
		return err
	}
	if err := w.grow(newLineFile); err != nil {
		return err
	}
	// The plan makes the folder a run directory, so the lock must exist before it.
	recorded := *plan
	recorded.Version = scenario.PlanVersion
	err := writeOnce(w.dir, PlanFile, indented(&recorded))
	if err != nil {
		_ = errors.Join(w.intervals.close(), w.hosts.close(), w.events.close()) // empty
	}
	return err
}

// grow opens the files that grow with open, and locks the first file. It returns open's error; then
// all files are closed.
func (w *Writer) grow(open func(path string) (*lineFile, error)) (err error) {
	var opened []*lineFile
	for _, name := range []string{IntervalsFile, HostsFile, EventsFile} {
		l, err := open(filepath.Join(w.dir, name))
		if err == nil {
			opened = append(opened, l)
			if len(opened) == 1 && taken(l.f) {
				err = ErrBusy
			}
		}
		if err != nil {
			for _, o := range opened {
				_ = o.f.Close() // nothing was written; the first error is more helpful
			}
			return err
		}
	}
	w.intervals, w.hosts, w.events = opened[0], opened[1], opened[2]
	return nil
}

// fresh returns an error unless a run may be written into dir. Only a manifest may exist already:
// files can be made on the target before the run begins.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case ManifestFile:
		case PlanFile, AboutFile, IntervalsFile:
			return fmt.Errorf("%s holds a run already: name another folder, or remove this one: %w", dir, fs.ErrExist)
		default:
			return fmt.Errorf("%s is not empty (it has %q): name an empty or new folder: %w", dir, e.Name(), fs.ErrExist)
		}
	}
	return nil
}

func indented(v any) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
}

// Hide removes the secrets of these addresses from events: for a resumed run, whose plan.json does
// not contain them.
func (w *Writer) Hide(addresses ...string) { w.secrets.Learn(addresses...) }

// Dir returns the run directory's path.
func (w *Writer) Dir() string { return w.dir }

// About returns the content of about.json.
func (w *Writer) About() About { return w.about }

// Interval appends iv to intervals.jsonl.
func (w *Writer) Interval(iv *measure.Interval) error { return appendJSON(w.intervals, iv) }

// Sample appends s to hosts.jsonl.
func (w *Writer) Sample(s *monitor.Sample) error {
	if s.Error != "" {
		own := *s
		own.Error = w.secrets.Text(s.Error)
		s = &own
	}
	return appendJSON(w.hosts, s)
}

// Event appends e to events.jsonl.
func (w *Writer) Event(e measure.Event) error {
	e.Text = w.secrets.Text(strings.ToValidUTF8(e.Text, "\uFFFD"))
	return appendJSON(w.events, e)
}

// Transfer appends t to transfers.jsonl, which is created with the first transfer. It must not be
// called concurrently.
func (w *Writer) Transfer(t *Transfer) error {
	if w.transfers == nil {
		l, err := w.later(TransfersFile)
		if err != nil {
			return err
		}
		w.opening.Lock()
		w.transfers = l
		w.opening.Unlock()
	}
	return appendJSON(w.transfers, t)
}

func appendJSON(l *lineFile, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // also terminates the line
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%s: %w", l.f.Name(), err)
	}
	return l.append(b.Bytes())
}

// Close syncs everything to the disk. The Writer must not be used after it.
func (w *Writer) Close() error {
	err := errors.Join(w.intervals.close(), w.hosts.close(), w.events.close())
	for _, l := range []*lineFile{w.transfers, w.links} {
		if l != nil {
			err = errors.Join(err, l.close())
		}
	}
	if d, openErr := os.Open(w.dir); openErr == nil {
		_ = d.Sync() // not every file system supports it; the files themselves are safe
		_ = d.Close()
	}
	return err
}

// WriteFile writes a file that is made after a run, atomically: readers see the old content until
// the new content is complete on disk.
func WriteFile(dir, name string, write func(io.Writer) error) error {
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, and a file was to be written", filepath.Join(dir, name))
	}
	if err := durable.WriteFunc(filepath.Join(dir, name), 0o644, write); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeOnce is WriteFile for a file that must not exist yet. Its temporary name is fixed, so that
// only one writer succeeds if two write at the same time.
func writeOnce(dir, name string, write func(io.Writer) error) error {
	temp, final := filepath.Join(dir, "."+name+".new"), filepath.Join(dir, name)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another run begins in %s at this moment, or died when it did: name another folder, or remove %s: %w", dir,
			temp, fs.ErrExist)
	}
	if err != nil {
		return err
	}
	if _, err = os.Lstat(final); err == nil {
		err = &fs.PathError{Op: "create", Path: final, Err: fs.ErrExist}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = fill(f, write)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, final)
	}
	if err != nil {
		_ = os.Remove(temp) // the first error is more helpful
		return fmt.Errorf("%s: %w", final, err)
	}
	return nil
}

// fill writes f with write and syncs it to the disk.
func fill(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// A lineFile is a file to which complete lines are appended, one system call each, so that a sudden
// end of the process loses at most the line that is being written. A separate goroutine writes
// them: a disk that accepts nothing for seconds, for example because the load itself fills it, must
// not delay the measurement.
type lineFile struct {
	f    *os.File
	size int64 // bytes of whole lines
	dead error // set if the file no longer ends with a newline

	mu      sync.Mutex
	changed *sync.Cond // a line was written
	waiting []waitingLine
	writing bool  // a goroutine is writing lines
	late    bool  // the disk is slow: callers do not wait for it
	missed  error // error of a line whose caller did not wait
	added   int64 // lines so far
	ended   int64 // of these written, or failed
	lost    error // of the first line that failed
	closed  bool
}

// A waitingLine is a line to be written. done receives the result.
type waitingLine struct {
	text []byte
	done chan error
}

const (
	diskPatience = 200 * time.Millisecond // maximum time for a line
	mostLines    = 1 << 15                // maximum number of waiting lines
)

// newLineFile creates path, which must not exist.
func newLineFile(path string) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return linesOf(f), nil
}

// linesOf returns a lineFile that appends to f.
func linesOf(f *os.File) *lineFile {
	l := &lineFile{f: f}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// append writes line, which ends with a newline. It returns when the line is in the file or, if
// that takes long, immediately: the next call then returns the error.
func (l *lineFile) append(line []byte) error {
	w := waitingLine{line, make(chan error, 1)}
	l.mu.Lock()
	for len(l.waiting) >= mostLines {
		l.changed.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return fmt.Errorf("%s: %w", l.f.Name(), os.ErrClosed)
	}
	l.waiting, l.added = append(l.waiting, w), l.added+1
	if !l.writing {
		l.writing = true
		go l.run()
	}
	missed := l.missed
	l.missed = nil
	late := l.late
	l.mu.Unlock()
	if late {
		return missed
	}
	patience := time.NewTimer(diskPatience)
	defer patience.Stop()
	select {
	case err := <-w.done:
		return errors.Join(missed, err)
	case <-patience.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-w.done: // just now: run would not report it
		return errors.Join(missed, err)
	default:
		l.late = true
		return missed
	}
}

// run writes the lines until no line waits.
func (l *lineFile) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		err := l.write(w.text)
		w.done <- err
		l.mu.Lock()
		l.ended++
		if l.lost == nil {
			l.lost = err
		}
		if err != nil && l.late {
			l.missed = err
		}
		l.changed.Broadcast()
	}
	l.waiting, l.late, l.writing = nil, false, false
	l.changed.Broadcast()
}

// write writes a line. If the disk accepts only a part of it, the part is cut off again.
func (l *lineFile) write(line []byte) error {
	if l.dead != nil {
		return l.dead
	}
	n, err := l.f.Write(line)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	err = fmt.Errorf("%w; everything before is kept", err) // a *fs.PathError has the name
	if n > 0 {
		if cut := l.f.Truncate(l.size); cut != nil {
			l.dead = err
		}
	}
	return err
}

func (l *lineFile) close() error {
	l.mu.Lock()
	l.closed = true
	for l.writing {
		l.changed.Wait()
	}
	missed := l.missed
	l.missed = nil
	l.mu.Unlock()
	return errors.Join(missed, l.f.Sync(), l.f.Close())
}
