package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/lab"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

func metering() comparison {
	return comparison{
		name:    "metering",
		title:   "Metering",
		about:   "Recording one operation, including all clock reads (`go test -bench BenchmarkMeter ./measure`).",
		metrics: []metric{opTime, allocs},
		bars:    []bar{{metric: opTime, a: "weir", limit: 0.15e-6}, {metric: allocs, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			return []side{{"weir", func() (figures, error) {
				u, err := r.child("go", "test", "-run", "^$", "-bench", "^BenchmarkMeter$", "-benchtime", r.bench, "weir/loadtest/measure")
				if err != nil {
					return nil, err
				}
				ns, err := number(`BenchmarkMeter\S*\s+\d+\s+([0-9.]+) ns/op`, u.out)
				if err != nil {
					return nil, err
				}
				n, err := number(`([0-9]+) allocs/op`, u.out)
				if err != nil {
					return nil, fmt.Errorf("metering: %w", err)
				}
				return figures{opTime: ns / 1e9, allocs: n}, nil
			}}}
		},
	}
}

// analyzing measures weir report on the run of a large site.
func analyzing(s scale) comparison {
	run := resultstest.Hour()
	run.Seconds = s.recorded
	return comparison{
		name:  "analyze",
		title: "Analysis of an hour of fifty hosts",
		about: fmt.Sprintf("`weir report` on a synthetic run of %d s in %d steps, with an interval of %d data servers and a sample of %d "+
			"hosts per second: findings, tables and report.html, synced to disk.", run.Seconds, run.Steps, run.Stores, run.Servers+run.Loaders),
		metrics: []metric{analysisTime, analysisCPU, peakMemory},
		bars:    []bar{{metric: analysisTime, a: "weir", limit: 2}, {metric: peakMemory, a: "weir", limit: 300e6}},
		setup: func(r *rig) []side {
			dir := filepath.Join(r.dir, "analyze")
			r.must(run.Write(dir))
			return []side{r.reportSide(dir)}
		},
	}
}

func (r *rig) reportSide(dir string) side {
	return side{"weir", func() (figures, error) {
		u, err := runChild(r.Context(), nil, []int{4}, r.weir, "report", dir)
		if err != nil {
			return nil, err
		}
		return figures{analysisTime: u.wall.Seconds(), analysisCPU: u.cpu.Seconds(), peakMemory: float64(u.peak)}, nil
	}}
}

// analyzingWide measures weir report on the run of many workers.
func analyzingWide(s scale) comparison {
	run := resultstest.Large{Seconds: s.recorded / 6, Steps: min(10, s.recorded/30), Loaders: s.crew, Servers: s.crew / 10,
		Stores: s.crew / 10, Cores: 16}
	return comparison{
		name:  "analyze-workers",
		title: "Analysis of ten minutes of many workers",
		about: fmt.Sprintf("`weir report` on a synthetic run of %d s with %d workers and %d data servers, each on a monitored host, with an "+
			"interval per second. \"read\" is the size of intervals.jsonl, hosts.jsonl and events.jsonl.", run.Seconds, run.Loaders, run.Stores),
		metrics: []metric{analysisTime, analysisCPU, peakMemory, mergeSize},
		setup: func(r *rig) []side {
			dir := filepath.Join(r.dir, "analyze-workers")
			r.must(run.Write(dir))
			r.must(enroll(dir, run))
			size, err := grown(dir)
			r.must(err)
			report := r.reportSide(dir)
			return []side{{report.name, func() (figures, error) {
				f, err := report.run()
				if err == nil {
					f[mergeSize] = float64(size)
				}
				return f, err
			}}}
		},
	}
}

// enroll adds events to a run: its workers joined at its begin and left at its end.
func enroll(dir string, run resultstest.Large) error {
	path := filepath.Join(dir, results.EventsFile)
	events, err := readLines[measure.Event](path)
	if err != nil {
		return err
	}
	var came, left []measure.Event
	last := len(events) - 1
	for i := range run.Loaders {
		w := measure.Worker{Name: fmt.Sprint(i + 1), State: measure.Came, Host: fmt.Sprintf("load%02d.example.org", i),
			Job: fmt.Sprintf("1.%d", i), Offset: 1e-3, Doubt: 1e-4}
		came = append(came, measure.Event{Time: events[0].Time, Kind: measure.EventWorker, Text: "connected", Worker: &w})
		gone := w
		gone.State, gone.Seconds, gone.Clients = measure.Left, run.Seconds, 1
		left = append(left, measure.Event{Time: events[last].Time, Kind: measure.EventWorker, Step: run.Steps, Text: "finished",
			Worker: &gone})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := json.NewEncoder(f)
	for _, e := range slices.Concat(events[:1], came, events[1:last], left, events[last:]) {
		err = errors.Join(err, out.Encode(e))
	}
	return errors.Join(err, f.Close())
}

// The metrics of an analysis, of a batch system's workers, and of runs that are merged.
var (
	analysisTime = metric{"time to analyze", "analysis-s", 1, " s"}
	analysisCPU  = metric{"CPU of an analysis", "analysis-cpu-s", 1, " s"}
	peakMemory   = metric{"peak memory", "peak-MB", 1e-6, " MB"}
	activeTime   = metric{"submitted to all active", "active-s", 1, " s"}
	reporting    = metric{"workers that reported every second", "reporting", 1, ""}
	mergeTime    = metric{"time to merge and analyze", "merge-s", 1, " s"}
	mergeCPU     = metric{"CPU of a merge", "merge-cpu-s", 1, " s"}
	mergeSize    = metric{"read", "read-MB", 1e-6, " MB"}
)

// pool runs many jobs of a real HTCondor at once.
func pool(s scale) comparison {
	name := fmt.Sprintf("%d jobs", s.slots)
	return comparison{
		name:  "pool",
		title: fmt.Sprintf("%d jobs of an HTCondor pool", s.slots),
		about: fmt.Sprintf("`weir run --on htcondor --workers %d` in the pool of `weir lab up htcondor`, all on this machine; each worker "+
			"reads 4 KiB from nginx per second for %v. \"submitted to all active\" ends when the last worker is connected. \"cores\" is weir "+
			"run and the HTCondor programs that it calls.", s.slots, s.told),
		metrics: []metric{activeTime, reporting, coresUsed, memoryUsed},
		bars:    []bar{{metric: reporting, a: name, least: true, limit: float64(s.slots)}},
		setup: func(r *rig) []side {
			srv := r.smallServer(lab.NginxConfig{}, loadedSize)
			p, err := lab.HTCondorConfig{Slots: r.slots}.Start(r.Context())
			r.must(err)
			r.ends(p.Stop)
			l := r.reads(srv, theFile, r.slots)
			l.think, l.hold = time.Second, r.told
			l.env = append(p.Env, "XDG_STATE_HOME="+filepath.Join(r.dir, "state"))
			l.flags = []string{"--on", "htcondor", "--workers", fmt.Sprint(r.slots), "--set", "on.wait=2m"}
			return []side{{name, func() (figures, error) { return r.jobsOf(l) }}}
		},
	}
}

// jobsOf runs a load whose workers a batch system starts.
func (r *rig) jobsOf(l load) (figures, error) {
	f := figures{}
	l.see = func(dir string) error {
		events, err := readLines[measure.Event](filepath.Join(dir, results.EventsFile))
		if err != nil || len(events) == 0 {
			return errors.Join(errors.New("no events"), err)
		}
		for _, e := range events {
			if w := e.Worker; w != nil && w.State == measure.Came {
				f[activeTime] = e.Time.Sub(events[0].Time).Seconds()
			} else if w != nil && w.State == measure.Left && float64(w.Seconds) >= l.hold.Seconds() {
				f[reporting]++
			}
		}
		return nil
	}
	o, err := r.run(l, nil)
	if err != nil {
		return nil, err
	}
	f[coresUsed], f[memoryUsed] = o.cpu.Seconds()/o.wall.Seconds(), float64(o.peak)
	return f, o.check()
}

// readLines reads a file of JSON values.
func readLines[T any](path string) (all []T, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, v)
	}
	return all, lines.Err()
}

