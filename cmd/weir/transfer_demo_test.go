package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/loadtest/results"
	plays "weir/scenarios/transfer"
	"weir/transfer"
	"weir/transfer/trial"
)

// Each of weir's own scenarios has the expected result with real processes, and leaves a run
// directory that can be read.
func TestTransferScenarios(t *testing.T) {
	tier.Full(t, "the demonstrations of transfers")
	t.Parallel()
	for _, name := range plays.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			all, err := trial.ReadScenarios([]string{name})
			require.NoError(t, err)
			if err := trial.CheckLinks(t.Context(), all[0].Named()); err != nil {
				labtest.Need(t, "namespaces") // which fails if everything is required
				t.Skip(err)
			}
			code, said := started(t, "transfer", "demo", name, "--out", out).ended()
			if code != exitFine {
				t.Fatalf("exit code %d: %s", code, said)
			}
			if !regexp.MustCompile(`(?m)^(valid|suspect): [1-9]`).MatchString(said) {
				t.Errorf("no verdict: %s", said)
			}
			run, err := results.Open(filepath.Join(out, name))
			require.NoError(t, err)
			last := map[int]int{}
			for a, err := range run.Transfers() {
				require.NoError(t, err)
				if a.Last {
					last[a.Step]++
				}
				if !a.Done && a.Reason == "" {
					t.Errorf("no reason: %+v", a)
				}
			}
			for i, c := range all[0].Cases {
				want := c.Files
				if !c.Spread {
					want *= len(c.To)
				}
				if last[i+1] != want {
					t.Errorf("%s: %d files in transfers.jsonl, want %d", c.Name, last[i+1], want)
				}
			}
			code, said = started(t, "report", filepath.Join(out, name)).ended()
			if code != exitFine {
				t.Errorf("weir report: exit code %d: %s", code, said)
			}
		})
	}
}

