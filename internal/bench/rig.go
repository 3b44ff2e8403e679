package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/lab"
	"weir/monitor"
)

// A scale says how much is measured.
type scale struct {
	hold    time.Duration // of a run, about
	size    int64         // of the files of bulk cases
	gets    int           // files that curl reads, one after the other
	puts    int           // files that curl sends, one after the other
	clients int           // asleep in one process
	crowd   int           // started at once, and for wake-ups
	many    int           // in several processes
	think   time.Duration // between the reads of sleeping clients
	pages   int           // that jobs read together
	bench   string        // -benchtime of Go's benchmarks
	held    int           // connections that a worker of nginx may hold

	recorded int // seconds of the run that is analyzed

	crew   int           // workers of a controller
	told   time.Duration // of which they tell in a step
	loaded time.Duration // that a worker works
	slots  int           // of a batch system
	parts  int           // runs that are merged

	queued int // files of one request
}

// workers is how many processes of nginx hold many connections together, as
// each of them may have only so many open files.
const workers = 4

func fullScale() scale {
	return scale{
		hold: 3 * time.Second, size: 128 << 20, gets: 128, puts: 256,
		clients: 19000, crowd: 5000, many: 27000, think: 5 * time.Second, bench: "0.5s", pages: 400_000, recorded: 3600,
		crew: 1000, told: 8 * time.Second, loaded: 5 * time.Second, slots: 200, parts: 50,
		queued: 1_000_000,
	}
}

func quickScale() scale {
	return scale{
		hold: 500 * time.Millisecond, size: 8 << 20, gets: 64, puts: 32,
		clients: 300, crowd: 200, many: 300, think: 500 * time.Millisecond, bench: "1000x", pages: 8000, recorded: 60,
		crew: 20, told: time.Second / 2, loaded: time.Second / 2, slots: 5, parts: 3,
		queued: 3000,
	}
}

// fit lowers the numbers of clients to what this machine allows.
func (s *scale) fit(e monitor.Environment) error {
	files, _, err := monitor.RaiseOpenFiles()
	if err != nil {
		return err
	}
	one := int(min(files, 1<<20))
	if one < 1024 {
		return fmt.Errorf("a process may have %d open files, at least 1024 are needed: raise the limit (ulimit -n)", one)
	}
	ports := int(e.PortHigh-e.PortLow) - 1200 // those of closed connections rest for a minute
	if ports < 1000 {
		return fmt.Errorf("ports %d to %d are too few for this", e.PortLow, e.PortHigh)
	}
	s.held = min(9900, one/2-100)
	s.clients = min(s.clients, one*95/100, ports, workers*s.held*3/4)
	s.crowd = min(s.crowd, s.clients)
	s.many = min(s.many, ports, workers*s.held*3/4)
	return nil
}

// A rig is what the cases work with: a folder in memory, the weir that is
// measured, and servers that run.
type rig struct {
	scale
	weir  string
	dir   string // on a memory file system where there is one
	log   io.Writer
	count int // runs of weir so far
	stops []func() error
}

func newRig(weir string, s scale, log io.Writer) (*rig, error) {
	if _, err := os.Stat(weir); err != nil {
		return nil, fmt.Errorf("-weir: %w (make build makes it)", err)
	}
	if err := s.fit(monitor.About()); err != nil {
		return nil, err
	}
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "weir-bench-")
	if err != nil {
		return nil, err
	}
	return &rig{scale: s, weir: weir, dir: dir, log: log}, os.Chmod(dir, 0o755)
}

func (r *rig) logf(format string, args ...any) { _, _ = fmt.Fprintf(r.log, format, args...) }

// stopAll stops what the last case has started, the last first.
func (r *rig) stopAll() error {
	var errs []error
	for i := len(r.stops) - 1; i >= 0; i-- {
		errs = append(errs, r.stops[i]())
	}
	r.stops = nil
	return errors.Join(errs...)
}

// close stops everything and removes the rig's folder.
func (r *rig) close() error { return errors.Join(r.stopAll(), os.RemoveAll(r.dir)) }

// A server is one that runs: where it is, and the process group whose CPU
// counts.
type server struct {
	url   string
	group int
	data  string // its folder, if it has one
}

// nginx starts nginx with its files in memory.
func (r *rig) nginx(ctx context.Context, c lab.NginxConfig) (server, error) {
	c.Dir = filepath.Join(r.dir, "nginx-"+strconv.Itoa(len(r.stops)))
	s, err := lab.Nginx(ctx, c)
	if err != nil {
		return server{}, err
	}
	r.stops = append(r.stops, s.Stop)
	return server{url: s.URL, group: s.Pids()[0], data: s.Data}, nil
}

// serve starts weir's own server.
func (r *rig) serve(args ...string) (server, error) {
	cmd := exec.Command(r.weir, append([]string{"serve", "--while-stdin"}, args...)...) //nolint:noctx // ends with its input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return server{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return server{}, err
	}
	if err := cmd.Start(); err != nil {
		return server{}, err
	}
	r.stops = append(r.stops, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	line := make([]byte, 256)
	n, err := out.Read(line)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "serving ")
	if err != nil || !ok {
		return server{}, fmt.Errorf("weir serve said %q, %w", line[:n], err)
	}
	return server{url: strings.TrimSuffix(url, "/"), group: cmd.Process.Pid}, nil
}

// iperf starts an iperf3 server and returns its port.
func (r *rig) iperf(ctx context.Context) (string, error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("iperf3", "-s", "-B", "127.0.0.1", "-p", port) //nolint:noctx // ended below
	if err := cmd.Start(); err != nil {
		return "", err
	}
	r.stops = append(r.stops, func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says only that it was killed
		return nil
	})
	return port, answers(ctx, "127.0.0.1:"+port)
}

// freePort is one that nobody has now.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}

// answers waits until somebody listens.
func answers(ctx context.Context, address string) error {
	for try := time.Now(); time.Since(try) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
		if err == nil {
			return c.Close()
		}
	}
	return fmt.Errorf("%s does not answer", address)
}

// makeFile writes size bytes that no one can compress or share.
func makeFile(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{1})
	_, err = io.CopyN(f, random, size)
	return errors.Join(err, f.Close(), os.Chmod(path, 0o644))
}
