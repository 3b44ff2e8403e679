package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"weir/internal/require"
)

// nginx starts one with two workers and returns it and its port.
func nginx(t testing.TB, size int64) (*exec.Cmd, int) {
	t.Helper()
	path := program(t, "nginx")
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "big"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(file.Truncate(size), file.Close()))
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
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o644))
	cmd := exec.Command(path, "-c", conf, "-e", filepath.Join(dir, "error.log"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM) // the workers go with the master
			_ = cmd.Wait()
		}
	})
	answers(t, port)
	require.Eventually(t, "both workers listen", func() bool { // the first answers before the second is there
		pids, err := newProcFS("", "").servers(netip.Addr{}, port)
		return err != nil || len(pids) == 3
	})
	return cmd, port
}

// TestNginx finds the server by its port only, with its workers, and measures their CPU time and
// bytes when curl loads it.
func TestNginx(t *testing.T) {
	t.Parallel()
	curl := program(t, "curl")
	const size, times = 256 << 20, 8
	cmd, port := nginx(t, size)
	pids, err := newProcFS("", "").servers(netip.Addr{}, port)
	if err != nil || len(pids) != 3 || pids[0] != cmd.Process.Pid {
		t.Fatalf("who listens: %v, %v; the master is %d", pids, err, cmd.Process.Pid)
	}
	k := &keep{}
	url := fmt.Sprintf("http://127.0.0.1:%d/big", port)
	// This process started nginx, so that with Children two groups claim it.
	w, err := Start(context.Background(), []Host{{Name: "here"}}, Options{Target: url, Children: true}, k)
	require.NoError(t, err)
	looked(t, k)
	before := cpuOf(t, pids)
	for range times {
		out, err := exec.Command(curl, "-s", "-m", "30", "--noproxy", "*", "-o", "/dev/null", "-w", "%{size_download}", url).Output()
		if err != nil || string(out) != fmt.Sprint(size) {
			t.Fatalf("curl: %s, %v", out, err)
		}
	}
	after := rested(t, pids)
	require.NoError(t, w.Stop())
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

// rested returns the CPU time of pids once it stops growing: on a busy machine curl may receive the
// last byte before nginx has returned from sending it.
func rested(t *testing.T, pids []int) float64 {
	now, same := cpuOf(t, pids), 0
	require.Eventually(t, "nginx rests", func() bool {
		last := now
		if now = cpuOf(t, pids); now != last {
			same = 0
		}
		same++
		return same == 5
	})
	return now
}

func cpuOf(t *testing.T, pids []int) float64 {
	f := newProcFS("", "")
	var all usage
	for _, pid := range pids {
		s, err := f.stat(pid)
		require.NoError(t, err)
		all = all.plus(s.self)
	}
	return float64(all.user+all.system) / 1e6
}

// TestServiceIsFoundAgain: the server ends in the middle and another server takes its port.
func TestServiceIsFoundAgain(t *testing.T) {
	first, port := nginx(t, 1000)
	addr, ok := localTarget(context.Background(), fmt.Sprintf("http://localhost:%d/", port))
	if !ok || int(addr.Port()) != port {
		t.Fatal(addr, ok)
	}
	l := newLocal(Host{}, Options{}, []netip.AddrPort{addr}, newClock())
	defer l.close()
	server := func() int {
		s, err := l.look(context.Background())
		require.NoError(t, err)
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
	require.Eventually(t, "the first server is gone", func() bool { return server() == 0 })
	_, second := nginx(t, 1000)
	l.servers.places[0].addr = netip.AddrPortFrom(addr.Addr(), uint16(second)) // other programs may take the same port meanwhile
	require.Eventually(t, "the second server is watched", func() bool { return server() == 3 })
}

// TestAllTargetsAreFound: a service with several endpoints on this machine is the processes of all
// of them; processes that are elsewhere, or do not listen yet, are not an error.
func TestAllTargetsAreFound(t *testing.T) {
	t.Parallel()
	var targets []string
	var pids []int
	for range 2 {
		_, port := nginx(t, 1000)
		targets = append(targets, fmt.Sprintf("http://127.0.0.1:%d/", port))
		all, err := newProcFS("", "").servers(netip.Addr{}, port)
		require.NoError(t, err)
		pids = append(pids, all...)
	}
	others := append([]string{"http://192.0.2.1:80/", fmt.Sprintf("http://127.0.0.1:%d/", freePort(t))}, targets[1])
	for name, o := range map[string]Options{
		"first here":     {Target: targets[0], Others: others},
		"first not here": {Target: "http://192.0.2.1:80/", Others: targets},
	} {
		k := &keep{}
		w, err := Start(t.Context(), []Host{{Name: "here"}}, o, k)
		require.NoError(t, err)
		looked(t, k)
		require.NoError(t, w.Stop())
		p := sum(k.of("here"), "nginx")
		if p.Count != len(pids) || len(pids) != 6 {
			t.Errorf("%s: %d processes are watched, %d listen", name, p.Count, len(pids))
		}
		for _, s := range k.of("here") {
			if s.Role != "both" {
				t.Errorf("%s: role %s", name, s.Role)
			}
		}
	}
}

// TestServersOfRedirectsAreFound: servers that clients name are watched from then on, if they are on this machine.
func TestServersOfRedirectsAreFound(t *testing.T) {
	t.Parallel()
	_, first := nginx(t, 1000)
	_, second := nginx(t, 1000)
	k := &keep{}
	w, err := Start(t.Context(), []Host{{Name: "here"}}, Options{Target: fmt.Sprintf("http://127.0.0.1:%d/", first)}, k)
	require.NoError(t, err)
	looked(t, k)
	if n := sum(k.of("here"), "nginx").Count; n != 3 {
		t.Errorf("%d processes before", n)
	}
	for _, server := range []string{"192.0.2.1:80", "no address", fmt.Sprintf("localhost:%d", second), fmt.Sprintf("localhost:%d", second)} {
		w.Serves(server)
	}
	require.Eventually(t, "both servers are watched", func() bool { return sum(k.of("here"), "nginx").Count == 6 })
	require.NoError(t, w.Stop())
}
