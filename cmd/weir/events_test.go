package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

// A command of the scenario stops a server in the middle of the load, and another one continues it:
// the run records both, the result names them, and the outage is found.
func TestEvents(t *testing.T) {
	t.Parallel()
	url, server := servedUntilKilled(t)
	dir := filepath.Join(t.TempDir(), "run")
	file := writeTemp(t, fmt.Sprintf(`
target: %s
load: {clients: 4, ramp: 0s, warmup: 0s, duration: 6s}
workload: {think: 10ms}
events:
- {at: 4s, run: "kill -CONT %d"}
- {at: 1s, run: "kill -STOP %d"}
- {at: 1h, run: "true"}
`, url, server.Process.Pid, server.Process.Pid))
	_, said := weir(t, "run", file, "--out", dir)
	run, err := results.Open(dir)
	require.NoError(t, err)
	states := map[string]int{}
	for e, err := range run.Events() {
		require.NoError(t, err)
		if e.Kind == measure.EventCommand {
			states[e.Command.State]++
		}
	}
	if states[measure.CommandBegan] != 2 || states[measure.CommandEnded] != 2 || states[measure.CommandNotRun] != 1 {
		t.Errorf("%v\n%s", states, said)
	}
	codes := map[string]int{}
	f := findings(t, dir)
	for _, w := range f.WarningFacts {
		codes[w.Code]++
	}
	if codes["warning.command"] != 2 || codes["warning.command_not_run"] != 1 || len(f.Outages) == 0 {
		t.Errorf("%v, %d outages", codes, len(f.Outages))
	}
	if code, said := weir(t, "run", "--resume", dir); code == exitFine {
		t.Errorf("it is resumed: %s", said)
	}
	if code, said := weir(t, "run", "--set", "events=[{at: 1s}]", "--target", url); code != exitUsage {
		t.Errorf("an event without a command: exit code %d: %s", code, said)
	}
}
