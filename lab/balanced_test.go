package lab_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// Servers behind HAProxy share the work; each reports its own part in its transfer log, in its data
// interface's counters and to HAProxy. If a server is killed, the other servers go on, and it can
// be started again.
func TestGridFTPBehindHAProxy(t *testing.T) {
	labtest.Need(t, "globus-url-copy")
	for _, c := range []lab.GridFTPConfig{{Servers: 3}, {Servers: 2, Loopback: true}} {
		t.Run(fmt.Sprintf("%d servers, loopback: %v", c.Servers, c.Loopback), func(t *testing.T) {
			s := labtest.Start(t, c)
			require.NoError(t, s.WriteFile("f", payload()))
			fetch := func() {
				to := filepath.Join(t.TempDir(), "f")
				run(t, nil, "globus-url-copy", s.URL+"/f", "file://"+to)
				if got, err := os.ReadFile(to); err != nil || string(got) != string(payload()) {
					t.Errorf("another file came: %v", err)
				}
			}
			for range 2 * c.Servers {
				fetch()
			}
			within(t, patience, "all transfers to be logged", func() bool {
				n := 0
				for _, server := range s.Servers[1:] {
					n += logged(t, server)
				}
				return n == 2*c.Servers
			})
			for _, server := range s.Servers[1:] {
				worked(t, s, server)
			}
			require.NoError(t, s.KillPart("gftp-2"))
			for range c.Servers {
				fetch()
			}
			require.NoError(t, s.RestartPart(t.Context(), "gftp-2"))
			run(t, nil, "globus-url-copy", s.Servers[2].URL+"/f", "file:///dev/null")
			require.NoError(t, s.Stop())
			for _, server := range s.Servers[1:] {
				if _, err := net.InterfaceByName(server.Interface); err == nil {
					t.Errorf("interface %s is left", server.Interface)
				}
			}
		})
	}
}

// logged returns the number of transfers of the file in a server's log.
func logged(t *testing.T, server lab.Server) int {
	t.Helper()
	log, err := os.ReadFile(server.TransferLog)
	require.NoError(t, err)
	return strings.Count(string(log), fmt.Sprintf(" NBYTES=%d ", len(payload())))
}

// worked checks that all that count a server's part agree.
func worked(t *testing.T, s *lab.System, server lab.Server) {
	t.Helper()
	files := logged(t, server)
	size := files * len(payload())
	// Connections from when the service came up count as well.
	if n := field(t, haproxy(t, s, "show stat"), server.Name, "stot"); n < files || n > files+3 {
		t.Errorf("HAProxy had %d sessions of %s, which sent %d files", n, server.Name, files)
	}
	if server.Interface == "" {
		return
	}
	b, err := os.ReadFile("/sys/class/net/" + server.Interface + "/statistics/rx_bytes")
	require.NoError(t, err)
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n < size || n > size*12/10+20_000 {
		t.Errorf("%d bytes came through %s, and files of %d in all", n, server.Interface, size)
	}
}

// haproxy sends a command to HAProxy.
func haproxy(t *testing.T, s *lab.System, question string) string {
	t.Helper()
	conn, err := net.Dial("unix", s.StatsSocket)
	require.NoError(t, err)
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, question); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(bufio.NewReader(conn))
	require.NoError(t, err)
	return string(b)
}

// field returns a number from the line of a server in a table that begins with its heading.
func field(t *testing.T, table, server, name string) int {
	t.Helper()
	names := strings.Split(strings.SplitN(strings.TrimPrefix(table, "# "), "\n", 2)[0], ",")
	line := strings.Split(regexp.MustCompile(`(?m)^gridftp,`+server+`,.*$`).FindString(table), ",")
	for i, n := range names {
		if n == name && i < len(line) {
			v, err := strconv.Atoi(line[i])
			require.NoError(t, err)
			return v
		}
	}
	t.Fatalf("no %s of %s in\n%s", name, server, table)
	return 0
}
