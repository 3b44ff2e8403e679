package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab/labtest"
)

// The page's snippet for pandas works on a real run, and computes the same values as weir.
func TestPandas(t *testing.T) {
	t.Parallel()
	python := needPandas(t)
	snippet := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(section(t, "results.md", "### With pandas"))
	if snippet == nil {
		t.Fatal("the snippet is not there")
	}
	dir := t.TempDir()
	if code, said := start(t, dir, "weir", "run", "--clients", "1,2,4", "--duration", "4s", "--set", "workload.think=5ms", "--out",
		"runs/latest").ended(); code != exitFine && code != exitInvalid {
		t.Fatalf("%d\n%s", code, said)
	}
	check := snippet[1] + `
found = {s["step"]: s for s in findings["curve"]}
assert list(steps.index) == sorted(found) == [1, 2, 3], steps.index
for step, row in steps.iterrows():
    s = found[step]
    for ours, theirs in (("throughput", "throughput_bytes_per_second"), ("seconds", "measured_seconds"), ("clients", "active_clients"), ("done", "done"), ("moved", "moved_bytes")):
        assert abs(row[ours] - s[theirs]) <= 1e-6 * s[theirs], (step, ours, row[ours], s[theirs])
    assert s["throughput_low"] is None or abs(row["throughput_low_bytes_per_second"] - s["throughput_low"]) <= 1e-9 * s["throughput_bytes_per_second"], (step, row)
    assert row["rough_interval"] > 0
    for h in s["hosts"]:
        share = row["cpu of " + h["host"]]
        assert 0 < share <= 1.01 and abs(share - h["cpu_busy"]) < 0.3, (step, share, h["cpu_busy"])
print("agreed")
`
	path := filepath.Join(dir, "check.py")
	require.NoError(t, os.WriteFile(path, []byte(check), 0o600))
	cmd := exec.CommandContext(t.Context(), python, "-W", "error", path)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(said), "agreed\n") {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
}

// needPandas returns the Python for which Debian installs pandas.
func needPandas(t *testing.T) string {
	t.Helper()
	const python = "/usr/bin/python3"
	labtest.Need(t, python)
	if err := exec.CommandContext(t.Context(), python, "-c", "import pandas").Run(); err != nil {
		labtest.Need(t, "python3-pandas") // no program has that name
	}
	return python
}
