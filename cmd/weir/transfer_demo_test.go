package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/results"
	plays "weir/scenarios/transfer"
	"weir/transfer"
	"weir/transfer/trial"
)

// Each of weir's own scenarios comes out as expected, on real processes, and leaves a
// run directory that can be read.
func TestTransferScenarios(t *testing.T) {
	t.Parallel()
	for _, name := range plays.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			code, said := started(t, "transfer", "demo", name, "--out", out).ended()
			if code != exitFine {
				t.Fatalf("exit code %d: %s", code, said)
			}
			run, err := results.Open(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			all, err := trial.ReadScenarios([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			last := map[int]int{}
			for a, err := range run.Transfers() {
				if err != nil {
					t.Fatal(err)
				}
				if a.Last {
					last[a.Step]++
				}
				if !a.Done && a.Reason == "" {
					t.Errorf("no reason: %+v", a)
				}
			}
			for i, c := range all[0].Cases {
				if last[i+1] != c.Files {
					t.Errorf("%s: %d files in transfers.jsonl, want %d", c.Name, last[i+1], c.Files)
				}
			}
			code, said = started(t, "report", filepath.Join(out, name)).ended()
			if code != exitFine {
				t.Errorf("weir report: exit code %d: %s", code, said)
			}
		})
	}
}

// All scenarios of the folder are weir's own, and none is left out.
func TestTransferScenariosAreAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../scenarios/transfer/*.yaml")
	if err != nil || len(files) != len(plays.Names()) {
		t.Errorf("%v, %v: named are %v", files, err, plays.Names())
	}
	for _, name := range plays.Names() {
		if !slices.Contains(files, "../../scenarios/transfer/"+name+".yaml") {
			t.Errorf("%s.yaml is not there", name)
		}
	}
}

// Requests of any coordinator become a run directory, whose bytes are those of the
// files.
func TestTransferRecord(t *testing.T) {
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	files := trial.Files("/store/run1", 20, 1_000_000)
	r.fills("A", "/store/run1", files...)
	r.completes(r.submits(transfer.Submission{Dataset: "/store/run1", To: "B"}))
	ctx := t.Context()
	c, err := r.Client()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	waitFor(t, func() bool {
		list, err := c.Samples(ctx, "B", begin, 1)
		return err == nil && len(list) > 0
	})
	out := filepath.Join(r.Dir(), "recorded")
	r.wants(exitFine, words("transfer record 1 --out "+out), "weir report")
	r.wants(exitError, words("transfer record 1 --out "+out), "holds a run already")
	r.wants(exitError, words("transfer record 9 --out "+out+"9"), "9")
	r.wants(exitUsage, words("transfer record"), "--out")
	run, err := results.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	var moved, done int64
	for iv, err := range run.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		moved, done = moved+iv.Moved, done+iv.Done
	}
	if moved != 20_000_000 || done != 20 {
		t.Errorf("%d bytes and %d copies in the intervals, want 20 of 1000000", moved, done)
	}
	var served, received int64
	hosts := map[string]bool{}
	for s, err := range run.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		hosts[s.Host] = true
		for _, p := range s.Procs {
			served, received = served+p.Sent, received+p.Received
		}
	}
	if !hosts["site A"] || !hosts["site B"] || served != 20_000_000 || received != 0 {
		t.Errorf("%v: doors have given %d bytes and taken %d", hosts, served, received)
	}
	text := r.wants(exitFine, words("report "+out+" --json"))
	if !json.Valid([]byte(text)) {
		t.Error(text)
	}
}
