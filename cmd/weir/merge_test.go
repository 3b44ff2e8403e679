package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// The commands of docs/machines.md that merge several runs work with three machines, which are
// three processes here.
func TestRunsAreMerged(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	dir := t.TempDir()
	const text = "target: 'simulated://x?servers=40&service=20ms&files=9x1KiB'\nload: {clients: [1, 4], ramp: 200ms, warmup: " +
		"300ms, duration: 5s}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(text), 0o600))
	lines := regexp.MustCompile(`(?m)^(?:sleep .*; )?weir (.*)$`).FindAllStringSubmatch(section(t, "machines.md", "## Several runs as one"), -1)
	if len(lines) != 2 || !strings.HasPrefix(lines[0][0], "sleep $(( $(date -d 14:30 +%s) - $(date +%s) )); ") ||
		!strings.HasPrefix(lines[1][1], "merge ") {
		t.Fatalf("commands %q", lines)
	}
	var machines sync.WaitGroup
	for _, n := range []string{"1", "2", "3"} {
		command := strings.NewReplacer("seed=1", "seed="+n, "run1", "run"+n).Replace(lines[0][1])
		machines.Go(func() {
			if code, said := start(t, dir, "weir", strings.Fields(command)...).ended(); code != exitFine && code != exitInvalid {
				t.Errorf("%s: exit code %d\n%s", command, code, said)
			}
		})
	}
	machines.Wait()
	code, said := start(t, dir, "weir", strings.Fields(lines[1][1])...).ended()
	if code != exitFine && code != exitInvalid || !contains(filepath.Join(dir, "runs/together", results.EventsFile),
		"merged of 3 runs that began within") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, filepath.Join(dir, "runs/together"))
	// Two runs have 8 clients; on a busy machine some of the 12 are late.
	if len(f.Curve) != 2 || f.Curve[1].Clients != 12 || f.Curve[1].ActiveClients <= 8 || f.Curve[1].Duration < 2 || len(f.Workers) != 3 {
		t.Errorf("%+v\n%s", f, said)
	}
	if s, detail := status(f, "workers"); s != analysis.OK {
		t.Errorf("workers: %s: %s", s, detail)
	}
}
