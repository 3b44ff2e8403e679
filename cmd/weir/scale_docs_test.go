package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// The commands of docs/scale.md work. Its scenario is planned as written. It has two runs instead
// of four, each with a controller and workers of its own, which are processes here. The benchmarks
// that it names exist.
func TestScalePage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	b := require.File(t, "../../docs/scale.md")
	page := string(b)
	r := newRemote(t)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	commands := regexp.MustCompile(`(?m)^weir (.*)$`).FindAllStringSubmatch(page, -1)
	if example == nil || len(commands) != 3 {
		t.Fatalf("scenario %q, commands %q", example, commands)
	}
	scenarioFile := filepath.Join(r.dir, "big.yaml")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(scenarioFile, []byte(text), 0o600))
	}
	write(example[1])
	if code, said := r.start(t, strings.Fields(commands[0][1])...).ended(); code != exitFine ||
		!strings.Contains(said, "112 workers by HTCondor, up to 893 clients each") {
		t.Errorf("%s: exit code %d\n%s", commands[0][1], code, said)
	}
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	scenarioFile = filepath.Join(r.dir, "quarter.yaml")
	write(fmt.Sprintf("name: quarter\ntarget: %s\nworkload: {kind: read, think: 20ms}\nload: {clients: [3, 6], ramp: 0s, warmup: "+
		"500ms, duration: 6s}\n", s.URL))
	var controllers sync.WaitGroup
	for _, n := range []string{"1", "2"} {
		command := strings.NewReplacer("seed=1", "seed="+n, "run1", "run"+n, "--on htcondor --workers 250", "--on local --workers 2").
			Replace(commands[1][1])
		controllers.Go(func() {
			if code, said := r.start(t, strings.Fields(command)...).ended(); code != exitFine && code != exitInvalid {
				t.Errorf("%s: exit code %d\n%s", command, code, said)
			}
		})
	}
	controllers.Wait()
	for _, n := range []string{"run1", "run2"} {
		if f := findings(t, filepath.Join(r.dir, n)); len(f.Workers) != 2 || len(f.Curve) != 2 || f.Curve[1].Clients != 6 {
			t.Errorf("%s: %d workers, %+v", n, len(f.Workers), f.Curve)
		}
	}
	merge := strings.NewReplacer(" run3 run4", "").Replace(commands[2][1])
	if code, said := r.start(t, strings.Fields(merge)...).ended(); code != exitFine && code != exitInvalid {
		t.Errorf("%s: exit code %d\n%s", merge, code, said)
	}
	f := findings(t, filepath.Join(r.dir, "runs/whole"))
	if len(f.Curve) != 2 || f.Curve[1].ActiveClients < 11.5 || f.Curve[1].Duration < 2 {
		t.Errorf("%+v", f.Curve)
	}
	if s, detail := status(f, "workers"); s != analysis.OK {
		t.Errorf("workers: %s: %s", s, detail)
	}
	r.left(t)
	list, err := exec.CommandContext(t.Context(), "go", "test", "weir/benchmarks", "-run", "TestNames", "-v").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	names := regexp.MustCompile(`-bench 'Peers/\^\(([^)]*)\)\$'`).FindStringSubmatch(page)
	if names == nil {
		t.Fatal("no benchmarks are named")
	}
	for _, name := range strings.Split(names[1], "|") {
		if !slices.Contains(strings.Fields(string(list)), name) {
			t.Errorf("no benchmark is called %s", name)
		}
	}
}
