package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"weir/measure"
	"weir/results"
	"weir/results/resultstest"
)

// What is measured of an analysis.
const (
	analysisTime metric = "time to analyze"    // s
	analysisCPU  metric = "CPU of an analysis" // s
	peakMemory   metric = "peak memory"        // B
)

// analyzing measures weir report on the run of a large site.
func analyzing(s scale) benchmark {
	run := resultstest.Hour()
	run.Seconds = s.recorded
	return benchmark{
		name:  "analyze",
		title: "Analysis of an hour of fifty hosts",
		about: fmt.Sprintf("`weir report` on a made-up run of %d s in %d steps with one interval a second of each of %d data servers and one sample a second "+
			"of each of %d hosts: findings, tables and report.html, with everything that is written brought to the disk.",
			run.Seconds, run.Steps, run.Stores, run.Servers+run.Loaders),
		metrics: []metric{analysisTime, analysisCPU, peakMemory},
		bars:    []bar{{metric: analysisTime, a: "weir", limit: 2}, {metric: peakMemory, a: "weir", limit: 300e6}},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			dir := filepath.Join(r.dir, "analyze")
			if err := run.Write(dir); err != nil {
				return nil, err
			}
			return []side{r.reportSide(dir)}, nil
		},
	}
}

func (r *rig) reportSide(dir string) side {
	return side{"weir", func(ctx context.Context) (figures, error) {
		u, err := runChild(ctx, nil, []int{4}, r.weir, "report", dir)
		if err != nil {
			return nil, err
		}
		return figures{analysisTime: u.wall.Seconds(), analysisCPU: u.cpu.Seconds(), peakMemory: float64(u.peak)}, nil
	}}
}

// analyzingWide measures weir report on the run of many workers.
func analyzingWide(s scale) benchmark {
	run := resultstest.Large{Seconds: s.recorded / 6, Steps: min(10, s.recorded/30), Loaders: s.crew, Servers: s.crew / 10, Stores: s.crew / 10, Cores: 16}
	return benchmark{
		name:  "analyze-workers",
		title: "Analysis of ten minutes of many workers",
		about: fmt.Sprintf("`weir report` on a made-up run of %d s with %d workers, each on a machine that is sampled every second, and %d data servers, each sampled and with an interval a second. ", run.Seconds, run.Loaders, run.Stores) +
			"Read is intervals.jsonl, hosts.jsonl and events.jsonl together.",
		metrics: []metric{analysisTime, analysisCPU, peakMemory, mergeSize},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			dir := filepath.Join(r.dir, "analyze-workers")
			r.stops = append(r.stops, func() error { return os.RemoveAll(dir) })
			if err := run.Write(dir); err != nil {
				return nil, err
			}
			if err := enroll(dir, run); err != nil {
				return nil, err
			}
			size, err := grown(dir)
			report := r.reportSide(dir)
			return []side{{report.name, func(ctx context.Context) (figures, error) {
				f, err := report.run(ctx)
				if err == nil {
					f[mergeSize] = float64(size)
				}
				return f, err
			}}}, err
		},
	}
}

// enroll writes into a run that its workers came at its begin and left at its end.
func enroll(dir string, run resultstest.Large) error {
	path := filepath.Join(dir, results.EventsFile)
	events, err := readLines[measure.Event](path)
	if err != nil {
		return err
	}
	var came, left []measure.Event
	last := len(events) - 1
	for i := range run.Loaders {
		w := measure.Worker{Name: fmt.Sprint(i + 1), State: measure.Came, Host: fmt.Sprintf("load%02d.example.org", i), Job: fmt.Sprintf("1.%d", i), Offset: 1e-3, Doubt: 1e-4}
		came = append(came, measure.Event{Time: events[0].Time, Kind: measure.WorkerEvent, Text: "came in", Worker: &w})
		gone := w
		gone.State, gone.Seconds, gone.Clients = measure.Left, run.Seconds, 1
		left = append(left, measure.Event{Time: events[last].Time, Kind: measure.WorkerEvent, Step: run.Steps, Text: "has done its work", Worker: &gone})
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
