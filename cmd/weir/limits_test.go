package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// limitedBy measures, and fails t unless the first bottleneck is the resource. It returns the
// evidence. If other programs used much of the machine, the bottleneck may be another resource or
// unknown. It then measures up to three times, and finally skips t.
func limitedBy(t *testing.T, resource string, args ...string) string {
	t.Helper()
	for range 3 {
		f := measureFor(t, append(args, "--set", "load.ramp=100ms", "--set", "load.warmup=500ms")...)
		if len(f.Bottleneck) == 0 {
			t.Fatal("nothing is said of what limits the curve")
		}
		b := f.Bottleneck[0]
		said := strings.Join(b.Evidence, "\n")
		if b.Resource == resource {
			return said
		}
		wrong := fmt.Sprintf("limited by %s of %q from %d clients on, want %s:\n%s", b.Resource, b.Host, b.From, resource, said)
		if !crowded(f) && b.Foreign == 0 && (b.Resource != analysis.LimitUnknown || !strings.Contains(said, "other programs")) {
			t.Error(wrong)
			return said
		}
		t.Log(wrong)
	}
	t.Skip("other programs keep this machine busy")
	return ""
}

// listed writes a file of size bytes into folder, and a list of it.
func listed(t *testing.T, folder string, size int) string {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	for name, content := range map[string]string{filepath.Join(folder, "file"): strings.Repeat("x", size), list: "file\n"} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
	return list
}

// Each connection has a rate of its own, so that more clients have a higher throughput, and each
// client only waits for its own operations.
func TestLimitOfEachConnection(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	s := labtest.Start(t, lab.NginxConfig{SlowRate: 1 << 20})
	// nginx sends the bytes of the first second at once
	limitedBy(t, analysis.LimitLatency, "--target", s.URLs["slow"], "--clients", "1,4,16", "--duration", "2s", "--set", "files={list: "+
		listed(t, s.Data, 5<<18)+"}")
}

// A rate that all clients share is a limit inside the server.
func TestLimitInsideTheServer(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	s := labtest.Start(t, lab.NginxConfig{HTTP: "limit_req_zone $server_port zone=all:1m rate=100r/s;",
		Extra: "limit_req zone=all burst=10000;"})
	limitedBy(t, analysis.LimitInside, "--target", s.URL, "--clients", "1,4,32", "--duration", "2s", "--set", "files={list: "+
		listed(t, s.Data, 64<<10)+"}")
}

// shown writes a file that servers, which run as other users, can read and execute.
func shown(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	for folder := filepath.Dir(path); folder != filepath.Clean(os.TempDir()); folder = filepath.Dir(folder) {
		require.NoError(t, os.Chmod(folder, 0o755))
	}
	require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
	return path
}

// One process with one thread hashes a password for each request. It uses one core completely, and
// another core is idle.
func TestLimitOfOneCore(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	// openssl passwd -6 -salt weirweir secret: 5000 rounds of SHA-512
	const hash = "$6$weirweir$oeTJ7xgeEk45QaI52wQwtEr2kdYr45aEt9jjPRaLyHTZLdF1VNBHpLbePwek4JNl2WJHlsfjJeHRF1SB9dcVi/"
	passwords := shown(t, "passwords", "ada:"+hash+"\n")
	s := labtest.Start(t, lab.NginxConfig{Extra: "auth_basic weir; auth_basic_user_file " + passwords + ";"})
	secret := shown(t, "secret", "secret")
	said := limitedBy(t, analysis.ResourceCore, "--target", s.URL, "--clients", "1,2,8,32", "--duration", "2s",
		"--set", "files={list: "+listed(t, s.Data, 1<<10)+"}", "--set", "auth={method: basic, user: ada, password_file: "+secret+"}")
	if !strings.Contains(said, "busiest thread") {
		t.Errorf("the thread is not named: %s", said)
	}
}

// The limit is a small number of threads, each of which waits for a program that computes a
// checksum.
func TestLimitOfThreads(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	slow := shown(t, "slow", "#!/bin/sh\nsleep 0.1\necho 00000001\n")
	s := labtest.Start(t, lab.XRootDConfig{Extra: "xrd.sched mint 8 maxt 8 avlt 4 idle 60\nxrootd.chksum max 64 adler32 " + slow + "\n"})
	said := limitedBy(t, analysis.ResourceThreads, "--target", s.URL, "--clients", "1,4,16,32", "--duration", "2s",
		"--set", "files.make={count: 400, size: 1KiB}", "--set", "workload.kind=mix", "--set", "workload.mix={checksum: 1}", "--set",
		"workload.verify=0")
	if !strings.Contains(said, "8 threads") {
		t.Errorf("how many threads there are is not said: %s", said)
	}
}
