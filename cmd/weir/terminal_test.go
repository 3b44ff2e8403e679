package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// onTerminal runs weir on a pseudo-terminal of its own and returns all output on it.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script, of the package bsdutils, is not installed")
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.CommandContext(t.Context(), "script", "-qc", "stty cols 90 rows 24; weir "+strings.Join(args, " "), log)
	cmd.Env = append(os.Environ(), "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR=")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader("")
	_ = cmd.Run() // the code depends on the validity
	b := require.File(t, log)
	return string(b)
}

// On a terminal rows move. Only escape sequences that every terminal supports are written, and
// colors only if they are requested.
func TestTerminal(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	args := []string{"run", "--target", "'simulated://x?service=1ms'", "--clients", "1,2", "--duration", "2s",
		"--set", "load.ramp=0s", "--set", "load.warmup=0s", "--set", "name=x", "--out", filepath.Join(t.TempDir(), "run")}
	for _, c := range []struct {
		env            []string
		moves, colored bool
	}{
		{nil, true, true}, {[]string{"NO_COLOR=1"}, true, false}, {[]string{"TERM=dumb"}, false, false},
	} {
		args[len(args)-1] += "x" // a folder of its own
		said := onTerminal(t, c.env, args...)
		if moved := strings.Contains(said, "step 2 of 2: measure") && strings.Contains(said, "\x1b[J"); moved != c.moves {
			t.Errorf("%q: rows move: %v\n%q", c.env, moved, said)
		}
		if colored := regexp.MustCompile("\x1b\\[[0-9]+m").MatchString(said); colored != c.colored {
			t.Errorf("%q: colored: %v\n%q", c.env, colored, said)
		}
		rest := regexp.MustCompile("\x1b\\[([0-9]*[AJ]|[0-9]+m)").ReplaceAllString(said, "")
		if i := strings.IndexByte(rest, '\x1b'); i >= 0 {
			t.Errorf("%q: another escape: %q", c.env, rest[i:min(len(rest), i+20)])
		}
		_, table, _ := strings.Cut(rest, "CPU server client")
		for _, want := range []string{"\n    1       1 ", "\n    2       2 "} {
			if c.moves {
				want = strings.TrimPrefix(want, "\n") // the moving rows precede it
			}
			if !strings.Contains(table, want) {
				t.Errorf("%q: %q is missing in\n%s", c.env, want, table)
			}
		}
	}
}
