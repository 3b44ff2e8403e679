package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// behindBalancer returns the arguments for a run against a lab's balanced service.
func behindBalancer(s *lab.System) []string {
	return []string{"--target", s.URL, "--set", "balancer=" + s.BalancerBlock(), "--set", "hosts=[" + strings.Join(s.HostsBlock(), ", ") + "]",
		"--set", "load.ramp=100ms", "--set", "load.warmup=500ms"}
}

// TestBackendsOfGridFTP reads from real GridFTP servers behind a real HAProxy. The figures of each
// server from clients, logs, interfaces and HAProxy agree.
func TestBackendsOfGridFTP(t *testing.T) {
	tier.Quiet(t, "the tests of the five reports, small")
	for _, c := range []struct {
		name     string
		loopback bool
		clients  string // "": weir's own clients
		source   string
	}{
		{"wired", false, "", analysis.ByClients},
		{"loopback", true, "", analysis.ByClients},
		{"a program", false, "{command: [globus-url-copy, -vb, \"{url}\", \"file://{dest}\"]}", analysis.ByLog},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.clients != "" {
				labtest.Need(t, "globus-url-copy")
			}
			s := labtest.Start(t, lab.GridFTPConfig{Servers: 3, Loopback: c.loopback})
			args := append(behindBalancer(s), "--clients", "3,12", "--duration", "4s", "--set", "workload.session=fresh", "--set",
				"files.make={count: 12, size: 1MiB}", "--set", "workload.verify=0%")
			if c.clients != "" {
				list := filepath.Join(t.TempDir(), "list")
				args = append(args, "--set", "client="+c.clients, "--set", "files={list: "+list+"}")
				names := ""
				for i := range 12 {
					name := fmt.Sprintf("f%d", i)
					names += name + "\n"
					require.NoError(t, os.WriteFile(filepath.Join(s.Data, name), make([]byte, 1<<20), 0o644))
				}
				require.NoError(t, os.WriteFile(list, []byte(names), 0o600))
			}
			f := measureFor(t, args...)
			checkShares(t, f, s, c.source)
		})
	}
}

// checkShares compares the findings of a run about three backends with each other.
func checkShares(t *testing.T, f *analysis.Findings, s *lab.System, source string) {
	t.Helper()
	b := f.Balance
	if b == nil || b.Source != source || b.Balancer != "haproxy" || len(b.Backends) != 3 {
		t.Fatalf("%+v, warnings %q", b, f.Warnings)
	}
	for i := range f.Curve {
		step := &f.Curve[i]
		if step.Balance == nil || step.Errors > 0 {
			t.Fatalf("step %d: %+v, %d errors", i, step.Balance, step.Errors)
		}
		if sum := step.Balance.Sum; sum < 0.7*step.Throughput || sum > 1.3*step.Throughput {
			t.Errorf("%d clients: the backends gave %v together, clients saw %v", step.Clients, sum, step.Throughput)
		}
		rates, cores := 0.0, 0.0
		for k := range step.Backends {
			x := &step.Backends[k]
			if x.Name != s.Servers[k+1].Name || x.Share < 0.05 || x.Sessions == nil || x.SessionRate == nil || x.Log == nil || x.Cores == nil ||
				x.Status != "UP" && x.Status != "no check" {
				t.Fatalf("%d clients: %+v", step.Clients, x)
			}
			rates += *x.SessionRate
			cores += *x.Cores
			if wired := s.Servers[k+1].Interface != ""; wired != (x.Interface != nil) {
				t.Errorf("%s: interface %v", x.Name, x.Interface)
			}
			if *x.Balancer > 0.1**x.Throughput {
				t.Errorf("%s: %v B/s went through HAProxy, %v B/s were served", x.Name, *x.Balancer, *x.Throughput)
			}
		}
		if rates < 0.5*step.Operations || rates > 2*step.Operations+5 || cores <= 0 {
			t.Errorf("%d clients: %v sessions/s began for %v files/s, %v cores", step.Clients, rates, step.Operations, cores)
		}
		if step.Balance.Imbalance > 2 {
			t.Errorf("%d clients: imbalance %v by the fewest sessions", step.Clients, step.Balance.Imbalance)
		}
	}
	want(t, f, "backends agree", analysis.OK)
	if s.Servers[1].Interface != "" { // the loopback interface also carries the traffic of other programs
		want(t, f, "both ends agree", analysis.OK)
	}
}

