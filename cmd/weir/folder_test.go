package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// TestFullDiskKeepsTheVerdict runs weir with a limit of file sizes, which has the effect of a full
// disk, so low that the measurements or the report do not fit: the result is printed, then the error
// and a hint.
func TestFullDiskKeepsTheVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks string // of 512 bytes, in a POSIX shell
		args   []string
	}{
		"measurements": {"8", []string{"run", "simulated://x?service=10ms", "--clients", "1,2,4,8,16", "--duration", "500ms"}},
		"search":       {"8", []string{"find", "simulated://x?service=10ms", "--duration", "500ms", "--time", "20s"}},
		"report":       {"24", []string{"run", "simulated://x?service=10ms", "--clients", "1,2", "--duration", "500ms"}},
		"campaign":     {"24", []string{"run", "simulated://x?service=10ms", "--clients", "1,2", "--duration", "500ms", "--repeat", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			args := append([]string{"-c", "ulimit -f " + c.blocks + "; exec weir \"$@\"", "weir"}, c.args...)
			cmd := exec.CommandContext(t.Context(), "sh", append(args, "--set", "load.ramp=0s", "--set", "load.warmup=0s", "--out", dir,
				"--json")...)
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			err := cmd.Run()
			var exited *exec.ExitError
			if !errors.As(err, &exited) || exitCode(exited.ExitCode()) != exitError {
				t.Fatalf("%v\n%s", err, &said)
			}
			if !strings.Contains(said.String(), "file too large") || !strings.Contains(said.String(), "\nhint: ") {
				t.Errorf("no error, or no hint:\n%s", &said)
			}
			if name == "campaign" {
				return // its runs failed
			}
			f := new(analysis.Findings)
			if err := json.Unmarshal(out.Bytes(), f); err != nil || len(f.Curve) == 0 || f.Headline == "" {
				t.Errorf("%v: no result in %q", err, out.String())
			}
			if _, err := os.Stat(filepath.Join(dir, results.PlanFile)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFailedRunsLeaveNoFolder checks that commands that fail before they measure leave no folder,
// and the folders and files that were there before.
func TestFailedRunsLeaveNoFolder(t *testing.T) {
	t.Parallel()
	const nowhere = "http://127.0.0.1:1/"
	empty := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refuses.Close)
	for name, args := range map[string][]string{
		"unreachable":         {"run", nowhere, "--clients", "1"},
		"unreachable, writes": {"run", nowhere, "--set", "workload={kind: write, size: 1MiB}", "--clients", "1"},
		"unreachable, made":   {"run", nowhere, "--set", "files.make={count: 3, size: 1KiB}", "--clients", "1"},
		"processes":           {"run", nowhere, "--clients", "2", "--processes", "2"},
		"workers":             {"run", nowhere, "--clients", "2", "--on", "local", "--workers", "2"},
		"no files":            {"run", "file://" + empty, "--clients", "1"},
		"target is a file":    {"run", "file://" + file, "--set", "files.make={count: 3, size: 1KiB}", "--clients", "1"},
		"listing refused":     {"run", refuses.URL, "--clients", "1"},
		"preparation refused": {"run", refuses.URL, "--set", "files.make={count: 3, size: 1KiB}", "--clients", "1"},
		"writes refused":      {"run", refuses.URL, "--set", "workload={kind: write, size: 1KiB}", "--clients", "1"},
		"search":              {"find", nowhere, "--time", "60s"},
		"campaign":            {"run", nowhere, "--clients", "1", "--repeat", "2"},
		"calibration":         {"calibrate", nowhere, "--client", "curl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("curl"); err != nil && name == "calibration" {
				t.Skip(err)
			}
			home := t.TempDir()
			there := filepath.Join(home, "there")
			require.NoError(t, os.Mkdir(there, 0o700))
			for _, out := range []string{filepath.Join(home, "new", "run"), there} {
				if code, said := weir(t, append(args, "--out", out)...); code != exitError {
					t.Fatalf("exit code %d:\n%s", code, said)
				}
			}
			if got := found(t, home); got != "there" {
				t.Errorf("left: %s", got)
			}
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	if code, _ := weir(t, "run", nowhere, "--clients", "1", "--out", dir); code == exitFine {
		t.Error("it measured into a folder with files")
	}
	if got := found(t, dir); got != "mine" {
		t.Errorf("left: %s", got)
	}
}

// found lists everything below dir.
func found(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			all = append(all, rel)
		}
		return err
	}))
	return strings.Join(all, " ")
}
