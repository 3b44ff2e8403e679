// Package command is the driver that runs any program as a client: a copy
// tool of the field, or a user's own analysis.
//
// A target's Command is either one word that names a preset (see Presets) or
// a program and its arguments with placeholders; no shell is involved.
//
//	{url}      URL of the file, escaped; only in XRootD's own schemes as it is
//	{path}     path of the file below the target, unescaped
//	{size}     bytes of the file
//	{offset}   first byte of the part wanted, 0 for the whole file
//	{length}   bytes of the part wanted, the size for the whole file
//	{dest}     a file that does not exist yet, for what is read
//	{source}   a file with what is to be written
//
// A brace itself is written {{. A command with {source} writes, any other
// reads; one that has only {url}, {path} and {size} can also be run as a job
// (see below). In front of a path that begins with a dash and would be taken for an
// option stands "./". Programs run in the folder that weir was started in,
// with its environment, LC_ALL=C and the target's credentials (X509_USER_PROXY,
// X509_CERT_DIR, BEARER_TOKEN and their kin). Op.Chunk and Op.Ahead are theirs
// to choose.
//
// # What is measured
//
// An operation lasts from before its process is made until after it is gone.
// Bytes are counted as the file {dest} grows, or as the kernel sees the
// program read {source} or write its output, every half second and exactly at
// the end. The end's number is, for reads: the size of {dest}; where a preset
// throws payload away, what the program says, or else the size expected, which
// the program must have written at least; where neither is known, the size
// from a Stat before (asked once for each file), or, where the preset has
// none, the payload goes to {dest} after all. A command of the user's own has
// a real file as {dest} always; without {dest}, the size expected is all there
// is, and without that nothing is counted. The first byte is reported when
// it is first counted, so it is late by up to half a second, and no other
// phase can be seen.
//
// # Jobs
//
// storage.Run runs the command as an analysis job on the file: it does what it
// likes, nothing is counted as payload, and an exit status other than 0 is a
// failure of class Other, whatever the program says. Each job starts in an empty
// folder of its own (also its TMPDIR), which is removed when the job has ended.
//
// # What a program used
//
// CPU time and memory are the operating system's (wait4): those of the program
// and of all descendants that were waited for. What a program leaves behind is
// ended with it and not in its figures. Memory is that of the largest single process. The
// kernel's figure begins with the size of this very process, so that for smaller
// programs what was seen while they ran is told: 5 ms after their start, and
// again whenever they are a sixth older, or half a second; 0 is unknown.
//
// An external program leaves files: content to be written is made once for
// each seed and size, below os.TempDir(), in the time of the first operation
// that wants it. All files go when the service is closed.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"

	"weir/storage"
)

// Driver returns the driver. Its Kinds are what some preset can do: a kind
// that a command cannot do fails with errors.ErrUnsupported.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    "command",
		Schemes: []string{"root", "roots", "xroot", "xroots", "gsiftp", "ftp", "sftp", "srm"},
		Kinds:   []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir, storage.Remove, storage.Checksum, storage.Run},
		Open:    open,
	}
}

// A service is one command on one target. What changes is under mu or in
// parts that guard themselves.
type service struct {
	place    place
	tool     tool
	env      []string
	secrets  []string // never to be shown
	conf     string   // curl's configuration, "" if it has none
	dir      string   // scratch folder, removed by Close
	manifest *os.File // of dir, locked
	starter  *starter
	sources  *sources
	clients  atomic.Int64

	mu    sync.Mutex
	sizes map[string]int64 // by path, from Stat
}

func open(_ context.Context, t storage.Target) (storage.Service, error) {
	s, err := newService(t)
	if err != nil {
		return nil, fmt.Errorf("driver command: %w", err)
	}
	return s, nil
}

func newService(t storage.Target) (*service, error) {
	where, err := newPlace(t.URL)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(t.Command)
	if err != nil {
		return nil, err
	}
	if err := chosen.find(); err != nil {
		return nil, err
	}
	dir, manifest, err := makeFolder()
	if err != nil {
		return nil, err
	}
	s := &service{place: where, tool: chosen, dir: dir, manifest: manifest, sizes: map[string]int64{}}
	if err := s.credentials(t.Cred); err != nil {
		return nil, errors.Join(err, s.leave())
	}
	s.sources = newSources(filepath.Join(dir, "source-"), 1<<30)
	s.starter = newStarter()
	return s, nil
}

// find looks up the programs of all templates.
func (t *tool) find() error {
	for kind, line := range t.lines {
		path, err := exec.LookPath(line.program)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return fmt.Errorf("program %q cannot be run: %w (presets are %s)", line.program, errors.Unwrap(err), presetNames())
		}
		line.path = path
		t.lines[kind] = line
	}
	return nil
}

// Client implements storage.Service.
func (s *service) Client() storage.Client {
	return &client{service: s, base: filepath.Join(s.dir, fmt.Sprintf("client-%d-", s.clients.Add(1)))}
}

// Close implements storage.Service.
func (s *service) Close() error {
	s.starter.close()
	return s.leave()
}

// leave removes the service's folder.
func (s *service) leave() error { return errors.Join(os.RemoveAll(s.dir), s.manifest.Close()) }

// known remembers the size of a file, so that it is asked for only once.
func (s *service) known(path string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.sizes[path]
	return n, ok
}

func (s *service) learn(path string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sizes) >= 1_000_000 {
		clear(s.sizes)
	}
	s.sizes[path] = size
}

func (s *service) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sizes, path)
}