// merging measures the merge of many runs, measured on different machines, into one run.
func merging(s scale) comparison {
	run := resultstest.Large{Seconds: s.recorded, Steps: 20, Loaders: 1, Stores: 1, Cores: 16}
	return comparison{
		name:  "merge",
		title: "Merge of runs of several machines",
		about: fmt.Sprintf("`weir merge` of %d synthetic runs of %d s, with an interval and a host sample per second: run, findings, tables, "+
			"report.html.", s.merged, run.Seconds),
		metrics: []metric{mergeTime, mergeCPU, memoryUsed, mergeSize},
		setup: func(r *rig) []side {
			size := r.separate(run)
			return []side{{"weir", func() (figures, error) {
				out := filepath.Join(r.dir, "merged")
				u, err := runChild(r.Context(), nil, []int{4}, r.weir, "merge", filepath.Join(r.dir, "runs"), "-o", out)
				if err != nil {
					return nil, err
				}
				return figures{mergeTime: u.wall.Seconds(), mergeCPU: u.cpu.Seconds(), memoryUsed: float64(u.peak), mergeSize: float64(size)},
					os.RemoveAll(out)
			}}}
		},
	}
}

// separate writes the runs of a number of machines with the same plan, and returns their size in
// bytes. Only the machines differ: the intervals are one file.
func (r *rig) separate(run resultstest.Large) int64 {
	first := filepath.Join(r.dir, "runs", "1")
	r.must(run.Write(first))
	files, err := os.ReadDir(first)
	r.must(err)
	size, err := grown(first)
	r.must(err)
	for i := 2; i <= r.merged; i++ {
		dir := filepath.Join(r.dir, "runs", fmt.Sprint(i))
		r.must(os.Mkdir(dir, 0o755))
		for _, f := range files {
			from, to := filepath.Join(first, f.Name()), filepath.Join(dir, f.Name())
			if f.Name() == results.IntervalsFile {
				r.must(os.Link(from, to))
				continue
			}
			b, err := os.ReadFile(from)
			r.must(err)
			b = bytes.ReplaceAll(b, []byte("load00"), fmt.Appendf(nil, "load%02d", i))
			b = bytes.ReplaceAll(b, []byte("20260301-120000-abcdef"), fmt.Appendf(nil, "20260301-120000-abc%03d", i))
			r.must(os.WriteFile(to, b, 0o600))
		}
	}
	return size * int64(r.merged)
}
