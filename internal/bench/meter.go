package main

import (
	"context"
	"fmt"
)

func metering() benchmark {
	return benchmark{
		name:  "metering",
		title: "Metering",
		about: "What it costs to record one operation: start, first byte, bytes, end, and the end of its task, " +
			"with all looks at the clock (`go test -bench BenchmarkMeter ./measure`).",
		metrics: []metric{opTime, allocs},
		bars:    []bar{{metric: opTime, a: "weir", limit: 0.15e-6}, {metric: allocs, a: "weir", limit: 0}},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			return []side{{"weir", func(ctx context.Context) (figures, error) {
				u, err := runChild(ctx, nil, nil, "go", "test", "-run", "^$", "-bench", "^BenchmarkMeter$", "-benchtime", r.bench, "weir/measure")
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
			}}}, nil
		},
	}
}

// cases are all comparisons, in the order of the page.
func cases(s scale) []benchmark {
	return []benchmark{
		download(1, s), download(64, s),
		upload(1, false, s), upload(16, false, s), upload(1, true, s), upload(16, true, s),
		small(64, .85), small(1000, .8),
		builtin(1, "curl", s), builtin(1, "weir", s), builtin(64, "weir", s),
		sleeping(s), starting(s), waking(s), many(s),
		rootDownload(1, s), rootDownload(8, s), rootFresh(s), rootSmall("read", 150_000), rootSmall("stat", 130_000), rootUpload(s), rootMemory(s),
		ftpDownload(1, s), ftpDownload(4, s), ftpSmall(s),
		pages("http", 1, s), pages("http", 50, s), pages("root", 1, s), pages("root", 50, s),
		computing(400, true, s), computing(1000, false, s), jobsMemory(s),
		metering(), analyzing(s),
		moving(s), movingSmall(s), receiving(false, s), receiving(true, s),
		serving(s), servingSmall(s), queued(s), crowded(s),
		crowds(s), worker(s), pool(s), merging(s), analyzingWide(s),
	}
}
