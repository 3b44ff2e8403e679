package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// Every weir command of docs/machines.md works as written, in the order of the page, on a real
// HTCondor and over ssh. Only the names of machines differ, and numbers and times are smaller. The
// commands that merge several runs have a test of their own.
func TestMachinesPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	pool := labtest.Start(t, lab.HTCondorConfig{Slots: 6})
	labtest.Use(t, pool)
	nodes := labtest.Start(t, lab.SSHConfig{Nodes: 2})
	labtest.Use(t, nodes)
	web := labtest.Start(t, lab.NginxConfig{})
	fill(t, web.Data, 5, 64<<10)
	r := newRemote(t)
	text := fmt.Sprintf("name: many\ntarget: %s\nworkload: {kind: read, think: 20ms}\nload: {clients: 2, ramp: 0s, warmup: "+
		"100ms, duration: 2s}\n", web.URL)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "scenario.yaml"), []byte(text), 0o600))
	b := require.File(t, "../../docs/machines.md")
	page, _, _ := strings.Cut(string(b), "\n## Several runs as one\n")
	here := strings.NewReplacer("--workers 50", "--workers 2", "50,100,150,200", "2,3", "10m", "3s",
		"node2]' --set on.address=login1.example.org", "node2]'", "login1.example.org:9999", "127.0.0.1")
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if ran++; strings.Contains(line, "--resume") {
				p := r.start(t, "run", "scenario.yaml", "--on", "htcondor", "--workers", "2", "--duration", "5s", "--out", "runs/many")
				untilHeld(t, filepath.Join(r.dir, "runs/many"), 1)
				p.kill(t)
			}
			command := here.Replace(strings.TrimSpace(line))
			code, said := start(t, r.dir, "env", "XDG_STATE_HOME="+r.state, "sh", "-c", command).ended()
			if code != exitFine && code != exitInvalid {
				t.Errorf("%s: exit code %d\n%s", command, code, said)
			}
		}
	}
	if ran < 7 {
		t.Errorf("only %d commands found", ran)
	}
	r.left(t)
}

// The complete test of docs/gridftp-lvs.md can be planned as written. TestClientsAsJobs runs it on
// a small scale.
func TestGridFTPPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scenarios, err := filepath.Abs("../../scenarios")
	if err == nil {
		err = os.Symlink(scenarios, filepath.Join(dir, "scenarios"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "fileList.txt"), []byte("/store/a.root\n"), 0o600)
	}
	page, readErr := os.ReadFile("../../docs/gridftp-lvs.md")
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^    weir (?:plan|run) (.*)$`).FindAllStringSubmatch(string(page), -1) {
		ran++
		if code, said := start(t, dir, "sh", "-c", "weir plan "+strings.Split(m[1], " --out ")[0]).ended(); code != exitFine ||
			!strings.Contains(said, "one for each client") {
			t.Errorf("weir plan %s: exit code %d\n%s", m[1], code, said)
		}
	}
	if ran != 3 {
		t.Errorf("%d commands found", ran)
	}
}
