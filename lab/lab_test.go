package lab_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// payload returns 300,000 bytes that any text conversion would change.
func payload() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// run runs a client for at most 30 s and returns its output.
func run(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// gfal names the interpreter that Debian's gfal2 modules belong to.
func gfal() []string { return []string{"GFAL_PYTHONBIN=/usr/bin/python3"} }

// systems are the three servers with a client that fetches URL/file to dest.
func systems() map[string]struct {
	start func(testing.TB, lab.Config) *lab.System
	fetch func(url, dest string) []string
	needs string
} {
	return map[string]struct {
		start func(testing.TB, lab.Config) *lab.System
		fetch func(url, dest string) []string
		needs string
	}{
		"nginx": {
			func(t testing.TB, c lab.Config) *lab.System {
				return labtest.Start(t, lab.NginxConfig{Config: c, Workers: 2})
			},
			func(url, dest string) []string { return []string{"curl", "-sSf", "-o", dest, url} }, "curl",
		},
		"xrootd": {
			func(t testing.TB, c lab.Config) *lab.System { return labtest.Start(t, lab.XRootDConfig{Config: c}) },
			func(url, dest string) []string { return []string{"xrdcp", "-f", "-s", url, dest} }, "xrdcp",
		},
		"gridftp": {
			func(t testing.TB, c lab.Config) *lab.System { return labtest.Start(t, lab.GridFTPConfig{Config: c}) },
			func(url, dest string) []string { return []string{"globus-url-copy", url, "file://" + dest} }, "globus-url-copy",
		},
	}
}

func TestLifeOfASystem(t *testing.T) {
	for name, kind := range systems() {
		t.Run(name, func(t *testing.T) {
			labtest.Need(t, kind.needs)
			s := kind.start(t, lab.Config{})
			want := payload()
			require.NoError(t, s.WriteFile("sub/file.dat", want))
			fetch := func() {
				t.Helper()
				dest := filepath.Join(t.TempDir(), "copy")
				run(t, nil, kind.fetch(s.URL+"/sub/file.dat", dest)...)
				if got, err := os.ReadFile(dest); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("copy differs from the file: %d of %d bytes, %v", len(got), len(want), err)
				}
			}
			fetch()
			before := s.Pids()
			s.Kill()
			refuses(t, s)
			require.NoError(t, s.Restart(t.Context()))
			fetch()
			if err := s.Restart(t.Context()); err != nil { // of a system that runs
				t.Fatal(err)
			}
			fetch()
			pids := append(before, s.Pids()...)
			if len(pids) != 2 {
				t.Fatalf("pids %v: want one process before and one after", pids)
			}
			require.NoError(t, s.Stop())
			for _, pid := range pids {
				if lab.Alive(pid) {
					t.Errorf("process group %d lives on", pid)
				}
			}
			if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("folder %s lives on: %v", s.Dir, err)
			}
			if err := s.Stop(); err != nil {
				t.Errorf("a second stop: %v", err)
			}
		})
	}
}

// refuses checks that the port is closed but given to no one else.
func refuses(t *testing.T, s *lab.System) {
	t.Helper()
	if len(s.Pids()) != 0 {
		t.Fatalf("killed, but %v still run", s.Pids())
	}
	for _, p := range s.Ports() {
		conn, err := net.Dial("tcp", p.Address())
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dialing a killed server: %v, want refused", err)
		}
	}
}
