package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// A cluster with three data servers is shared by all subtests.
func TestCluster(t *testing.T) {
	labtest.Need(t, "xrdcp", "curl")
	reports, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer reports.Close()
	var started []string
	lost := make(chan string, 8)
	s := labtest.Start(t, lab.XRootDConfig{
		Servers: 3, Extra: fmt.Sprintf("xrd.report %s every 1s all\n", reports.LocalAddr()),
		Config: lab.Config{TLS: true, Progress: func(part string) { started = append(started, part) },
			Lost: func(part string, why error) { lost <- part + " " + why.Error() }},
	})
	want := []string{
		"redirector-cmsd", "redirector-xrootd", "ds1-cmsd", "ds1-xrootd", "ds2-cmsd", "ds2-xrootd", "ds3-cmsd", "ds3-xrootd",
	}
	if diff := cmp.Diff(want, started); diff != "" {
		t.Errorf("progress: %s", diff)
	}
	t.Run("members", func(t *testing.T) { members(t, s) })
	t.Run("files", func(t *testing.T) { files(t, s) })
	t.Run("http", func(t *testing.T) { overHTTP(t, s) })
	t.Run("reports", func(t *testing.T) { reported(t, s, reports) })
	t.Run("hung", func(t *testing.T) { hung(t, s) })
	t.Run("killed", func(t *testing.T) { killed(t, s) })
	t.Run("lost", func(t *testing.T) {
		pids := s.Pids("ds3")
		require.NoError(t, syscall.Kill(-pids[1], syscall.SIGKILL))
		if what := <-lost; what != "ds3-xrootd signal: killed" {
			t.Errorf("reported as lost: %s", what)
		}
		require.NoError(t, s.RestartPart(t.Context(), "ds3"))
	})
	t.Run("stopped", func(t *testing.T) { gone(t, s) })
	if n := len(lost); n > 0 {
		t.Errorf("%d parts that were stopped are reported as lost: %s", n, <-lost)
	}
}

func members(t *testing.T, s *lab.System) {
	if diff := cmp.Diff([]string{"redirector", "ds1", "ds2", "ds3"}, s.ServerNames()); diff != "" {
		t.Fatal(diff)
	}
	known, err := lab.Locate(t.Context(), s.Servers[0].Address)
	require.NoError(t, err)
	var ports []string
	for _, server := range s.Servers[1:] {
		_, port, _ := strings.Cut(server.Address, ":")
		ports = append(ports, port)
	}
	if len(known) != 3 || !known[ports[0]] || !known[ports[1]] || !known[ports[2]] {
		t.Errorf("the redirector knows %v, want ports %v", known, ports)
	}
	all := s.Pids()
	for of, want := range map[string]int{lab.Redirector: 2, lab.DataServer: 6, "ds2": 2, "ds4": 0} {
		pids := s.Pids(of)
		if len(pids) != want {
			t.Errorf("%s: %d processes, want %d", of, len(pids), want)
		}
		for _, pid := range pids {
			if !slices.Contains(all, pid) {
				t.Errorf("%s: process %d is none of %v", of, pid, all)
			}
		}
	}
	if both := s.Pids("ds1", "ds3"); len(both) != 4 || len(all) != 8 {
		t.Errorf("processes of two %v, of all %v", both, all)
	}
	for _, err := range []error{s.KillPart("ds4"), s.RestartPart(t.Context(), "ds4"), s.SignalPart("ds4", syscall.SIGCONT)} {
		if err == nil || !strings.Contains(err.Error(), "redirector, ds1, ds2, ds3") {
			t.Errorf("of a server that is not there: %v", err)
		}
	}
	if n := len(s.Pids()); n != 8 {
		t.Errorf("%d processes are left", n)
	}
}

