package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// small returns a run of a few hundred lines.
func small() resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration, s.Lambda = []int{1, 2, 4}, 12, 5
	return s
}

// withFile analyzes run after one of its files is replaced.
func withFile(t *testing.T, run *results.Run, name string, b []byte) (*Findings, error) {
	t.Helper()
	path := filepath.Join(run.Dir, name)
	whole := require.File(t, path)
	defer func() {
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}()
	require.NoError(t, os.WriteFile(path, b, 0o600))
	other, err := results.Open(run.Dir)
	if err != nil {
		return nil, err
	}
	return Analyze(other)
}

func content(t *testing.T, run *results.Run, name string) []byte {
	t.Helper()
	b := require.File(t, filepath.Join(run.Dir, name))
	return b
}

// TestCutOffAnywhere checks that a file that is cut off at any position causes an error that names
// it, or findings whose data check reports it.
func TestCutOffAnywhere(t *testing.T) {
	tier.Slow(t, "analyzes a run many times")
	run := written(t, small())
	for _, name := range []string{results.AboutFile, results.PlanFile, results.IntervalsFile, results.HostsFile, results.EventsFile} {
		whole := content(t, run, name)
		for n := 0; n < len(whole)*97/100; n += 1 + len(whole)/60 {
			f, err := withFile(t, run, name, whole[:n])
			switch {
			case err != nil && !strings.Contains(err.Error(), name):
				t.Errorf("%s cut at %d: the error does not name it: %v", name, n, err)
			case err != nil:
			case name == results.HostsFile && n == 0: // as in a run without a monitor
			case find(t, f, "data").Status == OK && !noted(f, "data"):
				t.Errorf("%s cut at %d of %d: %s", name, n, len(whole), find(t, f, "data").Detail)
			}
		}
	}
}

// noted reports whether there is a note of a check.
func noted(f *Findings, check string) bool {
	return slices.ContainsFunc(f.Validity.Notes, func(n Note) bool { return n.Check == check })
}

// TestDamageIsTold analyzes runs with damaged lines in a file.
func TestDamageIsTold(t *testing.T) {
	tier.Slow(t, "analyzes dozens of runs")
	join := func(lines [][]byte) []byte { return bytes.Join(lines, []byte{'\n'}) }
	replace := func(old, new string, from int) func([][]byte) []byte {
		return func(lines [][]byte) []byte {
			for i := from; i < len(lines); i++ {
				lines[i] = bytes.Replace(lines[i], []byte(old), []byte(new), 1)
			}
			return join(lines)
		}
	}
	for name, c := range map[string]struct {
		file   string
		damage func(lines [][]byte) []byte
		want   string // in an error, or in the check of this name
		check  string
	}{
		"every line twice": {results.IntervalsFile, func(l [][]byte) []byte {
			var all [][]byte
			for _, x := range l {
				all = append(all, x, x)
			}
			return join(all)
		}, "check.data.twice", "data"},
		"the file twice": {results.IntervalsFile, func(l [][]byte) []byte { return join(append(l, l...)) }, "out of order", "clock"},
		"backwards":      {results.IntervalsFile, func(l [][]byte) []byte { slices.Reverse(l); return join(l) }, "out of order", "clock"},
		"no length": {results.IntervalsFile, replace(`"duration_seconds":1,`, `"duration_seconds":0,`, 20),
			"check.data.no_duration", "data"},
		"no length ever": {results.IntervalsFile, replace(`"duration_seconds":1,`, `"duration_seconds":0,`, 0), "check.data.no_step", "data"},
		"unknown steps":  {results.IntervalsFile, replace(`"step":3`, `"step":77`, 0), "not in the plan were measured: 77", "data"},
		"negative":       {results.IntervalsFile, replace(`"done":`, `"done":-`, 20), "intervals.jsonl:21: damaged line: done -", ""},
		"no number":      {results.IntervalsFile, replace(`"clients":`, `"clients":NaN`, 20), "intervals.jsonl:21: damaged line", ""},
		"too large":      {results.IntervalsFile, replace(`"clients":`, `"clients":1e99`, 20), "intervals.jsonl:21: damaged line", ""},
		"text":           {results.IntervalsFile, replace(`"done":`, `"done":"many","x":`, 20), "intervals.jsonl:21: damaged line", ""},
		"not JSON": {results.IntervalsFile, func(l [][]byte) []byte { l[7] = []byte("\x00\x01"); return join(l) },
			"intervals.jsonl:8: damaged line", ""},
		"nothing": {results.IntervalsFile, func([][]byte) []byte { return nil }, "check.data.no_step", "data"},
		"hosts stop": {results.HostsFile, func(l [][]byte) []byte { return append(join(l[:30]), '\n') },
			"host load.example.org in the last", "data"},
		"hosts negative": {results.HostsFile, replace(`"cost_cpu_seconds":`, `"cost_cpu_seconds":-`, 9), "hosts.jsonl:10: damaged line", ""},
		"hosts not JSON": {results.HostsFile, func(l [][]byte) []byte { l[7] = []byte("{]"); return join(l) },
			"hosts.jsonl:8: damaged line", ""},
		"events not JSON": {results.EventsFile, func(l [][]byte) []byte { l[1] = []byte("{]"); return join(l) },
			"events.jsonl:2: damaged line", ""},
		"newer run":   {results.AboutFile, func(l [][]byte) []byte { return []byte(`{"format":99}`) }, "use a newer weir", ""},
		"newer plan":  {results.PlanFile, func(l [][]byte) []byte { return []byte(`{"version":99}`) }, "use a newer weir", ""},
		"empty about": {results.AboutFile, func(l [][]byte) []byte { return nil }, "about.json", ""},
		"empty plan":  {results.PlanFile, func(l [][]byte) []byte { return nil }, "plan.json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := written(t, small())
			lines := bytes.Split(bytes.TrimSpace(content(t, run, c.file)), []byte{'\n'})
			f, err := withFile(t, run, c.file, c.damage(lines))
			if c.check == "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			require.NoError(t, err)
			if got := find(t, f, c.check); c.file != results.HostsFile && got.Status == OK ||
				!shows(&got, c.want) && !strings.Contains(fmt.Sprint(f.Validity.Notes), c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
			if _, err := json.Marshal(f); err != nil {
				t.Error(err)
			}
		})
	}
}
