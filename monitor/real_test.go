package monitor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/scenario"
)

// TestMain lets the test binary play other programs.
func TestMain(m *testing.M) {
	switch os.Getenv("WEIR_PLAY") {
	case "busy":
		busy()
		return
	case "idle":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// busy burns CPU time in user mode and in the kernel, says so, and stays
// until its standard input ends.
func busy() {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 1<<20)
	var ru unix.Rusage
	for x := uint32(1); microseconds(ru.Utime)+microseconds(ru.Stime) < 1_200_000; {
		for range 2_000_000 {
			x = x*1664525 + 1013904223
		}
		buf[0] = byte(x)
		if _, err := io.ReadFull(zero, buf); err != nil {
			panic(err)
		}
		if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
			panic(err)
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func playCommand(what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_PLAY="+what)
	return cmd
}

// playing starts the test binary as another program and returns it with its
// standard input and output.
func playing(t *testing.T, what string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := playCommand(what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started(t, cmd)
	return cmd, in, bufio.NewReader(out)
}

// sum adds up what the samples say of a group of processes.
func sum(samples []*Sample, name string) (p Proc) {
	for _, s := range samples {
		for _, q := range s.Procs {
			if q.Name == name {
				p.User += q.User
				p.System += q.System
				p.Read += q.Read
				p.Written += q.Written
				p.Count = max(p.Count, q.Count)
			}
		}
	}
	return p
}

func near(t *testing.T, what string, have, want, tolerance float64) {
	t.Helper()
	t.Logf("%s: %.4g, should be %.4g: off by %.2f %%", what, have, want, 100*(have/want-1))
	if math.Abs(have-want) > tolerance*want {
		t.Errorf("%s: %v, should be %v within %v %%", what, have, want, 100*tolerance)
	}
}

// TestCPUAgreesWithWait4: a busy process as it was watched, second by second,
// and as the kernel says at its end.
func TestCPUAgreesWithWait4(t *testing.T) {
	cmd, in, out := playing(t, "busy")
	k := &keep{}
	name := fmt.Sprintf("pid %d", cmd.Process.Pid)
	w, err := Start(context.Background(), []scenario.Host{{Name: "here", Pids: []int{cmd.Process.Pid}}}, Options{}, k)
	if err != nil {
		t.Fatal(err)
	}
	line, err := out.ReadString('\n')
	if err != nil || line != "done\n" {
		t.Fatal(line, err)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	p := sum(k.of("here"), name)
	state := cmd.ProcessState
	near(t, "CPU seconds", p.User+p.System, (state.UserTime() + state.SystemTime()).Seconds(), 0.03)
	near(t, "user CPU seconds", p.User, state.UserTime().Seconds(), 0.03)
	if p.Read < 100<<20 {
		t.Errorf("%d bytes read", p.Read)
	}
	if len(k.of("here")) < 2 {
		t.Errorf("%d samples", len(k.of("here")))
	}
}

// TestOwnCPUWithPrograms: this process and the programs that it starts and
// waits for are one, if that is wanted, and not if not.
func TestOwnCPUWithPrograms(t *testing.T) {
	with, without := &keep{}, &keep{}
	var before, after [2]unix.Rusage
	usage := func(to *[2]unix.Rusage) {
		for i, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
			if err := unix.Getrusage(who, &to[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	watch := func(k *keep, children bool) *Watch {
		w, err := Start(context.Background(), []scenario.Host{{Name: "here"}}, Options{Children: children}, k)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	usage(&before)
	w, v := watch(with, true), watch(without, false)
	cmd, in, out := playing(t, "busy")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Stop(), v.Stop()); err != nil {
		t.Fatal(err)
	}
	usage(&after)
	spent := func(i int) float64 {
		return float64(microseconds(after[i].Utime)+microseconds(after[i].Stime)-microseconds(before[i].Utime)-microseconds(before[i].Stime)) / 1e6
	}
	p, q := sum(with.of("here"), "weir"), sum(without.of("here"), "weir")
	near(t, "CPU seconds with programs", p.User+p.System, spent(0)+spent(1), 0.03)
	if alone := q.User + q.System; alone > spent(0)+0.001 || spent(1) < 1 {
		t.Errorf("%v s without programs, rusage has %v s and %v s", alone, spent(0), spent(1))
	}
}

// TestProcessDeath: a watched process is killed in the middle; sums stand,
// samples go on, the loss is told once.
func TestProcessDeath(t *testing.T) {
	cmd, _, _ := playing(t, "idle")
	eventually(t, "the process has its program's size", func() bool {
		st, err := newProcFS("", "").stat(cmd.Process.Pid)
		return err == nil && st.rss > 4<<20
	})
	l := newLocal(scenario.Host{Pids: []int{cmd.Process.Pid}}, Options{}, noTarget(), newClock())
	defer l.close()
	look := func() (*Sample, error) { return l.look(context.Background()) }
	if _, err := look(); err != nil {
		t.Fatal(err)
	}
	s, err := look()
	if err != nil || len(s.Procs) != 2 || s.Procs[1].Count != 1 || s.Procs[1].Role != "server" || s.Procs[1].Files < 3 || s.Procs[1].RSS < 1<<20 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s, err = look()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no process of pid %d runs", cmd.Process.Pid)) {
		t.Errorf("the error is %v", err)
	}
	if p := sum([]*Sample{s}, fmt.Sprintf("pid %d", cmd.Process.Pid)); p.Count != 0 || p.User < 0 || p.System < 0 {
		t.Errorf("%+v", p)
	}
	if _, err = look(); err != nil {
		t.Errorf("told again: %v", err)
	}
}

// TestLoopbackBytes: what the loopback interface counts in a download, less
// the headers, is the payload. It runs in a network of its own, because other
// programs' traffic is on the loopback interface too.
func TestLoopbackBytes(t *testing.T) {
	curl := program(t, "curl")
	if os.Getenv("WEIR_PLAY") == "" && os.Getenv("WEIR_OWN_NETWORK") == "" {
		inOwnNetwork(t)
		return
	}
	up(t)
	const size = 256 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.CopyN(w, zeros{}, size)
	}))
	defer srv.Close()
	k := &keep{}
	w, err := Start(context.Background(), []scenario.Host{{Name: "here"}}, Options{}, k)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(curl, "-s", "-m", "30", "--noproxy", "*", "-o", "/dev/null", "-w", "%{size_download}", srv.URL).Output()
	if err != nil || string(out) != fmt.Sprint(size) {
		t.Fatalf("curl: %s, %v", out, err)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	name, err := InterfaceFor(srv.URL)
	if err != nil || name != "lo" {
		t.Fatal(name, err)
	}
	var bytes, packets int64
	for _, s := range k.of("here") {
		for _, n := range s.Nets {
			if n.Name == name {
				bytes, packets = bytes+n.Received, packets+n.PacketsIn
			}
		}
	}
	near(t, "payload on lo", float64(Payload(bytes, packets, false)), size, 0.01)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// inOwnNetwork runs the calling test again where only it has traffic.
func inOwnNetwork(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "WEIR_OWN_NETWORK=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal("no network of its own:", err)
		}
		t.Skip("no network of its own:", err)
	}
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Error("the test failed in its own network:", err)
	}
}

// up switches the loopback interface on.
func up(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
}

// nginx starts one with two workers and returns it and its port.
func nginx(t testing.TB, size int64) (*exec.Cmd, int) {
	t.Helper()
	path := program(t, "nginx")
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;", kind, dir, kind)
	}
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf("%s worker_processes 2; daemon off; pid %s/pid; error_log %s/error.log; events {}\n"+
		"http { %s access_log off; sendfile on; server { listen 127.0.0.1:%d; root %s; } }\n", user, dir, dir, temp, port, dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", conf, "-e", filepath.Join(dir, "error.log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM) // the workers go with the master
			_ = cmd.Wait()
		}
	})
	answers(t, port)
	return cmd, port
}