// files written into the data servers are found through the redirector, and
// those written through it land on data servers.
func files(t *testing.T, s *lab.System) {
	for i := range 9 {
		require.NoError(t, s.WriteFile(fmt.Sprintf("spread/f%d", i), payload()))
	}
	for _, server := range s.Servers[1:] {
		if found, _ := filepath.Glob(filepath.Join(server.Data, "spread/f*")); len(found) == 0 {
			t.Errorf("%s got none of 9 files", server.Name)
		}
	}
	to := t.TempDir()
	args := []string{"xrdcp", "-s"}
	for i := range 9 {
		args = append(args, fmt.Sprintf("%s/spread/f%d", s.URL, i))
	}
	run(t, s.Env, append(args, to)...)
	for i := range 9 {
		same(t, filepath.Join(to, fmt.Sprintf("f%d", i)), payload())
	}
	there(t, s, s.URL, "new")
	there(t, s, s.URLs["roots"], "new-tls")
}

func overHTTP(t *testing.T, s *lab.System) {
	local := filepath.Join(t.TempDir(), "local")
	require.NoError(t, os.WriteFile(local, payload(), 0o600))
	run(t, nil, "curl", "-sSf", "-L", "--cacert", s.CAFile, "-T", local, s.URLs["https"]+"/by-http")
	back := filepath.Join(t.TempDir(), "back")
	run(t, nil, "curl", "-sSf", "-L", "--cacert", s.CAFile, "-o", back, s.URLs["http"]+"/by-http")
	same(t, back, payload())
}

// reported waits until each xrootd, and no cmsd, has sent its statistics.
func reported(t *testing.T, s *lab.System, reports net.PacketConn) {
	require.NoError(t, reports.SetReadDeadline(time.Now().Add(20*time.Second)))
	from := map[string]bool{}
	for b := make([]byte, 1<<16); len(from) < len(s.Servers); {
		n, _, err := reports.ReadFrom(b)
		if err != nil {
			t.Fatalf("reports of %v, want %d: %v", from, len(s.Servers), err)
		}
		for _, server := range s.Servers {
			if bytes.Contains(b[:n], []byte(`ins="`+server.Name+`"`)) {
				from[server.Name] = true
			}
		}
		if !bytes.Contains(b[:n], []byte(`pgm="xrootd"`)) {
			t.Errorf("a report of another program: %s", b[:min(n, 300)])
		}
	}
}

// where returns the data servers of s that have a file.
func where(s *lab.System, name string) []string {
	var have []string
	for _, server := range s.Servers[1:] {
		if _, err := os.Stat(filepath.Join(server.Data, name)); err == nil {
			have = append(have, server.Name)
		}
	}
	return have
}

func hung(t *testing.T, s *lab.System) {
	require.NoError(t, s.SignalPart("ds1", syscall.SIGSTOP))
	ds1, err := s.Server("ds1")
	require.NoError(t, err)
	within(t, patience, "silence of a stopped data server", func() bool { // its threads stop one by one
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return errors.Is(lab.AskXRootD(ds1.Address)(ctx), os.ErrDeadlineExceeded)
	})
	if err := lab.AskXRootD(s.Servers[2].Address)(t.Context()); err != nil {
		t.Errorf("another data server: %v", err)
	}
	require.NoError(t, s.SignalPart("ds1", syscall.SIGCONT))
	if err := lab.AskXRootD(ds1.Address)(t.Context()); err != nil {
		t.Errorf("after it went on: %v", err)
	}
}

