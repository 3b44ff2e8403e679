package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/analysis"
	"weir/lab"
)

// limitedBy fails t unless the first bottleneck is the resource; on a machine
// that other programs keep busy, its CPU may be that instead. It returns the
// evidence.
func limitedBy(t *testing.T, f *analysis.Findings, resource string) string {
	t.Helper()
	if len(f.Bottleneck) == 0 {
		t.Fatal("nothing is said of what limits the curve")
	}
	b := f.Bottleneck[0]
	said := strings.Join(b.Evidence, "\n")
	crowded := slices.ContainsFunc(f.Validity.Checks, func(c analysis.Check) bool { return c.Name == "quiet machines" && c.Status == analysis.Warn })
	switch {
	case b.Resource == resource:
	case crowded && b.Resource == analysis.ResourceCPU:
		t.Skipf("other programs keep this machine busy: %s", said)
	default:
		t.Errorf("limited by %s of %q from %d clients on, want %s:\n%s", b.Resource, b.Host, b.From, resource, said)
	}
	return said
}

// listed writes a file of size bytes into folder, and a list of it.
func listed(t *testing.T, folder string, size int) string {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	for name, content := range map[string]string{filepath.Join(folder, "file"): strings.Repeat("x", size), list: "file\n"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// Each connection has a rate of its own: more clients bring more, and each
// only waits for its own operations.
func TestLimitOfEachConnection(t *testing.T) {
	s := lab.StartNginx(t, lab.NginxConfig{SlowRate: 1 << 20})
	f := measureFor(t, "--target", s.URLs["slow"], "--clients", "1,4,16", "--hold", "2s", "--set", "load.settle=500ms", "--set", "files={list: "+listed(t, s.Data, 5<<18)+"}") // its first second's bytes are sent at once
	limitedBy(t, f, analysis.LimitLatency)
}

// A rate that all clients share is a limit inside the server.
func TestLimitInsideTheServer(t *testing.T) {
	s := lab.StartNginx(t, lab.NginxConfig{HTTP: "limit_req_zone $server_port zone=all:1m rate=100r/s;", Extra: "limit_req zone=all burst=10000;"})
	f := measureFor(t, "--target", s.URL, "--clients", "1,2,8,32", "--hold", "2s", "--set", "load.settle=1s", "--set", "files={list: "+listed(t, s.Data, 64<<10)+"}")
	limitedBy(t, f, analysis.LimitInside)
}

// A few threads that long operations hold.
func TestLimitOfThreads(t *testing.T) {
	s := lab.StartXRootD(t, lab.XRootDConfig{Extra: "xrd.sched mint 4 maxt 4 avlt 2 idle 60\n"})
	f := measureFor(t, "--target", s.URL, "--clients", "1,2,4,8,16", "--hold", "2s", "--set", "files.make={count: 8, size: 64MiB}", "--set", "workload.verify=0")
	limitedBy(t, f, analysis.ResourceThreads)
}
