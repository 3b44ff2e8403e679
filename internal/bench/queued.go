package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/catalog"
	"weir/lab"
	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// What is measured of a coordinator.
const (
	wholeTime  metric = "submitted to completed" // s
	askTime    metric = "show, p50"              // s
	askHigh    metric = "show, p99"              // s
	askMost    metric = "show, slowest"          // s
	leaseCPU   metric = "CPU of the coordinator" // s
	filesMoved metric = "files"
)

// onDatabases has both databases compared, each new and with all that keeps what
// is in it over a crash.
func onDatabases(run func(ctx context.Context, db string) (figures, error)) []side {
	return []side{
		{"SQLite", func(ctx context.Context) (figures, error) { return run(ctx, "") }},
		{"PostgreSQL", func(ctx context.Context) (f figures, err error) {
			pg, err := lab.PostgreSQL(ctx, lab.PostgreSQLConfig{})
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, pg.Stop()) }()
			return run(ctx, pg.URL)
		}},
	}
}

// queued has a coordinator lease a million files through.
func queued(s scale) benchmark {
	b := benchmark{
		name:   "service-million",
		title:  fmt.Sprintf("A request of %d files", s.queued),
		rounds: 1,
		about: fmt.Sprintf("A coordinator, in a process of its own with its database on disk, is asked for a dataset of %d files: the request is submitted, written down and leased through to a site whose agent is pretended: it speaks the API of agents over HTTPS, "+
			"moves nothing, and reports each file as done. Meanwhile somebody asks what `weir transfer show` asks (two questions over HTTPS), 20 times a second at most. Memory is the most that the coordinator's process had, CPU without that of PostgreSQL. One round.", s.queued),
		metrics: []metric{wholeTime, filesRate, memoryUsed, leaseCPU, askTime, askHigh, askMost, filesMoved},
		setup:   func(_ context.Context, r *rig) ([]side, error) { return onDatabases(r.million), nil },
	}
	const shared = "Coordinator, database and pretended agent share the cores, with whatever else runs on the machine."
	for _, db := range []string{"SQLite", "PostgreSQL"} {
		b.bars = append(b.bars, bar{metric: wholeTime, a: db, limit: 300, why: shared}, bar{metric: memoryUsed, a: db, limit: 500e6}, bar{metric: askHigh, a: db, limit: .2, why: shared})
	}
	return b
}

// million measures one request of many files.
func (r *rig) million(ctx context.Context, db string) (f figures, err error) {
	t, err := r.coordinator(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	c, err := t.Client()
	if err != nil {
		return nil, err
	}
	source, dest := newRobot(c, "A"), newRobot(c, "B")
	if err := source.hello(ctx); err != nil {
		return nil, err
	}
	if err := register(ctx, c, r.queued); err != nil {
		return nil, err
	}
	if err := errors.Join(source.hello(ctx), dest.hello(ctx)); err != nil { // again: it was silent for a while
		return nil, err
	}
	before, err := groupCPU(t.Coordinator().Pid())
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	q, err := c.Submit(ctx, transfer.Submission{Dataset: serviceName, To: "B", Approve: true})
	if err != nil {
		return nil, err
	}
	took, err := whileWorking(ctx, []*robot{source, dest}, func(ctx context.Context) ([]time.Duration, error) { return showing(ctx, c, q.ID) })
	if err != nil {
		return nil, err
	}
	wall := time.Since(begin)
	after, err := groupCPU(t.Coordinator().Pid())
	if err != nil {
		return nil, err
	}
	q, err = c.Request(ctx, q.ID)
	if err == nil && (q.Status != transfer.Completed || q.Count.Done != int64(r.queued)) {
		err = fmt.Errorf("the request is %s with %d of %d files", q.Status, q.Count.Done, r.queued)
	}
	if err != nil {
		return nil, err
	}
	peak, err := peakBytes(t.Coordinator().Pid())
	slices.Sort(took)
	at := func(p int) float64 { return took[min(len(took)*p/100, len(took)-1)].Seconds() }
	return figures{
		wholeTime: wall.Seconds(), filesRate: float64(r.queued) / wall.Seconds(), memoryUsed: float64(peak), leaseCPU: (after - before).Seconds(),
		askTime: at(50), askHigh: at(99), askMost: at(100), filesMoved: float64(r.queued),
	}, err
}

// coordinator starts one alone, with what it keeps on a disk.
func (r *rig) coordinator(ctx context.Context, db string) (*trial.Trial, error) {
	t, err := trial.Start(ctx, trial.Options{Program: []string{r.weir}, DB: db, Idle: true})
	if err != nil {
		return nil, err
	}
	if err := t.Coordinator().Start(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, t.Ready(ctx)
}

// register makes a dataset of n files at A that are not there.
func register(ctx context.Context, c *client.Client, n int) error {
	in := transfer.NewFiles{Dataset: serviceName, Site: "A", By: "nobody"}
	for i := range n {
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: fmt.Sprintf("%s/%04d/file%07d.root", serviceName, i/1000, i), Size: 1e6, Adler: fmt.Sprintf("%08x", i+1)}})
		if len(in.Files) == transfer.MaxNewFiles || i == n-1 {
			if _, err := c.AddFiles(ctx, in); err != nil {
				return err
			}
			in.Files = in.Files[:0]
		}
	}
	return nil
}

// whileWorking has robots work until f returns.
func whileWorking[T any](ctx context.Context, robots []*robot, f func(ctx context.Context) (T, error)) (v T, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for _, r := range robots {
		working.Go(func() {
			if err := r.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	v, err = f(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	working.Wait()
	return v, err
}

// showing asks what weir transfer show asks, until the request has ended, and
// returns how long the answers took.
func showing(ctx context.Context, c *client.Client, id int64) (took []time.Duration, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		begin := time.Now()
		q, err := c.Request(ctx, id)
		if err == nil {
			_, err = c.First(ctx, id, []transfer.State{transfer.Lost, transfer.Leased, transfer.NoSource, transfer.Queued, transfer.Dropped}, 50)
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		if q.Status.Ended() {
			return took, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// peakBytes reads VmHWM of a process.
func peakBytes(pid int) (int64, error) { return statusBytes(pid, "VmHWM:") }