// TestNginx finds the server by its port only, with its workers, and sees
// their CPU time and bytes when curl loads it.
func TestNginx(t *testing.T) {
	curl := program(t, "curl")
	const size, times = 256 << 20, 8
	cmd, port := nginx(t, size)
	pids, err := Listeners(port)
	if err != nil || len(pids) != 3 || pids[0] != cmd.Process.Pid {
		t.Fatalf("who listens: %v, %v; the master is %d", pids, err, cmd.Process.Pid)
	}
	k := &keep{}
	url := fmt.Sprintf("http://127.0.0.1:%d/big", port)
	// This process started nginx, so that with Children both want it.
	w, err := Start(context.Background(), []scenario.Host{{Name: "here"}}, Options{Target: url, Children: true}, k)
	if err != nil {
		t.Fatal(err)
	}
	before := cpuOf(t, pids)
	for range times {
		out, err := exec.Command(curl, "-s", "-m", "30", "--noproxy", "*", "-o", "/dev/null", "-w", "%{size_download}", url).Output()
		if err != nil || string(out) != fmt.Sprint(size) {
			t.Fatalf("curl: %s, %v", out, err)
		}
	}
	after := cpuOf(t, pids)
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	p := sum(k.of("here"), "nginx")
	if p.Count != 3 {
		t.Errorf("%d processes", p.Count)
	}
	near(t, "nginx's CPU seconds", p.User+p.System, after-before, 0.1)
	near(t, "bytes that nginx wrote", float64(p.Written), size*times, 0.01)
	if own := sum(k.of("here"), "weir"); own.Read > size*times/2 && own.Written > size*times/2 {
		t.Errorf("nginx's bytes are in this process's figures: %+v", own)
	}
	for _, s := range k.of("here") {
		if s.Role != "both" || s.Error != "" {
			t.Errorf("role %s, error %q", s.Role, s.Error)
		}
	}
}

func cpuOf(t *testing.T, pids []int) float64 {
	f := newProcFS("", "")
	var all usage
	for _, pid := range pids {
		s, err := f.stat(pid)
		if err != nil {
			t.Fatal(err)
		}
		all = all.plus(s.self)
	}
	return float64(all.user+all.system) / 1e6
}

// TestServiceIsFoundAgain: the server ends in the middle and another one takes
// its port.
func TestServiceIsFoundAgain(t *testing.T) {
	first, port := nginx(t, 1000)
	addr, ok := localTarget(context.Background(), fmt.Sprintf("http://localhost:%d/", port))
	if !ok || int(addr.Port()) != port {
		t.Fatal(addr, ok)
	}
	l := newLocal(scenario.Host{}, Options{}, addr, newClock())
	defer l.close()
	server := func() int {
		s, err := l.look(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s == nil {
			return -1
		}
		return sum([]*Sample{s}, "nginx").Count
	}
	server()
	if n := server(); n != 3 {
		t.Fatalf("%d processes", n)
	}
	_ = first.Process.Signal(syscall.SIGTERM)
	_ = first.Wait()
	eventually(t, "the first server is gone", func() bool { return server() == 0 })
	_, second := nginx(t, 1000)
	l.target = netip.AddrPortFrom(addr.Addr(), uint16(second)) // the same port may be taken by others meanwhile
	eventually(t, "the second server is watched", func() bool { return server() == 3 })
}
