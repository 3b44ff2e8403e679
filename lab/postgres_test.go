package lab_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// PostgreSQL runs as a plain user, started by any user, with files that other users cannot read,
// keeps its data when it is killed, and is gone after Stop.
func TestPostgreSQL(t *testing.T) {
	labtest.Need(t, "psql")
	s := labtest.Start(t, lab.PostgreSQLConfig{Settings: []string{"work_mem=5MB"}})
	ask := func(query string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "psql", "-X", "-A", "-t", "-c", query)
		c.Env = append(slices.Clone(s.Env), "PATH="+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", query, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	ask("CREATE TABLE kept (n bigint)")
	ask("INSERT INTO kept VALUES (42)")
	if got := ask("SHOW server_encoding") + ask("SHOW lc_collate") + ask("SHOW work_mem") + ask("SHOW listen_addresses") +
		ask("SHOW unix_socket_directories"); got != "UTF8C5MB127.0.0.1" {
		t.Error(got)
	}
	for _, pid := range s.Pids() {
		info, err := os.Stat(filepath.Join("/proc", fmt.Sprint(pid)))
		require.NoError(t, err)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
			t.Errorf("process %d runs as root", pid)
		}
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "cluster")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its files: %v, %v", info, err)
	}
	s.Kill()
	require.NoError(t, s.Restart(t.Context()))
	if got := ask("SELECT n FROM kept"); got != "42" {
		t.Errorf("after a crash: %s", got)
	}
	leftNothing(t, s)
}
