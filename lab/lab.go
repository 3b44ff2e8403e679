// Package lab starts real data services on this machine for tests, demos and the lab command: each unprivileged, on
// the loopback interface, on a port that the kernel chose, ready when its function returns and gone without a trace
// after Stop, or when the program that started it is killed.
//
// Started by root, a server runs under a plain user id that owns nothing else (most of them refuse to run as root);
// started by anyone else, as that user.
package lab

import (
	"cmp"
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

// A System is a running data service: one server or several that belong together. Its methods are for one goroutine
// at a time; its fields stay as they are from start to Stop.
type System struct {
	Name   string            // "nginx", "xrootd", "gridftp"
	URL    string            // URL for clients: the folder Data, without a final slash
	URLs   map[string]string // URLs of the same folder by scheme, and of the system's other services (see its function)
	Dir    string            // everything the system has on disk; removed by Stop
	Data   string            // the folder behind URL
	CAFile string            // certificate authority of its TLS, "" without TLS
	CADir  string            // the same authority in the format of X509_CERT_DIR

	// Servers are the members of a service: a redirector or balancer first. If data servers have
	// folders of their own, Data is the folder of the first server, and WriteFile spreads the
	// files.
	Servers []Server
	// Batch is the name of a batch system in the on block of a scenario: the value of its key
	// batch. "" for a data service.
	Batch string
	// Slots is the number of concurrent jobs of a batch system.
	Slots int
	// StatsSocket is the Unix socket of HAProxy's statistics, for commands such as "show stat"; ""
	// without HAProxy.
	StatsSocket string
	// AccessLog is a file in which the server writes each request or transfer, or "".
	AccessLog string
	// Note is a hint for users of this system, a sentence, or "".
	Note string
	// Identity is the clients' proof of identity.
	Identity

	user    int
	ports   []*port
	parts   []*process
	env     []string // of all parts
	settled func(context.Context) error
	secrets
	ready   time.Duration
	say     func(part string)
	lost    func(part string, why error)
	given   os.FileInfo // the state of a given Dir before Start; nil: lab made it
	sweeper *sweeper
	disks   *disks // nil without limits
	groups  string // prefix of the names of its control groups, "" without control groups
	stopped bool
	err     error // of putting it together
}

// system returns the system of a type that has one.
func (s *System) system() *System { return s }

// Config has the common settings of all systems.
type Config struct {
	// Dir is an empty or missing folder for the system's files. "" makes one below the temporary
	// folder. Stop removes a folder that lab made, and empties a given folder.
	Dir string
	// TLS adds TLS with a certificate for localhost and 127.0.0.1 from an authority made for this system alone.
	TLS bool
	// Ready bounds the wait for the first answer of each server; 0 means 20 s, and of a batch system a minute.
	Ready time.Duration
	// Disk limits the disk of each data server (nginx, xrootd), and the scratch disk of each node (ssh).
	Disk Disk
	// Programs replaces programs that are looked up in PATH by name, such as {"nginx": "/opt/nginx/sbin/nginx"}.
	Programs map[string]string
	// Progress, if set, is called with each part of the system that has come up: a name such as "ds2-xrootd".
	Progress func(part string)
	// Lost, if set, is called when a part that had come up ends by itself or is killed, but not by
	// Stop, Kill or Restart; why has the reason. It is called by another goroutine, at any time
	// until Stop returns.
	Lost func(part string, why error)

	ours    bool // the system runs as the user that starts it, even as root
	grouped bool // it has control groups
	as      int  // user that runs it if root starts it; 0 is plainUser
}

// plainUser runs servers when root starts them. It needs no entry in passwd.
const plainUser = 20124

// launch makes a system of one program, calls build to configure it, and starts it. If the start
// fails, everything is removed.
func (c Config) launch(ctx context.Context, name, program string, build func(s *System, program string),
	folders ...string) (*System, error) {
	supports, _ := KindOf(name)
	if c.Disk != (Disk{}) && !supports.Disk {
		return nil, fmt.Errorf("lab: %s: a limited disk is not supported: leave it out", name)
	}
	if c.TLS && !supports.TLS {
		return nil, fmt.Errorf("lab: %s: TLS is not supported: leave it off", name)
	}
	path := ""
	if program != "" {
		var err error
		if path, err = c.program(program); err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	s, err := newSystem(name, c, folders...)
	if err != nil {
		return nil, err
	}
	if build(s, path); s.err == nil {
		s.fail(s.run(ctx, s.parts))
	}
	if err := s.err; err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// newSystem makes the folders of a system called name.
func newSystem(name string, c Config, folders ...string) (*System, error) {
	s := &System{Name: name, URLs: map[string]string{}, user: -1, ready: cmp.Or(c.Ready, 20*time.Second), say: c.Progress, lost: c.Lost}
	if s.say == nil {
		s.say = func(string) {}
	}
	if os.Geteuid() == 0 && !c.ours {
		s.user = cmp.Or(c.as, plainUser)
	}
	err := c.Disk.Check()
	if err == nil {
		err = s.makeDir(c.Dir)
	}
	if c.grouped || c.Disk != (Disk{}) {
		s.groups = fmt.Sprintf("weir-lab-%d-%08x", os.Getpid(), crc32.ChecksumIEEE([]byte(s.Dir)))
	}
	if c.Disk != (Disk{}) {
		s.disks = &disks{Disk: c.Disk, name: s.groups, numbers: map[string]string{}}
	}
	if err == nil {
		s.sweeper, err = sweep(s.Dir, s.given != nil, s.groups)
	}
	for i := 0; err == nil && i < len(folders); i++ {
		err = s.mkdir(filepath.Join(s.Dir, folders[i]))
	}
	if err == nil {
		return s, nil
	}
	err = fmt.Errorf("lab: %s: %w", name, err)
	if s.Dir != "" {
		err = errors.Join(err, s.Stop())
	}
	return nil, err
}

// Pids returns the ids of the running processes: of the servers with these names or roles, or of
// all servers without arguments. Each leads a process group of the same number, to which all its
// children belong.
func (s *System) Pids(of ...string) []int {
	var pids []int
	for _, p := range s.processes(of...) {
		if p.running() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Signal sends sig to all processes of the system: SIGSTOP makes the service hang, SIGCONT resumes it.
func (s *System) Signal(sig syscall.Signal) error { return signalAll(s.parts, sig) }

func signalAll(parts []*process, sig syscall.Signal) error {
	var err error
	for _, p := range parts {
		err = errors.Join(err, p.signal(sig))
	}
	return err
}

// Kill ends all processes at once, as a crash does, and returns when they have ended. The ports
// stay reserved: connections are refused until Restart.
func (s *System) Kill() { stopAll(s.parts, 0) }

// stopAll ends processes, the last first, each with that much patience.
func stopAll(parts []*process, patience time.Duration) {
	for _, p := range parts {
		p.wanted.Store(false) // some end with others
	}
	for _, p := range slices.Backward(parts) {
		p.stop(patience)
	}
}

// Restart starts the system again on the same ports with the same data, after ending its running
// processes.
func (s *System) Restart(ctx context.Context) error {
	s.Kill()
	return s.run(ctx, s.parts)
}

// run starts parts in order, each when the part before it responds, and waits until the whole
// system is ready. Each part, and the system once its parts respond, has the time s.ready.
func (s *System) run(ctx context.Context, parts []*process) (err error) {
	soon := func(wait func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, s.ready)
		defer cancel()
		return wait(ctx)
	}
	defer func() {
		if err != nil {
			stopAll(parts, 0)
		}
	}()
	for _, p := range parts {
		p.lost = s.lost
		if err := p.start(); err != nil {
			return fmt.Errorf("lab: %s: %w", s.Name, err)
		}
		if err := soon(p.wait); err != nil {
			return fmt.Errorf("lab: %s did not come up: %w%s", s.Name, err, lastLines(p.log))
		}
		s.say(p.name)
	}
	if s.settled == nil {
		return nil
	}
	settle := func(ctx context.Context) error { return poll(ctx, 20*time.Millisecond, 2*time.Second, s.settled, nil) }
	if err := soon(settle); err != nil {
		return fmt.Errorf("lab: %s did not come up: %w\n%s", s.Name, err, s.Log())
	}
	return nil
}

// Stop ends all processes, gently first, and removes the system's files. It returns when they have
// ended. A second Stop does nothing.
func (s *System) Stop() error {
	stopAll(s.parts, 3*time.Second)
	for _, p := range s.ports {
		p.Free()
	}
	if s.stopped {
		return nil
	}
	s.stopped = true
	for _, p := range s.parts {
		if p.wire != nil {
			_ = p.wire.cut() // else the kernel does soon
		}
	}
	if s.sweeper != nil {
		defer s.sweeper.end()
	}
	var err error
	if s.disks != nil {
		err = s.disks.remove()
	}
	err = errors.Join(err, removeGroups(s.groups))
	if s.given == nil {
		return errors.Join(err, os.RemoveAll(s.Dir))
	}
	return errors.Join(err, restoreFolder(s.Dir, s.given))
}

// Log returns the last lines that the servers wrote.
func (s *System) Log() string {
	var b strings.Builder
	for _, p := range s.parts {
		b.WriteString(p.name + ":" + lastLines(p.log) + "\n")
	}
	return b.String()
}
