package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/monitor"
)

// A scale has the sizes, numbers and durations of all cases.
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
	told   time.Duration // of a step in which they report
	loaded time.Duration // that a worker works
	slots  int           // of a batch system
	merged int           // runs that are merged

	queued int // files of one request
	jobs   int // of the API of FTS3, with 5 files each
	polled int // files of its jobs that are open
}

// workers is the number of processes of nginx that hold many connections together, since the number
// of open files of each of them is limited.
const workers = 4

func fullScale() scale {
	return scale{
		hold: 3 * time.Second, size: 128 << 20, gets: 128, puts: 256,
		clients: 19000, crowd: 5000, many: 27000, think: 5 * time.Second, bench: "0.5s", pages: 400_000, recorded: 3600,
		crew: 1000, told: 8 * time.Second, loaded: 5 * time.Second, slots: 200, merged: 50,
		queued: 1_000_000, jobs: 20_000, polled: 100_000,
	}
}

func quickScale() scale {
	return scale{
		hold: 500 * time.Millisecond, size: 8 << 20, gets: 64, puts: 32,
		clients: 300, crowd: 200, many: 300, think: 500 * time.Millisecond, bench: "1000x", pages: 8000, recorded: 60,
		crew: 20, told: time.Second / 2, loaded: time.Second / 2, slots: 5, merged: 3,
		queued: 3000, jobs: 200, polled: 1000,
	}
}

// fit lowers the numbers of clients to the limits of this machine.
func (s *scale) fit(tb testing.TB) {
	tb.Helper()
	e := monitor.About()
	files, _, err := monitor.RaiseOpenFiles()
	require.NoError(tb, err)
	one, ports := int(min(files, 1<<20)), int(e.PortHigh-e.PortLow)-1200 // closed ports rest for a minute
	if one < 1024 || ports < 1000 {
		tb.Fatalf("a process may have %d open files and %d ports, at least 1024 and 1000 are needed (ulimit -n, ip_local_port_range)", one, ports)
	}
	s.held = min(9900, one/2-100)
	s.clients = min(s.clients, one*95/100, ports, workers*s.held*3/4)
	s.crowd = min(s.crowd, s.clients)
	s.many = min(s.many, ports, workers*s.held*3/4)
}

// awaitPorts waits until at most half of this machine's ports rest: each port is blocked for a
// minute after its connection was closed.
func awaitPorts() {
	e := monitor.About()
	for range 75 {
		text, err := os.ReadFile("/proc/net/sockstat")
		resting, none := number(`tw ([0-9]+)`, text)
		if err != nil || none != nil || resting <= float64(e.PortHigh-e.PortLow)/2 {
			return
		}
		time.Sleep(time.Second)
	}
}

// A rig has the files, programs and settings of a case. Everything that its methods start ends with
// the case; if they cannot start it, the case fails.
type rig struct {
	testing.TB
	scale
	weir  string
	dir   string // on a memory file system if there is such a file system
	count int    // runs of weir and folders so far
}

// memoryDir returns a folder on a memory file system if there is such a file system, or else the
// default folder for temporary files.
func memoryDir() string {
	const dir = "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		return os.TempDir()
	}
	return dir
}

// folderPrefix begins the names of this process's rigs.
func folderPrefix() string { return fmt.Sprintf("weir-bench-%d-", os.Getpid()) }

