package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// The commands of docs/machines.md for runs recorded apart: three machines,
// which are three processes here.
func TestPartsAreMerged(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	dir := t.TempDir()
	const text = "target: 'simulated://x?servers=40&service=20ms&files=9x1KiB'\nload: {clients: [3, 12], ramp: 200ms, warmup: " +
		"300ms, duration: 3s}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(text), 0o600))
	lines := regexp.MustCompile(`(?m)^weir (.*)$`).FindAllStringSubmatch(section(t, "machines.md", "## Runs recorded apart"), -1)
	if len(lines) != 3 || !strings.HasPrefix(lines[1][1], "merge ") || !strings.Contains(lines[2][1], "--set on.apart=true") {
		t.Fatalf("commands %q", lines)
	}
	begin := time.Now().Add(4 * time.Second).Format(time.RFC3339)
	var machines sync.WaitGroup
	for _, n := range []string{"1", "2", "3"} {
		command := strings.NewReplacer("--part 1/3", "--part "+n+"/3", "14:30", begin, "part1", "part"+n).Replace(lines[0][1])
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
	// Two parts have 8 clients; on a busy machine some of the 12 are late.
	if len(f.Curve) != 2 || f.Curve[1].Clients != 12 || f.Curve[1].ActiveClients <= 8 || f.Curve[1].Duration < 2 || len(f.Workers) != 3 {
		t.Errorf("%+v\n%s", f, said)
	}
	if s, detail := status(f, "workers"); s != analysis.OK {
		t.Errorf("workers: %s: %s", s, detail)
	}
}
