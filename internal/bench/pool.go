package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weir/lab"
	"weir/measure"
	"weir/results"
	"weir/results/resultstest"
)

// What is measured of a batch system's workers, and of runs that are merged.
const (
	activeTime metric = "submitted to all active" // s
	reporting  metric = "workers that reported every second"
	mergeTime  metric = "time to merge and analyze" // s
	mergeCPU   metric = "CPU of a merge"            // s
	mergeSize  metric = "read"                      // B
)

// pool runs many jobs of a real HTCondor at once.
func pool(s scale) benchmark {
	name := fmt.Sprintf("%d jobs", s.slots)
	return benchmark{
		name:  "pool",
		title: fmt.Sprintf("%d jobs of an HTCondor pool", s.slots),
		about: fmt.Sprintf("`weir run --on htcondor --workers %d` on the pool of `weir lab up htcondor`, whose slots are all on this machine; each worker is one client that reads 4 KiB from nginx once a second for %v. "+
			"Submitted to all active: from the begin of the run until the last worker has come in, all of them processes that this machine has to start. Cores are those of weir run itself, with the programs of HTCondor that it calls.", s.slots, s.told),
		metrics: []metric{activeTime, reporting, coresUsed, memoryUsed},
		bars:    []bar{{metric: reporting, a: name, least: true, limit: float64(s.slots)}},
		setup: func(ctx context.Context, r *rig) ([]side, error) {
			srv, err := r.smallServer(ctx, lab.NginxConfig{}, loadedSize)
			if err != nil {
				return nil, err
			}
			p, err := lab.HTCondor(ctx, lab.HTCondorConfig{Slots: r.slots})
			if err != nil {
				return nil, err
			}
			r.stops = append(r.stops, p.Stop)
			l := r.reads(srv, theFile, r.slots)
			l.think, l.hold = time.Second, r.told
			l.env = append(p.Env, "XDG_STATE_HOME="+filepath.Join(r.dir, "state"))
			l.flags = []string{"--on", "htcondor", "--workers", fmt.Sprint(r.slots), "--set", "on.wait=2m"}
			return []side{{name, func(ctx context.Context) (figures, error) { return r.jobsOf(ctx, l) }}}, nil
		},
	}
}

// jobsOf runs a load whose workers a batch system starts.
func (r *rig) jobsOf(ctx context.Context, l load) (figures, error) {
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
	o, err := r.run(ctx, l, nil)
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

// merging makes one run of many that were recorded apart.
func merging(s scale) benchmark {
	run := resultstest.Large{Seconds: s.recorded, Steps: 20, Loaders: 1, Stores: 1, Cores: 16}
	return benchmark{
		name:    "merge",
		title:   "Merging of runs recorded apart",
		about:   fmt.Sprintf("`weir merge` of %d made-up runs of %d s, each with an interval and a sample of a machine of its own each second: one run of them, its findings, tables and report.html.", s.parts, run.Seconds),
		metrics: []metric{mergeTime, mergeCPU, memoryUsed, mergeSize},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			size, err := r.apart(run)
			if err != nil {
				return nil, err
			}
			return []side{{"weir", func(ctx context.Context) (figures, error) {
				out := filepath.Join(r.dir, "merged")
				u, err := runChild(ctx, nil, []int{4}, r.weir, "merge", filepath.Join(r.dir, "parts"), "-o", out)
				if err != nil {
					return nil, err
				}
				return figures{mergeTime: u.wall.Seconds(), mergeCPU: u.cpu.Seconds(), memoryUsed: float64(u.peak), mergeSize: float64(size)}, os.RemoveAll(out)
			}}}, nil
		},
	}
}

// apart writes what so many machines have recorded of the same plan, and
// returns how much it is. Only the machines differ: intervals are one file.
func (r *rig) apart(run resultstest.Large) (int64, error) {
	first := filepath.Join(r.dir, "parts", "1")
	if err := run.Write(first); err != nil {
		return 0, err
	}
	r.stops = append(r.stops, func() error { return os.RemoveAll(filepath.Join(r.dir, "parts")) })
	files, err := os.ReadDir(first)
	if err != nil {
		return 0, err
	}
	size, err := grown(first)
	for i := 2; i <= r.parts; i++ {
		dir := filepath.Join(r.dir, "parts", fmt.Sprint(i))
		err = errors.Join(err, os.Mkdir(dir, 0o755))
		for _, f := range files {
			from, to := filepath.Join(first, f.Name()), filepath.Join(dir, f.Name())
			if f.Name() == results.IntervalsFile {
				err = errors.Join(err, os.Link(from, to))
				continue
			}
			b, bad := os.ReadFile(from)
			b = bytes.ReplaceAll(b, []byte("load00"), fmt.Appendf(nil, "load%02d", i))
			b = bytes.ReplaceAll(b, []byte("20260301-120000-abcdef"), fmt.Appendf(nil, "20260301-120000-abc%03d", i))
			err = errors.Join(err, bad, os.WriteFile(to, b, 0o600))
		}
	}
	return size * int64(r.parts), err
}