// killed kills one data server and restarts it, and then does the same with the redirector.
func killed(t *testing.T, s *lab.System) {
	there(t, s, s.URL, "survivor")
	on := where(s, "survivor")
	if len(on) != 1 {
		t.Fatalf("the file is on %v", on)
	}
	name, fetch := on[0], []string{"xrdcp", "-f", "-s", s.URL + "/survivor", "/dev/null"}
	require.NoError(t, s.KillPart(name))
	if n := len(s.Pids(name)); n != 0 || len(s.Pids()) != 6 {
		t.Errorf("after killing %s it has %d processes, all have %v", name, n, s.Pids())
	}
	server, err := s.Server(name)
	require.NoError(t, err)
	_, port, _ := strings.Cut(server.Address, ":")
	within(t, patience, "the redirector to miss "+name, func() bool {
		known, err := lab.Locate(t.Context(), s.Servers[0].Address)
		return err == nil && !known[port] && len(known) == 2
	})
	if err := lab.AskListener(server.Address)(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing a killed server: %v, want refused", err)
	}
	if out, err := client(t, append(s.Env, "XRD_REQUESTTIMEOUT=2", "XRD_STREAMTIMEOUT=2", "XRD_CONNECTIONWINDOW=2", "XRD_REDIRECTLIMIT=2"),
		fetch...); err == nil {
		t.Errorf("a file of a dead data server was read: %s", out)
	}
	for i := range 9 { // the others go on
		if file := fmt.Sprintf("spread/f%d", i); where(s, file)[0] != name {
			run(t, s.Env, "xrdcp", "-f", "-s", s.URL+"/"+file, "/dev/null")
		}
	}
	require.NoError(t, s.RestartPart(t.Context(), name))
	run(t, s.Env, fetch...)
	if err := s.RestartPart(t.Context(), name); err != nil { // while the server is running
		t.Fatal(err)
	}
	run(t, s.Env, fetch...)
	require.NoError(t, s.Restart(t.Context()))
	run(t, s.Env, fetch...)
	if n := len(s.Pids()); n != 8 {
		t.Errorf("%d processes after all", n)
	}
}

func TestXRootDConfigIsChecked(t *testing.T) {
	t.Setenv("TMPDIR", shared(t))
	labtest.Need(t, "krb5kdc", "kadmin.local", "kinit")
	for want, c := range map[string]lab.XRootDConfig{
		`authentication "kerberos": use one of none, unix, krb5, gsi, ztn`: {Auth: "kerberos"},
		"-1 data servers: use 0":                 {Servers: -1},
		"65 data servers: use 0":                 {Servers: 65},
		"lookup -1: use 1 second":                {Lookup: -1, Servers: 1},
		"is too long a name":                     {Servers: 1, Config: lab.Config{Dir: filepath.Join(shared(t), strings.Repeat("x", 90))}},
		"keeps others out":                       {Config: lab.Config{Dir: closed(t)}},
		"no such file":                           {Config: lab.Config{Programs: map[string]string{"xrootd": "/nowhere/xrootd"}}},
		"authentication krb5: /bin/false create": {Auth: "krb5", Config: lab.Config{Programs: map[string]string{"kdb5_util": "/bin/false"}}},
	} {
		if want == "keeps others out" && os.Geteuid() != 0 {
			continue // this process may not enter it either
		}
		s, err := c.Start(t.Context())
		if err == nil {
			t.Fatal(errors.Join(errors.New("it came up"), s.Stop()))
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
	if left := folders(t); len(left) > 0 {
		t.Errorf("folders left: %q", left)
	}
}

// closed returns a folder below a folder that other users may not enter.
func closed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(shared(t), "closed")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return filepath.Join(dir, "lab")
}

func TestLinesOf(t *testing.T) {
	got := lab.LinesOf("cms.sched cpu 1\nxrd.report x\n  cms.space min 1g\n# cms.", "cms.")
	if want := "cms.sched cpu 1\n  cms.space min 1g\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Credentials are only for systems that support them.
func TestNoCredentials(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	_, token := s.Token(time.Hour, "")
	_, proxy := s.ProxyFor(time.Hour)
	_, ticket := s.TicketFor(t.Context(), time.Hour)
	_, _, ca := s.WrongCA()
	for what, err := range map[string]error{"token": token, "proxy": proxy, "ticket": ticket, "authority": ca} {
		if err == nil {
			t.Errorf("there is a %s", what)
		}
	}
	if len(s.Env) != 0 || len(s.Settings) != 0 {
		t.Errorf("clients need %v %v", s.Env, s.Settings)
	}
}
