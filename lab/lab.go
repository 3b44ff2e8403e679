// Package lab starts real data services on this machine for tests, demos and
// the lab command: each unprivileged, on the loopback interface, on a port
// that the kernel chose, ready when its function returns and gone without a
// trace after Stop.
//
// Started by root, a server runs under a plain user id that owns nothing else
// (most of them refuse to run as root); started by anyone else, as that user.
package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A System is a running data service: one server or several that belong
// together. Its methods are for one goroutine at a time; its fields stay as
// they are from start to Stop.
type System struct {
	Name   string            // "nginx", "xrootd", "gridftp"
	URL    string            // what clients are pointed at: the folder Data, without a final slash
	URLs   map[string]string // the same folder by scheme, and what else the system offers (see its function)
	Dir    string            // everything the system has on disk; removed by Stop
	Data   string            // the folder behind URL
	CAFile string            // certificate authority of its TLS, "" without TLS
	CADir  string            // the same authority as X509_CERT_DIR wants it

	// Servers are the members of an XRootD service, a redirector first.
	// Where there are several, Data is that of the first data server, and
	// WriteFile spreads the files.
	Servers []Server
	// Identity is what clients prove who they are with.
	Identity

	user    int
	ports   []*port
	parts   []*process
	env     []string // of all parts
	settled func(context.Context) error
	secrets
	ready   time.Duration
	say     func(part string)
	given   os.FileInfo // what Dir was before it was ours; nil: lab made it
	stopped bool
}

// Config is what all systems have in common.
type Config struct {
	// Dir is an empty or missing folder for the system's files. "" makes
	// one below the temporary folder. Stop removes a folder that lab made, and
	// empties one that it was given.
	Dir string
	// TLS adds TLS with a certificate for localhost and 127.0.0.1 from an
	// authority made for this system alone.
	TLS bool
	// Ready bounds the wait for the first answer; 0 means 20 s.
	Ready time.Duration
	// Programs replaces programs that are looked up in PATH by name, such as
	// {"nginx": "/opt/nginx/sbin/nginx"}.
	Programs map[string]string
	// Progress is told, when it is set, of each part of the system that has
	// come up: a name such as "ds2-xrootd".
	Progress func(part string)
}

// plainUser runs servers when root starts them. It needs no entry in passwd.
const plainUser = 20124

// launch makes a system of one program, has build say how it runs, and starts
// it. Nothing is left of one that does not come up.
func (c Config) launch(ctx context.Context, name, program string, build func(s *System, program string) error, folders ...string) (*System, error) {
	path, err := c.program(program)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	s, err := newSystem(name, c, folders...)
	if err != nil {
		return nil, err
	}
	if err = build(s, path); err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// newSystem makes the folders of a system called name.
func newSystem(name string, c Config, folders ...string) (*System, error) {
	s := &System{Name: name, URLs: map[string]string{}, user: -1, ready: c.Ready, say: c.Progress}
	if s.say == nil {
		s.say = func(string) {}
	}
	if s.ready <= 0 {
		s.ready = 20 * time.Second
	}
	if os.Geteuid() == 0 {
		s.user = plainUser
	}
	if err := s.makeDir(c.Dir); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", name, err)
	}
	for _, f := range folders {
		if err := s.mkdir(filepath.Join(s.Dir, f)); err != nil {
			return nil, errors.Join(fmt.Errorf("lab: %s: %w", name, err), s.Stop())
		}
	}
	return s, nil
}

func (s *System) makeDir(dir string) error {
	where, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if dir == "" {
		where = os.TempDir()
	}
	if strings.ContainsAny(where, " \t\r\n\"'`\\;{}$#") {
		return fmt.Errorf("folder %q cannot be named in the servers' configurations: use letters, digits, dots and dashes", where)
	}
	if err := s.reaches(where); err != nil {
		return err
	}
	if dir == "" {
		made, err := os.MkdirTemp("", "weir-lab-"+s.Name+"-")
		if err != nil {
			return err
		}
		s.Dir = made
		return s.own(made, 0o755)
	}
	names, err := os.ReadDir(where)
	if errors.Is(err, os.ErrNotExist) {
		s.Dir = where
		return s.mkdir(where)
	}
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("folder %s is not empty: give an empty or a missing one", where)
	}
	if s.given, err = os.Stat(where); err != nil {
		return err
	}
	s.Dir = where
	return s.own(where, 0o755)
}

