package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// populationsAddUp fails t unless f has these populations with these numbers of clients in the
// steps, and their operations and bytes add up to the totals of all clients.
func populationsAddUp(t *testing.T, f *analysis.Findings, want map[string][]int) {
	t.Helper()
	done, moved := make([]int64, len(f.Curve)), make([]int64, len(f.Curve))
	for _, p := range f.Populations {
		var clients []int
		for i := range p.Curve {
			clients = append(clients, p.Curve[i].Clients)
			done[i], moved[i] = done[i]+p.Curve[i].Done, moved[i]+p.Curve[i].Moved
			if p.Curve[i].Done == 0 || p.Curve[i].Latency == nil {
				t.Errorf("%s, step %d: %+v", p.Name, i+1, p.Curve[i])
			}
		}
		if !slices.Equal(clients, want[p.Name]) {
			t.Errorf("population %s had %v clients, want %v", p.Name, clients, want[p.Name])
		}
	}
	if len(f.Populations) != len(want) {
		t.Errorf("%d populations, want %d", len(f.Populations), len(want))
	}
	for i := range f.Curve {
		if f.Curve[i].Done != done[i] || f.Curve[i].Moved != moved[i] || f.Curve[i].Errors > 0 {
			t.Errorf("step %d: %d operations of %d bytes, of the populations together %d of %d", i+1, f.Curve[i].Done, f.Curve[i].Moved,
				done[i], moved[i])
		}
	}
}

func TestPopulationsWorkAtTheSameTime(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{})
	scenario := writeTemp(t, "target: "+s.URL+`
workload: {verify: 20%, size: 64KiB}
populations:
- {name: writers, clients: [2, 4], workload: {kind: write, think: 2ms}}
- {name: readers, clients: 3, workload: {kind: read, think: 2ms}}
- {name: lists, clients: [1, 2], workload: {kind: metadata, mix: {stat: 1}, think: 2ms}}
files: {make: {count: 10, size: 256KiB}}
load: {ramp: 0s, warmup: 300ms, duration: 2s}
`)
	for name, more := range map[string][]string{
		"processes":            nil,
		"more processes":       {"--processes", "4"},
		"workers of a cluster": {"--on", "local", "--workers", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			code, said := weir(t, append([]string{"run", scenario, "--quiet", "--out", dir}, more...)...)
			if code != exitFine && code != exitInvalid {
				t.Fatalf("code %d: %s", code, said)
			}
			f := findings(t, dir)
			populationsAddUp(t, f, map[string][]int{"writers": {2, 4}, "readers": {3, 3}, "lists": {1, 2}})
			agree(t, f)
			kinds := map[string]map[string]bool{}
			for v := range intervals(t, dir) {
				if kinds[v.Population] == nil {
					kinds[v.Population] = map[string]bool{}
				}
				if v.Done > 0 {
					kinds[v.Population][v.Kind.String()] = true
				}
			}
			for population, kind := range map[string]string{"writers": "write", "readers": "read", "lists": "stat"} {
				if !kinds[population][kind] || len(kinds[population]) != 1 {
					t.Errorf("clients of %s did %v", population, kinds)
				}
			}
			empty(t, s.Data)
			populationsAreExported(t, dir, f)
		})
	}
}

// populationsAreExported fails t unless each population has metrics of its own, and no series
// combines all clients.
func populationsAreExported(t *testing.T, dir string, f *analysis.Findings) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics.txt")
	if code, said := weir(t, "export", dir, "--prometheus", file); code != exitFine {
		t.Fatalf("code %d: %s", code, said)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	last := map[string]float64{} // the last value of each series
	for _, m := range regexp.MustCompile(`(?m)^weir_operations_done_total\{(.*?)\} (\S+)`).FindAllStringSubmatch(string(text), -1) {
		if last[m[1]], err = strconv.ParseFloat(m[2], 64); err != nil {
			t.Fatal(err)
		}
	}
	sums := map[string]float64{}
	for labels, n := range last {
		name := regexp.MustCompile(`population="(.*?)"`).FindStringSubmatch(labels)
		if name == nil {
			t.Fatalf("a series of no population: %s", labels)
		}
		sums[name[1]] += n
	}
	if len(sums) != len(f.Populations) {
		t.Errorf("metrics of the populations %v, want %d", sums, len(f.Populations))
	}
	for _, p := range f.Populations {
		least := int64(0)
		for i := range p.Curve {
			least += p.Curve[i].Done
		}
		if sums[p.Name] < float64(least) { // warm-up and graceful stop are added
			t.Errorf("%s: %v operations exported, %d were measured", p.Name, sums[p.Name], least)
		}
	}
	if !strings.Contains(string(text), `weir_latency_seconds_bucket{kind="read",`) || !strings.Contains(string(text), `population="readers"`) {
		t.Error("there are no durations of a population")
	}
}
