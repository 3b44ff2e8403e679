package main

import (
	"context"
	"fmt"
	"path/filepath"

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
			return []side{{"weir", func(ctx context.Context) (figures, error) {
				u, err := runChild(ctx, nil, []int{4}, r.weir, "report", dir)
				if err != nil {
					return nil, err
				}
				return figures{analysisTime: u.wall.Seconds(), analysisCPU: u.cpu.Seconds(), peakMemory: float64(u.peak)}, nil
			}}}, nil
		},
	}
}