// reaches tells whether the servers' user can come to dir.
func (s *System) reaches(dir string) error {
	if s.user < 0 {
		return nil
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err == nil && info.Mode().Perm()&1 == 0 {
			return fmt.Errorf("folder %s keeps others out, but started by root the servers run as user id %d: give a folder elsewhere", up, s.user)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// mkdir makes path and its missing parents below Dir for the servers' user.
func (s *System) mkdir(path string) error {
	if path != s.Dir {
		if err := s.mkdir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return s.own(path, 0o755)
}

func (s *System) own(path string, mode os.FileMode) error {
	if err := os.Chmod(path, mode); err != nil || s.user < 0 {
		return err
	}
	return os.Chown(path, s.user, s.user)
}

// write puts a file of the system itself in place, readable by its user only.
func (s *System) write(name string, content []byte) (string, error) {
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return path, err
	}
	return path, s.own(path, 0o600)
}

// WriteFile makes a file in Data, and the folders on its way, all owned by
// the user that runs the servers. name is relative to Data.
func (s *System) WriteFile(name string, content []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("lab: %q leaves the data folder", name)
	}
	path := filepath.Join(s.dataOf(name), name)
	if err := s.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	return s.own(path, 0o644)
}

// dataOf is the folder that a new file called name goes to.
func (s *System) dataOf(name string) string {
	var folders []string
	for _, server := range s.Servers {
		if server.Role == DataServer {
			folders = append(folders, server.Data)
		}
	}
	if len(folders) < 2 {
		return s.Data
	}
	return folders[crc32.ChecksumIEEE([]byte(filepath.Clean(name)))%uint32(len(folders))]
}

// Pids returns the process ids of what runs now: of the servers with these
// names or roles, or of all without any. Each leads a process group of the
// same number, to which all its children belong.
func (s *System) Pids(of ...string) []int {
	var pids []int
	for _, p := range s.processes(of...) {
		if p.running() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Signal sends sig to all processes of the system: SIGSTOP makes a service
// that hangs, SIGCONT lets it go on.
func (s *System) Signal(sig syscall.Signal) error {
	var errs []error
	for _, p := range s.parts {
		errs = append(errs, p.signal(sig))
	}
	return errors.Join(errs...)
}

// Kill ends all processes at once, as a crash does, and returns when they are
// gone. The ports stay reserved: connections are refused until Restart.
func (s *System) Kill() {
	for i := len(s.parts) - 1; i >= 0; i-- {
		s.parts[i].stop(0)
	}
}

// Restart starts the system again on the same ports with the same data,
// after ending what still runs of it.
func (s *System) Restart(ctx context.Context) error {
	s.Kill()
	return s.start(ctx)
}

// start runs all parts.
func (s *System) start(ctx context.Context) error { return s.run(ctx, s.parts) }

// run starts parts in order, each when the one before it answers, and waits
// until the whole system is ready.
func (s *System) run(ctx context.Context, parts []*process) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.ready)
	defer cancel()
	defer func() {
		if err != nil {
			for _, p := range slices.Backward(parts) {
				p.stop(0)
			}
		}
	}()
	for _, p := range parts {
		if err := p.start(); err != nil {
			return fmt.Errorf("lab: %s: %w", s.Name, err)
		}
		if err := p.wait(ctx); err != nil {
			return fmt.Errorf("lab: %s did not come up: %w%s", s.Name, err, lastLines(p.log))
		}
		s.say(p.name)
	}
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("lab: %s did not come up: %w\n%s", s.Name, err, s.Log())
	}
	return nil
}

// Stop ends all processes, gently first, and removes what the system had on
// disk. It returns when they are gone. A second Stop does nothing.
func (s *System) Stop() error {
	for _, p := range slices.Backward(s.parts) {
		p.stop(3 * time.Second)
	}
	for _, p := range s.ports {
		p.free()
	}
	if s.stopped {
		return nil
	}
	s.stopped = true
	if s.given == nil {
		return os.RemoveAll(s.Dir)
	}
	return giveBack(s.Dir, s.given)
}

// giveBack makes dir the empty folder that it was.
func giveBack(dir string, was os.FileInfo) error {
	names, err := os.ReadDir(dir)
	errs := []error{err}
	for _, n := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, n.Name())))
	}
	errs = append(errs, os.Chmod(dir, was.Mode().Perm()))
	if owner, ok := was.Sys().(*syscall.Stat_t); ok {
		errs = append(errs, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	return errors.Join(errs...)
}

// Log returns the last lines that the servers wrote.
func (s *System) Log() string {
	var b strings.Builder
	for _, p := range s.parts {
		b.WriteString(p.name + ":" + lastLines(p.log) + "\n")
	}
	return b.String()
}