// The rows of a trial contain the resources that coordinator, source and destination used, peaks
// that a link allows, the time of each source, and the result of each added request.
func TestTransferDemoFigures(t *testing.T) {
	tier.Full(t, "the demonstrations of transfers")
	t.Parallel()
	labtest.Need(t, "namespaces")
	mine := put(t, t.TempDir(), "mine.yaml", `
name: mine
at_once: 8
link:
  A: {rate: 80Mbit/s, rtt: 4ms}
sites: [A, B, C, D]
cases:
  - name: added
    files: 4
    size: 12MB
    at: {A: all}
    to: C
    requests: 4
    every: 700ms
    expect: {status: completed}
  - name: two sources, two destinations
    files: 4
    size: 2MB
    same_content: true
    at: {A: 1-2, B: 3-4}
    to: [C, D]
    expect: {status: completed, from: {A: 4, B: 4}}
  - name: spread
    files: 4
    size: 1MB
    at: {B: all}
    to: [C, D]
    requests: 2
    spread: true
    expect: {status: completed}
  - name: renamed
    files: 4
    size: 1MB
    at: {A: 1-3, B: 4}
    to: C
    tries: 1
    events: [{after: 0, rename: A}]
    expect: {status: partial, arrived: 1-3, named: 1-3}
`)
	code, said := started(t, "transfer", "demo", mine, "--json", "--quiet").ended()
	var got struct{ Cases []trial.Row }
	if err := json.Unmarshal([]byte(said), &got); err != nil || code != exitFine || len(got.Cases) != 4 {
		t.Fatalf("%d, %v: %s", code, err, said)
	}
	added := got.Cases[0]
	const rate = 80e6 / 8
	if added.Peak < rate/2 || added.Peak > rate*1.3 {
		t.Errorf("the peak over 10 MB/s is %g", added.Peak)
	}
	for _, process := range []string{trial.Main, "A", "C"} {
		if u := added.Hosts[process]; u.CPU <= 0 || u.CPU > 8 || u.Seconds <= 0 || u.Memory < 1<<20 || u.Share <= 0 || u.Share > 1 {
			t.Errorf("%s used %+v", process, u)
		}
	}
	sum := 0.0
	for i, a := range added.Added {
		if sum += a.Usage["C"].Seconds; a.Requests != i+1 || a.Open < 1 || a.Open > i+1 || a.Rate <= 0 || a.Rate > rate*1.5 {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if len(added.Added) != 4 || sum > added.Hosts["C"].Seconds+0.05 || sum < added.Hosts["C"].Seconds/2 {
		t.Errorf("%g s of CPU time in %d parts, %g s in all", sum, len(added.Added), added.Hosts["C"].Seconds)
	}
	both := got.Cases[1]
	if both.Arrived != 8 || len(both.Sources) != 2 || both.Sources[0].Files != 4 || both.Sources[0].Bytes != 8e6 ||
		both.Sources[0].Seconds < 0.5 || both.Sources[1].Seconds <= 0 {
		t.Errorf("%+v", both)
	}
	if got.Cases[2].Arrived != 4 || got.Cases[2].Requests != 2 {
		t.Errorf("%+v", got.Cases[2])
	}
	for name, reason := range got.Cases[3].Named {
		if reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
}

// All scenarios of the folder are weir's own, and the command has all of them.
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

// Requests of any coordinator can be recorded as a run directory, with the same number of bytes as
// the files.
func TestTransferRecord(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "B"}}})
	files := trial.Files("/store/run1", 20, 1_000_000)
	r.fills("A", "/store/run1", files...)
	r.completes(r.submits(transfer.Submission{Dataset: "/store/run1", To: "B"}))
	ctx := t.Context()
	c, err := r.Client()
	require.NoError(t, err)
	begin := time.Now()
	for _, site := range []string{"A", "B"} { // of its door, after the copies
		require.Eventually(t, "a sample of site "+site, func() bool {
			list, err := c.Samples(ctx, site, begin, 1)
			return err == nil && len(list) > 0
		})
	}
	out := filepath.Join(r.Dir(), "recorded")
	r.wants(exitFine, words("transfer record 1 --out "+out), "weir report")
	r.wants(exitError, words("transfer record 1 --out "+out), "holds a run already")
	r.wants(exitError, words("transfer record 9 --out "+out+"9"), "9")
	r.wants(exitUsage, words("transfer record"), "--out")
	run, err := results.Open(out)
	require.NoError(t, err)
	var moved, done int64
	for iv, err := range run.Intervals() {
		require.NoError(t, err)
		moved, done = moved+iv.Moved, done+iv.Done
	}
	if moved != 20_000_000 || done != 20 {
		t.Errorf("%d bytes and %d copies in the intervals, want 20 of 1000000", moved, done)
	}
	var served, received int64
	hosts := map[string]bool{}
	for s, err := range run.Samples() {
		require.NoError(t, err)
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

// If links have different rates, files come from the source that is predicted to be fastest, and
// arrive sooner than with a random choice of sources.
func TestRoutingByPrediction(t *testing.T) {
	tier.Full(t, "the demonstrations of transfers")
	t.Parallel()
	labtest.Need(t, "namespaces")
	play := func(name string) (seconds float64, fast int) {
		code, said := started(t, "transfer", "demo", name, "--json", "--quiet").ended()
		var got struct{ Cases []trial.Row }
		if err := json.Unmarshal([]byte(said), &got); err != nil || code != exitFine || len(got.Cases) != 2 {
			t.Fatalf("%s: %d, %v: %s", name, code, err, said)
		}
		return got.Cases[1].Seconds, got.Cases[1].From["A"]
	}
	for try := range 3 { // both plays take equally long if the machine, and not a link, is the limit
		predicted, best := play("routing")
		chance, some := play("routing-random")
		t.Logf("try %d: predicted: %.1f s, %d of 60 files by the fast link; by chance: %.1f s, %d", try, predicted, best, chance, some)
		if best >= 45 && best > some && predicted < chance/1.3 {
			return
		}
	}
	t.Error("prediction was not better than chance, three times")
}
