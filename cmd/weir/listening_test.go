package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

// Calls with unusable addresses fail with an error that suggests the correct call.
func TestClumsyAddresses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken, dir := l.Addr().String(), t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	table := filepath.Join(dir, "t.csv")
	require.NoError(t, os.WriteFile(table, []byte("clients,throughput (Gbit/s)\n1,1\n5,4\n10,6\n20,7\n40,7\n"), 0o600))
	short := []string{"--target", "simulated://x?service=1ms", "--clients", "1", "--duration", "1s", "--out", filepath.Join(dir, "run")}
	for _, c := range []struct {
		args []string
		code exitCode
		want string
	}{
		{append([]string{"run", "--metrics", taken}, short...), exitError, "--metrics: another program listens at " + taken +
			": choose another port"},
		{append([]string{"run", "--watch=" + taken}, short...), exitError, "the live page: another program listens at " + taken},
		{[]string{"watch", dir, "--listen", taken}, exitError, "the live page: another program listens at " + taken},
		{[]string{"serve", dir, "--listen", taken}, exitError, "data server: another program listens at " + taken},
		{[]string{"coordinator", "--listen", taken, "--state", filepath.Join(dir, "state")}, exitError,
			"coordinator: another program listens at " + taken},
		{[]string{"agent", "--site", "A", "--root", dir, "--listen", taken, "--coordinator", "https://127.0.0.1:9"}, exitError,
			"endpoint: another program listens at " + taken},
		{append([]string{"run", "--watch", "127.0.0.1:9"}, short...), exitUsage, "write --watch=127.0.0.1:9"},
		{[]string{"find", "simulated://x", "--watch", "127.0.0.1:9"}, exitUsage, "write --watch=127.0.0.1:9"},
		{[]string{"analyze", table, "--figures", file}, exitError, "file is a file: name a folder"},
		{[]string{"analyze", table, "--html", dir}, exitError, filepath.Base(dir) + " is a folder"},
	} {
		code, _, said := said(t, c.args...)
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit code %d, %q; want %d and %q", c.args, code, said, c.code, c.want)
		}
	}
}