// TestTheFullBackendIsFound: HAProxy allows one of two web servers only two sessions, and sends the
// other sessions elsewhere. If sessions are kept, HAProxy reports their bytes too late, and shares
// are shares of sessions.
func TestTheFullBackendIsFound(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	s := labtest.Start(t, lab.NginxConfig{})
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	front, socket := startBalancer(t, "server quick "+u.Host+"\n server small "+u.Host+" maxconn 2")
	for session, source := range map[string]string{"fresh": analysis.ByBalancer, "kept": analysis.BySessions} {
		dir := filepath.Join(t.TempDir(), "run")
		code, said := weir(t, "run", "--quiet", "--verbose", "--out", dir, "--target", "http://"+front+u.Path, "--clients", "2,16", "--duration",
			"3s", "--set", "load.ramp=100ms", "--set", "load.warmup=500ms",
			"--set", "workload.session="+session, "--set", "balancer={haproxy: "+socket+", service: web}", "--set",
			"files.make={count: 20, size: 256KiB}",
			"--set", "thresholds=[imbalance < 1.0001 at 16 clients, imbalance < 3]")
		if code != exitMissed && code != exitInvalid {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		f := findings(t, dir)
		if f.Balance == nil || f.Balance.Source != source {
			t.Fatalf("session %s: %+v\n%s", session, f.Balance, said)
		}
		if session == "fresh" {
			continue // the next session may begin so late that the server is free again
		}
		if b := f.Balance; b.First == nil || b.First.Backend != "small" || b.First.Resource != analysis.LimitSessions || b.First.From != 16 {
			t.Fatalf("session %s: %+v, %+v\n%s", session, b, f.Curve[1].Backends, said)
		}
		if j := f.Thresholds; j[0].Met || !j[1].Met {
			t.Errorf("%+v", j)
		}
		for _, file := range []string{results.BackendsCSVFile, results.ReportFile} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !strings.Contains(string(text), "small") {
				t.Errorf("%s: %v", file, err)
			}
		}
		if !strings.Contains(unwrapped(said), "small is full first, with 16 clients") {
			t.Error(said)
		}
	}
	empty(t, s.Data)
}

// startBalancer starts HAProxy for sessions of HTTP, and returns its address and
// statistics socket.
func startBalancer(t *testing.T, servers string) (address, socket string) {
	t.Helper()
	labtest.Need(t, "haproxy")
	dir := t.TempDir()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, socket = l.Addr().String(), filepath.Join(dir, "s")
	_ = l.Close()
	config := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf("global\n stats socket %s mode 600\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server "+
		"1m\n timeout queue 1m\nlisten web\n bind %s\n balance roundrobin\n %s\n", socket, address, servers)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command("haproxy", "-db", "-f", config)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
			_ = conn.Close()
			return address, socket
		}
		<-tick.C
	}
	t.Fatal("HAProxy does not come up")
	return "", ""
}

// TestDoorsAreUsedInTurn: client number n uses door n modulo the number of doors, in any process.
func TestDoorsAreUsedInTurn(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{})
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	if other == s.URL {
		other = strings.Replace(s.URL, "localhost", "127.0.0.1", 1)
	}
	for _, processes := range []string{"1", "2"} {
		dir := filepath.Join(t.TempDir(), "run")
		scenario := filepath.Join(t.TempDir(), "s.yaml")
		text := fmt.Sprintf("target: [%q, %q]\nfiles: {make: {count: 8, size: 256KiB}}\nworkload: {think: 10ms}\nload: {clients: [2, 7], ramp: "+
			"100ms, warmup: 200ms, duration: 2s}\n", s.URL, other)
		require.NoError(t, os.WriteFile(scenario, []byte(text), 0o600))
		if code, said := weir(t, "run", "--quiet", "--out", dir, scenario, "--processes", processes); code != exitFine && code != exitInvalid {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		f := findings(t, dir)
		if len(f.Curve) != 2 || f.Balance == nil || len(f.Balance.Backends) != 2 {
			t.Fatalf("%+v", f.Balance)
		}
		shares := []float64{f.Curve[1].Servers[0].OperationsShare, f.Curve[1].Servers[1].OperationsShare}
		slices.Sort(shares)
		if shares[0] < 0.3 || shares[0] > 0.5 { // three of seven clients
			t.Errorf("%s processes: shares %v", processes, shares)
		}
	}
	empty(t, s.Data)
}
