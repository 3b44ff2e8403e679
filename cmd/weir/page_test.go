package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// The commands in docs/xrootd.md and in the comments of scenarios/xrootd and scenarios/jobs are
// valid as written. Each run is planned, with the target and the credentials of a lab if the
// command starts a lab.
func TestCommandsOfScenarios(t *testing.T) {
	pages, err := filepath.Glob("../../scenarios/xrootd/*.yaml")
	require.NoError(t, err)
	jobs, err := filepath.Glob("../../scenarios/jobs/*.yaml")
	require.NoError(t, err)
	bin := t.TempDir()
	script := `#!/bin/sh
if [ "$1" = lab ]; then
	while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
	[ $# -eq 0 ] && exit 0
	shift
	exec "$@"
fi
for a in "$@"; do printf '%s\0' "$a" >>"$WEIR_LOG"; done
printf '\n' >>"$WEIR_LOG"
`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "weir"), []byte(script), 0o755))
	t.Setenv("WEIR_LAB_ON", "{batch: ssh, hosts: [node1, node2]}")
	t.Setenv("WEIR_LAB_URL", "root://localhost:1094//data")
	t.Setenv("WEIR_LAB_SERVERS", "[root://localhost:1095//data, root://localhost:1096//data]")
	for _, page := range slices.Concat(pages, jobs, []string{"../../docs/xrootd.md"}) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			ran := 0
			for _, args := range commandsOf(t, page, bin) {
				if args[0] != "run" {
					continue
				}
				ran++
				args[0] = "plan"
				args[1] = "../../" + args[1]
				if code, said := weir(t, args...); code != exitFine {
					t.Errorf("weir %q: exit code %d\n%s", args, code, said)
				}
			}
			if ran < 1 {
				t.Errorf("only %d runs found", ran)
			}
		})
	}
}

// commandsOf parses the page's commands with a shell and returns the arguments of each call of
// weir.
func commandsOf(t *testing.T, page, bin string) [][]string {
	t.Helper()
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	text := regexp.MustCompile(`\\\n#? +`).ReplaceAllString(string(b), "") // lines that continue
	for _, m := range regexp.MustCompile(`(?m)^(?:#     |    )((?:weir|for) .*)$`).FindAllStringSubmatch(text, -1) {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", m[1])
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "WEIR_LOG="+log, "WEIR_LAB_AUTH={method: unix}")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
	}
	b, err = os.ReadFile(log)
	require.NoError(t, err)
	var calls [][]string
	for line := range bytes.SplitSeq(bytes.TrimSpace(b), []byte("\n")) {
		calls = append(calls, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
	}
	return calls
}
