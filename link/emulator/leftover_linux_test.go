package emulator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/link"
)

// asHost makes the test program make links and hold them until it is killed.
const asHost = "WEIR_TEST_HOST"

// hostLinks makes links, starts a process at a site, prints its id and the address of the service,
// and waits for the end of its input.
func hostLinks() error {
	os.Unsetenv(asHost)
	os.Setenv(asMover, "1")
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	dialer, err := Enter()
	if err != nil {
		return err
	}
	o := Options{Mover: []string{exe}, Log: os.Stderr, device: os.Getenv("WEIR_TEST_DEVICE")}
	var gone <-chan struct{}
	if dialer != nil {
		defer dialer.Close()
		o.Outside, gone = dialer.Dial, dialer.Gone()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	links := []link.Named{{Name: "a", Spec: link.Spec{Rate: 10e6}}, {Name: "b", Spec: link.Spec{Rate: 10e6}}}
	n, err := Up(context.Background(), links, o)
	if err != nil {
		return err
	}
	cmd := exec.Command("cat") // as a worker, it ends when its input does
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := n.Site("b").Start(cmd); err != nil {
		return err
	}
	names, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", cmd.Process.Pid))
	if err != nil {
		return err
	}
	fmt.Println("up", cmd.Process.Pid, n.Service, strings.Count(string(names), "weir"))
	if outside := os.Getenv("WEIR_TEST_OUTSIDE"); outside != "" {
		there, err := n.Site("a").Reach(context.Background(), outside)
		if err != nil {
			return err
		}
		ask := exec.Command("curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "20", "http://"+there+"/")
		ask.Stdout, ask.Stderr = os.Stdout, os.Stderr
		if err := n.Site("a").Start(ask); err != nil {
			return err
		}
		if err := ask.Wait(); err != nil {
			return err
		}
	}
	over := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, os.Stdin); over <- err }()
	select {
	case err = <-over:
	case <-gone: // the process that isolated this process was killed
	case <-signals:
	}
	return errors.Join(err, in.Close(), cmd.Wait(), n.Close())
}

// interfaces are the names of all interfaces here, sorted, and all routes.
func interfaces(t *testing.T) (names []string) {
	t.Helper()
	list, err := netlink.LinkList()
	require.NoError(t, err)
	for _, l := range list {
		if strings.HasPrefix(l.Attrs().Name, "weir") {
			names = append(names, l.Attrs().Name)
		}
	}
	slices.Sort(names)
	return names
}

// spaceOf is the network namespace of a process.
func spaceOf(pid int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)) }

// After any end of a run, no part of its links remains: no device, no route, no namespace, no
// process.
func TestNothingStays(t *testing.T) {
	for _, end := range []string{"close", "kill"} {
		t.Run(end, func(t *testing.T) {
			needSpaces(t)
			before := interfaces(t)
			cmd, in, pid := hosted(t, nil)
			site, err := spaceOf(pid)
			if own, e := spaceOf(os.Getpid()); err != nil || e != nil || own == site {
				t.Fatalf("namespaces %q and %q, %v, %v", own, site, err, e)
			}
			if now := interfaces(t); len(now) < len(before)+2 {
				t.Errorf("devices %v before, %v now", before, now)
			}
			if end == "kill" {
				require.NoError(t, cmd.Process.Kill())
			}
			in.Close()
			if err := cmd.Wait(); err != nil && end == "close" {
				t.Error(err)
			}
			eventually(t, func() error {
				if now := interfaces(t); !slices.Equal(now, before) {
					return fmt.Errorf("devices %v, before %v", now, before)
				}
				return nobodyIn(site)
			})
		})
	}
}

// nobodyIn returns an error that names the processes in a network namespace.
func nobodyIn(space string) error {
	files, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	for _, f := range files {
		if name, err := os.Readlink(f); err == nil && name == space {
			return fmt.Errorf("%s is still in the namespace of a site", f)
		}
	}
	return nil
}

// eventually waits until f has no error: the kernel removes some objects with a delay.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // only for deadlocks
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for err := f(); err != nil; err = f() {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-tick.C
	}
}

// hosted starts hostLinks as another process, and returns it, its input, and
// the process at its site.
func hosted(t *testing.T, prepare func(*exec.Cmd)) (*exec.Cmd, io.Closer, int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), asHost+"=1")
	cmd.Stderr = os.Stderr
	if prepare != nil {
		prepare(cmd)
	}
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 4 || words[0] != "up" {
		t.Fatalf("%q, %v", line, err)
	}
	if words[3] != "1" {
		t.Errorf("the process at the site sees %s devices of links, not 1", words[3])
	}
	pid, err := strconv.Atoi(words[1])
	require.NoError(t, err)
	return cmd, in, pid
}

// Without privileges, links are possible in a separate network if the system lets all users make
// namespaces.
func TestIsolated(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test becomes somebody without privileges, which only root can")
	}
	dir := t.TempDir()
	device := filepath.Join(dir, "tun") // as on most systems: usable by all users
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), syscall.Mknod(device, syscall.S_IFCHR|0o666, 10<<8|200),
		os.Chmod(device, 0o666)); err != nil {
		tier.Without(t, "links", fmt.Sprintf("no device file for this test: %v", err))
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(dir, "test")
	if b, err := os.ReadFile(exe); err != nil || os.WriteFile(program, b, 0o755) != nil {
		t.Fatal(err)
	}
	labtest.Need(t, "curl")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("from outside")) }))
	defer server.Close()
	before := interfaces(t)
	needSpaces(t)
	var said strings.Builder
	cmd, in, _ := hosted(t, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir = program, dir
		cmd.Env = append(cmd.Env, "WEIR_TEST_DEVICE="+device, "WEIR_TEST_OUTSIDE="+server.Listener.Addr().String())
		dialer, err := Isolate(cmd)
		require.NoError(t, err)
		t.Cleanup(func() { dialer.Close() })
		nobody(cmd)
		cmd.Stderr = io.MultiWriter(os.Stderr, &said)
	})
	if now := interfaces(t); !slices.Equal(now, before) {
		t.Errorf("devices %v of this machine, before %v", now, before)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
}

// nobody makes cmd, which is isolated, run as a user without privileges.
func nobody(cmd *exec.Cmd) {
	const id = 65534
	a := cmd.SysProcAttr
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	a.Credential = &syscall.Credential{Uid: id, Gid: id, NoSetGroups: true}
}
