package main

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// loopback6 returns a listener on [::1]. If the kernel has no IPv6, it skips the test.
func loopback6(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		if strings.Contains(os.Getenv("WEIR_REQUIRE"), "all") {
			t.Fatal(err)
		}
		t.Skipf("this kernel has no IPv6: %v", err)
	}
	return l
}

// readsAt runs weir without a scenario against target, and fails t unless files were
// read and the server's processes were found.
func readsAt(t *testing.T, target string) {
	t.Helper()
	dir := t.TempDir()
	p := start(t, dir, "weir", "run", "--target", target, "--clients", "1,2", "--duration", "1s", "--set",
		"load={ramp: 0, warmup: 0, graceful_stop: 2s}", "-q")
	code, said := p.ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*-*", results.PlanFile))
	if err != nil || len(runs) != 1 || strings.ContainsAny(filepath.Base(filepath.Dir(runs[0])), ":[]%") {
		t.Fatalf("%q, %v", runs, err)
	}
	f := findings(t, filepath.Dir(runs[0]))
	if f.Target != target || len(f.Curve) != 2 || f.Curve[0].Done == 0 || f.Curve[0].Errors > 0 {
		t.Fatalf("%+v\n%s", f.Curve, said)
	}
	if f.Curve[0].ServerCores == nil && f.Curve[1].ServerCores == nil {
		t.Errorf("the processes of the server at %s were not found", target)
	}
}

// A server that listens on [::1] is measured like a server that listens on 127.0.0.1: the default
// name of the run, its folder, the drivers with their redirects and data connections, and the
// processes of the server.
func TestIPv6(t *testing.T) {
	t.Parallel()
	_ = loopback6(t).Close()
	t.Run("built-in", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		fill(t, dir, 3, 64<<10)
		cmd := exec.CommandContext(t.Context(), "weir", "serve", dir, "--listen", "[::1]:0")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		readsAt(t, strings.Fields(line)[1]+"/")
	})
	t.Run("nginx", func(t *testing.T) {
		t.Parallel()
		free := loopback6(t)
		at := free.Addr().String()
		_ = free.Close() // nginx listens there next
		s := labtest.Start(t, lab.NginxConfig{Extra: "listen " + at + ";"})
		fill(t, s.Data, 3, 64<<10)
		readsAt(t, "http://"+at+"/data")
	})
	t.Run("xrootd", func(t *testing.T) {
		t.Parallel()
		s := labtest.Start(t, lab.XRootDConfig{IPv6: true})
		fill(t, s.Data, 3, 64<<10)
		readsAt(t, s.URL)
	})
	t.Run("gridftp", func(t *testing.T) {
		t.Parallel()
		s := labtest.Start(t, lab.GridFTPConfig{IPv6: true})
		fill(t, s.Data, 3, 64<<10)
		readsAt(t, s.URL)
	})
	t.Run("redirect", func(t *testing.T) {
		t.Parallel()
		l := loopback6(t)
		data := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.FileServer(http.Dir(t.TempDir()))}}
		data.Start()
		t.Cleanup(data.Close)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, data.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		t.Cleanup(front.Close)
		out := filepath.Join(t.TempDir(), "run")
		_, said := weir(t, "run", "--target", front.URL, "--clients", "1", "--duration", "1s", "--set", "files.list="+writeTemp(t, "none.dat\n"),
			"--set", "load={ramp: 0, warmup: 0}", "--out", out)
		f := findings(t, out)
		if len(f.Curve) != 1 || f.Curve[0].Errors == 0 || !contains(filepath.Join(out, results.EventsFile), `"class":"not found","server":"`+
			l.Addr().String()+`"`) {
			t.Errorf("%+v\n%s", f.Curve, said)
		}
	})
	t.Run("find", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		code, said := start(t, dir, "weir", "find", "http://[::1]:9/", "--time", "1m", "--json").ended()
		if code != exitError {
			t.Errorf("exit code %d\n%s", code, said)
		}
		noSecrets(t, "output", said)
	})
}

// Default names of runs with IPv6 addresses, zones included, are valid file names.
func TestNamesOfIPv6(t *testing.T) {
	for target, want := range map[string]string{
		"http://[::1]:18080/": "ip6---1", "root://[fe80::1%25eth0]:1094//": "ip6-fe80--1-eth0", "ftp://[2001:DB8::10]/": "ip6-2001-DB8--10",
		"http://[::ffff:10.0.0.1]/": "ip6---ffff-10.0.0.1",
	} {
		s, err := scenario.DefaultWith(target, []string{"target=" + target})
		if err != nil || s.Name != want {
			t.Errorf("%s: %v, %v", target, s, err)
		}
	}
}