func newRig(tb testing.TB, weir string, s scale) *rig {
	s.fit(tb)
	dir, err := os.MkdirTemp(memoryDir(), folderPrefix())
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	r := &rig{TB: tb, scale: s, weir: weir, dir: dir}
	r.must(err)
	r.ends(func() error { return os.RemoveAll(dir) })
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// ends calls stop when the case ends, and fails the case if stop fails.
func (r *rig) ends(stop func() error) {
	r.Cleanup(func() {
		if err := stop(); err != nil {
			r.Error(err)
		}
	})
}

// path returns the path of a new file or folder of the rig.
func (r *rig) path(name string) string {
	r.count++
	return filepath.Join(r.dir, name+"-"+strconv.Itoa(r.count))
}

// file writes size bytes that cannot be compressed or shared.
func (r *rig) file(path string, size int64) {
	r.Helper()
	f, err := os.Create(path)
	r.must(err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
	r.must(errors.Join(err, f.Close(), os.Chmod(path, 0o644)))
}

// A server is a running server: its URL, its folder, and the process group whose CPU time counts.
type server struct {
	url   string
	group int    // 0 if it has a process for each session, whose CPU time is lost when it ends
	data  string // its folder, if it has one
}

// nginx starts nginx with its files in memory.
func (r *rig) nginx(c lab.NginxConfig) server {
	c.Dir = r.path("nginx")
	s, err := c.Start(r.Context())
	r.must(err)
	r.ends(s.Stop)
	return server{url: s.URL, group: s.Pids()[0], data: s.Data}
}

// xrootd starts XRootD with n files of the same size in memory, the first of them theFile.
func (r *rig) xrootd(n int, size int64) server {
	s, err := lab.XRootDConfig{Config: lab.Config{Dir: r.path("xrootd")}}.Start(r.Context())
	r.must(err)
	r.ends(s.Stop)
	for i := range n {
		r.file(filepath.Join(s.Data, fileName(i)), size)
	}
	return server{url: s.URL, group: s.Pids()[0], data: s.Data}
}

// gridftp starts a GridFTP server with theFile in memory.
func (r *rig) gridftp(size int64) server {
	s, err := lab.GridFTPConfig{Config: lab.Config{Dir: r.path("gridftp")}}.Start(r.Context())
	r.must(err)
	r.ends(s.Stop)
	r.file(filepath.Join(s.Data, theFile), size)
	return server{url: s.URL, data: s.Data}
}

// serve starts weir's own server.
func (r *rig) serve(args ...string) server {
	cmd := exec.Command(r.weir, append([]string{"serve", "--while-stdin"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	r.must(err)
	out, err := cmd.StdoutPipe()
	r.must(err)
	r.must(cmd.Start())
	r.ends(func() error { return errors.Join(in.Close(), cmd.Wait()) })
	line := make([]byte, 256)
	n, err := out.Read(line)
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "serving ")
	if err != nil || !ok {
		r.Fatalf("weir serve said %q, %v", line[:n], err)
	}
	return server{url: strings.TrimSuffix(url, "/"), group: cmd.Process.Pid}
}

// daemon starts a program that is to listen at an address, and kills its process group at the end
// of the case.
func (r *rig) daemon(address string, argv ...string) (group int) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	r.must(cmd.Start())
	r.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait() // its error only reports the signal
	})
	for try := time.Now(); time.Since(try) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(r.Context(), "tcp4", address)
		if err == nil {
			_ = c.Close()
			return cmd.Process.Pid
		}
	}
	r.Fatalf("%s does not answer at %s", argv[0], address)
	return 0
}

// freePort returns a port of 127.0.0.1 that is free now.
func (r *rig) freePort() string {
	l, err := (&net.ListenConfig{}).Listen(r.Context(), "tcp4", "127.0.0.1:0")
	r.must(err)
	r.must(l.Close())
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// iperf starts an iperf3 server and returns its port.
func (r *rig) iperf() string {
	port := r.freePort()
	r.daemon("127.0.0.1:"+port, "iperf3", "-s", "-B", "127.0.0.1", "-p", port)
	return port
}

// rcloneServe starts rclone's WebDAV server.
func (r *rig) rcloneServe(dir string) server {
	address := "127.0.0.1:" + r.freePort()
	argv, err := withoutDNS(r.Context(), []string{"rclone", "--config", "/dev/null", "--quiet", "serve", "webdav", "--addr", address, dir})
	r.must(err)
	return server{url: "http://" + address, group: r.daemon(address, argv...)}
}

// sink starts a server in this process that reads and discards uploads.
func (r *rig) sink() string {
	s := httptest.NewServer(http.HandlerFunc(forget))
	r.Cleanup(s.Close)
	return s.URL
}

func forget(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPut:
		buffer := make([]byte, 1<<20)
		for {
			_, err := r.Body.Read(buffer)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
		}
		w.WriteHeader(http.StatusCreated)
	case "MKCOL":
		w.WriteHeader(http.StatusCreated)
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "forgotten", http.StatusNotFound)
	}
}

// withoutDNS returns a command that runs a program without access to name servers.
func withoutDNS(ctx context.Context, argv []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if os.Geteuid() == 0 {
		if err := lab.NoDNS(cmd); err != nil {
			return nil, err
		}
	}
	return append([]string{cmd.Path}, cmd.Args[1:]...), nil
}

// fresh makes a new folder, in memory or on a disk, and returns a function that removes it.
func (r *rig) fresh(disk bool) (string, func() error, error) {
	parent := r.dir
	if disk {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "weir-bench-copy-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

func fileName(i int) string { return fmt.Sprintf("file%06d.dat", i) }
