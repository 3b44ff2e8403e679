package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir/internal/lock"
	"weir/internal/redact"
	"weir/measure"
	"weir/monitor"
	"weir/scenario"
)

// A Writer fills a run directory while a run goes on. Every line reaches the
// kernel before the call that brings it returns, so a killed process loses
// nothing that was handed over. It is a measure.Sink and takes the hosts'
// samples; its methods may be called by several goroutines at once.
type Writer struct {
	dir       string
	about     About
	secrets   *redact.Values // of the plan; nil: none are known
	intervals *lineFile
	hosts     *lineFile
	events    *lineFile
	transfers *lineFile // nil: none was written yet
}

var _ measure.Sink = (*Writer)(nil)

// Create makes dir, with its parents, a run directory: about.json and
// plan.json are whole and on disk when it returns, without the secrets in URLs, which no
// text of an event repeats either. It refuses a folder that
// holds a run already or anything else that is not a run's own.
func Create(dir string, plan *scenario.Plan, about About) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if err := fresh(dir); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, about: about.complete(plan.Seed), secrets: new(redact.Values)}
	w.secrets.Learn(plan.Secrets()...)
	if err := w.begin(plan.Public()); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return w, nil
}

func (w *Writer) begin(plan *scenario.Plan) error {
	if err := writeOnce(w.dir, AboutFile, indented(w.about)); err != nil {
		return err
	}
	opened, err := w.grow()
	if err != nil {
		return err
	}
	// Whoever finds a plan finds the lock, too: the plan makes the folder a run directory.
	err = writeOnce(w.dir, PlanFile, indented(plan))
	if err != nil {
		for _, l := range opened {
			_ = l.close() // empty
		}
	}
	return err
}

// grow makes the files that grow, and locks the first.
func (w *Writer) grow() ([]*lineFile, error) {
	var opened []*lineFile
	for _, name := range []string{IntervalsFile, HostsFile, EventsFile} {
		l, err := newLineFile(filepath.Join(w.dir, name))
		if err != nil {
			for _, o := range opened {
				_ = o.close() // empty; the first error says more
			}
			return nil, err
		}
		opened = append(opened, l)
	}
	w.intervals, w.hosts, w.events = opened[0], opened[1], opened[2]
	_ = lock.Alone(w.intervals.f) // nobody else can have it; Resume and Follower.Over ask
	return opened, nil
}

// fresh tells whether a run may be written into dir. Only a manifest may be
// there before: files can be made on the target before the run begins.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case ManifestFile:
		case PlanFile, AboutFile, IntervalsFile:
			return fmt.Errorf("results: %s holds a run already: name another folder, or remove this one: %w", dir, fs.ErrExist)
		default:
			return fmt.Errorf("results: %s is not empty (it has %q): name an empty or new folder: %w", dir, e.Name(), fs.ErrExist)
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

// Hide has no event repeat the secrets of these addresses: of a run that is resumed, whose
// plan.json does not have them.
func (w *Writer) Hide(addresses ...string) { w.secrets.Learn(addresses...) }

// Dir returns the run directory's path.
func (w *Writer) Dir() string { return w.dir }

// About returns what about.json holds.
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

// Transfer appends t to transfers.jsonl, which is made with the first. It is for one
// goroutine at a time.
func (w *Writer) Transfer(t *measure.Transfer) (err error) {
	if w.transfers == nil {
		if w.transfers, err = newLineFile(filepath.Join(w.dir, TransfersFile)); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	return appendJSON(w.transfers, t)
}

func appendJSON(l *lineFile, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends the line, too
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("results: %s: %w", l.f.Name(), err)
	}
	return l.append(b.Bytes())
}

// Close brings everything to the disk. The Writer can not be used after it.
func (w *Writer) Close() error {
	err := errors.Join(w.intervals.close(), w.hosts.close(), w.events.close())
	if w.transfers != nil {
		err = errors.Join(err, w.transfers.close())
	}
	if d, openErr := os.Open(w.dir); openErr == nil {
		_ = d.Sync() // not every file system can; the files themselves are safe
		_ = d.Close()
	}
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}
