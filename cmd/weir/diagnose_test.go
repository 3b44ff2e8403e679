package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/diagnose"
	"weir/internal/require"
	"weir/internal/slow"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/link"
	"weir/link/emulator"
)

// diagnosedFile makes a folder with a file of random bytes for weir serve.
func diagnosedFile(t *testing.T, size int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	payload := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(payload) // it cannot fail
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), payload, 0o600))
	return dir
}

// serveFor starts weir serve and returns host:port.
func serveFor(t *testing.T, dir string, args ...string) (server *exec.Cmd, at string) {
	t.Helper()
	cmd := exec.Command("weir", append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	text := make([]byte, 200)
	n, err := out.Read(text)
	require.NoError(t, err)
	_, at, _ = strings.Cut(strings.TrimSpace(string(text[:n])), "http://")
	return cmd, at
}

// A slowness is a transfer with one known cause.
type slowness struct {
	line    link.Spec
	serve   []string // arguments of the server
	sysctl  string   // of the client's network
	file    string   // "": 64 MiB
	write   bool
	stopped bool // the server, by SIGSTOP
	cause   slow.Cause
	detail  slow.Detail
}

// diagnosed runs weir diagnose at the end of an emulated line.
func (s *slowness) diagnosed(t *testing.T, dir string) (r diagnose.Report) {
	t.Helper()
	server, at := serveFor(t, dir, s.serve...)
	lines := []link.Named{{Name: "site", Spec: s.line}}
	network, err := emulator.Up(t.Context(), lines, emulator.Options{Mover: []string{"weir", "mover"}, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = network.Close() })
	site := network.Site("site")
	at, err = site.Reach(t.Context(), at)
	require.NoError(t, err)
	args := []string{"diagnose", "http://" + at + "/" + cmp.Or(s.file, "file"), "--json", "--time", "40s"}
	if s.write {
		args[1] = "http://" + at + "/"
		args = append(args, "--write")
	}
	if s.stopped {
		require.NoError(t, server.Process.Signal(syscall.SIGSTOP))
	}
	cmd := exec.Command("weir", args...)
	if s.sysctl != "" {
		cmd = exec.Command("sh", append([]string{"-c", "sysctl -qw \"" + s.sysctl + "\" && exec weir \"$@\"", "sh"}, args...)...)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	require.NoError(t, site.Start(cmd))
	if err = cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	t.Logf("%s", said.String())
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	return r
}

// The cause of each slowness is named, or weir cannot tell it.
func TestDiagnose(t *testing.T) {
	tier.Quiet(t, "transfers over slow lines")
	linkNeeds(t)
	dir := diagnosedFile(t, 64<<20)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small"), make([]byte, 5000), 0o600))
	const ms = unit.Duration(time.Millisecond)
	for name, s := range map[string]slowness{
		"rate": {line: link.Spec{Rate: 40e6, RTT: 20 * ms}, cause: slow.Line, detail: slow.Rate},
		"loss": {line: link.Spec{Rate: 1e9, RTT: 40 * ms, Loss: 0.01, Congestion: "cubic"}, cause: slow.Line, detail: slow.Loss},
		"window": {line: link.Spec{Rate: 1e9, RTT: 80 * ms}, sysctl: "net.ipv4.tcp_rmem=4096 65536 65536",
			cause: slow.Line, detail: slow.Window},
		"stream": {line: link.Spec{Rate: 1e9, RTT: 10 * ms}, serve: []string{"--rate", "3MB/s"},
			cause: slow.ServerLimit, detail: slow.Stream},
		"stream nearby": {line: link.Spec{RTT: ms}, serve: []string{"--rate", "3MB/s"}, cause: slow.ServerLimit, detail: slow.Stream},
		"client": {line: link.Spec{Rate: 1e9, RTT: 10 * ms}, serve: []string{"--total-rate", "4MB/s"},
			cause: slow.ServerLimit, detail: slow.Client},
		"queue":   {line: link.Spec{RTT: 2 * ms}, serve: []string{"--delay", "300ms"}, file: "small", cause: slow.ServerHost},
		"small":   {line: link.Spec{RTT: 100 * ms}, file: "small", cause: slow.SmallFiles},
		"stopped": {line: link.Spec{RTT: 5 * ms}, stopped: true, cause: slow.ServerHost},
		"stream write": {line: link.Spec{Rate: 1e9, RTT: 10 * ms}, serve: []string{"--rate", "3MB/s"}, write: true,
			cause: slow.ServerLimit, detail: slow.Stream},
		"rate write": {line: link.Spec{Rate: 40e6, RTT: 20 * ms}, write: true, cause: slow.Line, detail: slow.Rate},
		"loss write": {line: link.Spec{Rate: 1e9, RTT: 40 * ms, Loss: 0.01, Congestion: "cubic"}, write: true,
			cause: slow.Line, detail: slow.Loss},
		"window write": {line: link.Spec{Rate: 1e9, RTT: 80 * ms}, sysctl: "net.ipv4.tcp_wmem=4096 65536 65536", write: true,
			cause: slow.Line, detail: slow.Window},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.diagnosed(t, dir)
			v := r.Verdict
			if v.Cause == slow.Unknown { // right on a busy machine
				t.Logf("%s", v.Text)
				return
			}
			if v.Cause != s.cause || s.detail != "" && v.Detail != s.detail {
				text, _ := json.MarshalIndent(r.Seen, "", " ")
				t.Errorf("%s %s: %+v\n%s", s.cause, s.detail, v, text)
				return
			}
			t.Logf("%s %s", v.Certainty, v.Text)
		})
	}
}
