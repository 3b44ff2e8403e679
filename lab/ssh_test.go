package lab_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// A user logs in to each node by its name, as the same user, in a home directory of the lab. The
// processes on a node end with it, while other nodes continue.
func TestSSH(t *testing.T) {
	begin := time.Now()
	s := labtest.Start(t, lab.SSHConfig{Nodes: 2})
	t.Logf("up after %.1f s", time.Since(begin).Seconds())
	labtest.Use(t, s)
	for _, node := range s.Servers {
		if got, want := run(t, nil, "ssh", node.Name, "hostname; pwd; id -u"), run(t, nil, "sh", "-c", "echo "+node.Name+"; echo "+node.Data+
			"; id -u"); got != want {
			t.Errorf("at %s: %q, want %q", node.Name, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, payload(), 0o600))
	run(t, nil, "scp", "-q", file, "node2:there")
	if got := run(t, nil, "ssh", "node2", "cat there"); got != string(payload()) {
		t.Error("the file that was copied there is another one")
	}
	run(t, nil, "ssh", "node1", "sleep 1000 >/dev/null 2>&1 & echo $! >pid; readlink /proc/self/ns/pid >ns")
	space, err := os.ReadFile(filepath.Join(s.Servers[0].Data, "ns"))
	require.NoError(t, err)
	require.NoError(t, s.KillPart("node1"))
	if left := inSpace(t, strings.TrimSpace(string(space))); len(left) > 0 {
		t.Errorf("of node1 are left: %v", left)
	}
	if out, err := exec.CommandContext(t.Context(), "ssh", "-o", "BatchMode=yes", "node1", "true").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "refused") {
		t.Errorf("a dead node answers: %s", out)
	}
	run(t, nil, "ssh", "node2", "true")
	require.NoError(t, s.RestartPart(t.Context(), "node1"))
	run(t, nil, "ssh", "node1", "true")
}

// inSpace lists the processes in the given process namespace. Zombies do not count.
func inSpace(t *testing.T, space string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil || space == "" {
		t.Fatal(space, err)
	}
	var found []string
	for _, l := range links {
		at, err := os.Readlink(l)
		if stat, _ := os.ReadFile(filepath.Join(l, "../../stat")); err == nil && at == space && !strings.Contains(string(stat), ") Z ") {
			found = append(found, l)
		}
	}
	return found
}
