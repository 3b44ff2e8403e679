package batch

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"weir/internal/durable"
)

// A Submission is the record that Submit writes to Work.Dir before it makes anything that must be
// found again. It holds no secrets.
type Submission struct {
	System string            `json:"system"`
	Tag    string            `json:"tag"` // a random word that marks everything of this submission
	Begin  time.Time         `json:"begin"`
	Count  int               `json:"count"`
	IDs    []string          `json:"ids,omitempty"`    // the system's names of its jobs, once known
	Step   int               `json:"step,omitempty"`   // workers in each of IDs except the last
	Hosts  []string          `json:"hosts,omitempty"`  // machines of the workers
	Places map[string]string `json:"places,omitempty"` // folders that were made, by machine
	// Options are the Options of the Work: reaching a machine again may need them.
	Options []string `json:"options,omitempty"`
	Over    bool     `json:"over,omitempty"` // nothing is left outside Dir

	dir string
}

// SubmissionFile is the name of a Submission in the folder of its Work.
const SubmissionFile = "submission.json"

// Begin checks w, makes its folder, writes a new submission to it, and makes the paths in w absolute.
func Begin(system string, w *Work) (*Submission, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	s := &Submission{
		System: system, Tag: "weir-" + strings.ToLower(rand.Text()[:13]), Begin: time.Now(),
		Count: w.Count, Hosts: w.Hosts, Options: w.Options, Places: map[string]string{}, dir: w.Dir,
	}
	if old, err := ReadSubmission(w.Dir, system); err == nil && !old.Over {
		return nil, fmt.Errorf("%s has a submission already, which has not been removed", w.Dir)
	}
	if err := os.MkdirAll(filepath.Join(w.Dir, "out"), 0o755); err != nil {
		return nil, err
	}
	return s, s.Write()
}

// Out returns the folder for the outputs of a worker.
func (s *Submission) Out(worker int) string {
	return filepath.Join(s.dir, "out", strconv.Itoa(worker))
}

// Dir returns the folder of the Work.
func (s *Submission) Dir() string { return s.dir }

// Write replaces the file of the submission. A concurrent reader finds either the old or the new
// content.
func (s *Submission) Write() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(s.dir, SubmissionFile), append(text, '\n'), 0o644)
}

// ReadSubmission reads the submission of an earlier run in dir. The error is fs.ErrNotExist if it
// has submitted nothing to system.
func ReadSubmission(dir, system string) (*Submission, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, SubmissionFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Submission{dir: dir}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case s.System != system:
		return nil, fmt.Errorf("%s is of %s, not of %s: %w", path, strconv.Quote(s.System), system, fs.ErrNotExist)
	case !tagged.MatchString(s.Tag) || s.Count < 0 || s.Count > mostWorkers:
		return nil, fmt.Errorf("%s: this is not what weir has written", path)
	}
	if s.Places == nil {
		s.Places = map[string]string{}
	}
	return s, nil
}

// mostWorkers protects a site's queue from a mistyped number of workers.
const mostWorkers = 100_000

var (
	tagged = regexp.MustCompile(`^weir-[a-z0-9]{13}$`)
	plain  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
)

// check validates a work before anything is done, and makes its paths absolute.
func (w *Work) check() error {
	if w.Count < 1 || w.Count > mostWorkers {
		return fmt.Errorf("%d workers: use 1 to %d", w.Count, mostWorkers)
	}
	var errs [4]error
	w.Dir, errs[0] = filepath.Abs(w.Dir)
	w.Program, errs[1] = filepath.Abs(w.Program)
	info, err := os.Stat(w.Program)
	if errs[2] = err; err == nil && (info.Mode().Perm()&0o111 == 0 || !info.Mode().IsRegular()) {
		errs[3] = fmt.Errorf("%s is not a program", w.Program)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if strings.ContainsAny(strings.Join(w.Args, ""), "\x00\n\r") {
		return errors.New("an argument of the workers has more than one line")
	}
	return w.names()
}

// names checks the files of a work: each name is unique, and plain in all shells.
func (w *Work) names() error {
	used := map[string]bool{"weir": true, "stdout": true, "stderr": true, filepath.Base(w.Program): true}
	files := make([]string, len(w.Files))
	for i, f := range w.Files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		info, err := os.Stat(abs)
		if err != nil {
			return err
		}
		if files[i] = abs; !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file", f)
		}
	}
	w.Files = files
	for _, f := range w.Files {
		name := filepath.Base(f)
		if used[name] || !plain.MatchString(name) {
			return fmt.Errorf("%s cannot be the name of a file of the workers", strconv.Quote(name))
		}
		used[name] = true
	}
	return nil
}
