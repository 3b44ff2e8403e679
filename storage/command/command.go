// Package command is the driver that runs an external program as a client: a copy tool, or the user's own analysis.
//
// Target.Command is either one word, the name of a preset (see Presets), or a program with its arguments, which may
// contain placeholders. No shell is used.
//
//	{url}      URL of the file, escaped; unescaped only in XRootD's schemes
//	{path}     path of the file below the target, unescaped
//	{size}     size of the file in bytes
//	{offset}   first byte of the requested range, 0 for the whole file
//	{length}   bytes of the requested range, the size for the whole file
//	{dest}     a file that does not exist yet, for the bytes read
//	{source}   a file with the content to be written
//
// A literal brace is written {{. A command with {source} writes, any other command reads. A command
// with no placeholders except {url}, {path} and {size} can also be run as a job. A path that begins
// with a dash gets "./" in front, so that it is not taken for an option. Programs run in weir's
// current folder with its environment, LC_ALL=C and the target's credentials (X509_USER_PROXY,
// X509_CERT_DIR, BEARER_TOKEN and others). Op.Chunk and Op.Ahead have no effect.
//
// # Measurement
//
// An operation lasts from before the start of its process until after its end. Bytes are counted
// every half second, by the growth of the file {dest} or by the kernel's counts of the program's
// reads from {source} or writes, and exactly at the end. The final count of a read is the size of
// {dest}. If a preset discards payload, it is the size that the program prints, or else the
// expected size, of which the program must have written at least as much; if neither is known, the
// size from a Stat, made once per file, or, if the preset has no Stat, the payload goes to {dest}.
// For the user's own command {dest} is always a regular file; without {dest} only the expected size
// can be counted. The first byte is reported when it is first counted, up to half a second late. No
// other phase is reported.
//
// # Jobs
//
// storage.Run runs the command as an analysis job on the file. No payload is counted, and an exit status other than
// 0 is a failure of class Other. Each job starts in an empty folder of its own, also its TMPDIR, which is removed
// afterwards.
//
// # Resource usage
//
// CPU time and memory are the results of wait4: of the program and of all descendants that it
// waited for. Processes that a program leaves behind are killed and not counted. Memory is that of
// the largest process. The kernel's figure is never below the size of weir itself; for smaller
// programs the result is the largest sample of their running time: 5 ms after the start, and each
// time their age has grown by a sixth or half a second. 0 means unknown.
//
// Content to be written is created once for each seed and size below os.TempDir(), during the first operation that
// needs it. All files are removed when the service is closed.
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

// Driver returns the driver. Its Kinds are all kinds that some preset supports: a kind that a
// command cannot do fails with errors.ErrUnsupported.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    storage.Command,
		Schemes: []string{"root", "roots", "xroot", "xroots", "gsiftp", "ftp", "sftp", "srm"},
		Kinds: []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir, storage.Remove,
			storage.Checksum, storage.Run},
		OpenFiles: func(int) int { return 6 }, // pipes of the program, its process, a scratch file
		External:  true,
		Open:      open,
	}
}

// A service is one command on one target. Mutable state is protected by mu, or is in parts with
// locks of their own.
type service struct {
	place    place
	tool     tool
	env      []string
	cred     storage.Credentials
	conf     string   // curl's configuration; may be empty
	dir      string   // scratch folder, removed by Close
	manifest *os.File // of dir, locked
	starter  *starter
	sources  *sources
	clients  atomic.Int64

	mu    sync.Mutex
	given storage.Credentials // to the program that was started last
	sizes map[string]int64    // by path, from Stat
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
	if err == nil {
		err = t.InClear()
	}
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

// known caches the size of a file, so that it is requested only once.
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
