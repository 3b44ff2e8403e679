package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/transfer"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// What is measured of many requests.
const (
	firstEnd   metric = "first ended" // s
	medianEnd  metric = "half ended"  // s
	lastEnd    metric = "last ended"  // s
	endsSpread metric = "last over half"
	firstFile  metric = "each has a file" // s
)

// crowded compares many requests at once.
func crowded(s scale) benchmark {
	requests, files, size := 100, 10, 1<<20
	if s.size < 64<<20 {
		requests, files, size = 20, 3, 1<<16
	}
	b := benchmark{
		name:  "service-hundred",
		title: fmt.Sprintf("%d requests at once", requests),
		about: fmt.Sprintf("%d requests, each for another block of a dataset with %d files of %d KiB in memory, are submitted at the same moment and copied from one agent to another, each a process of its own with the defaults; the coordinator's database is on disk. "+
			"A request's time is from when all were submitted. Failed operations are requests that were refused or are not complete, and all that the coordinator said of its database.", requests, files, size>>10),
		metrics: []metric{firstEnd, medianEnd, lastEnd, endsSpread, firstFile, filesRate, failed},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			src, err := r.blocks(requests, files, int64(size))
			if err != nil {
				return nil, err
			}
			return onDatabases(func(ctx context.Context, db string) (figures, error) { return r.hundred(ctx, src, db, requests, files) }), nil
		},
	}
	for _, db := range []string{"SQLite", "PostgreSQL"} {
		b.bars = append(b.bars, bar{metric: failed, a: db}, bar{metric: endsSpread, a: db, limit: 2})
	}
	return b
}

// blocks makes a dataset of so many blocks in a folder of its own.
func (r *rig) blocks(n, files int, size int64) (string, error) {
	src, err := r.source(1, size, 1)
	if err != nil {
		return "", err
	}
	first := filepath.Join(src, serviceName, fileName(0))
	for i := range n {
		dir := filepath.Join(src, serviceName, blockName(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		for k := range files {
			if err := os.Link(first, filepath.Join(dir, fileName(k))); err != nil {
				return "", err
			}
		}
	}
	return src, os.Remove(first)
}

func blockName(i int) string { return fmt.Sprintf("block%03d", i) }

// hundred measures many requests at once.
func (r *rig) hundred(ctx context.Context, src, db string, requests, files int) (f figures, err error) {
	dir, remove, err := r.fresh(false)
	if err != nil {
		return nil, err
	}
	state, removeState, err := r.fresh(true)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	defer func() { err = errors.Join(err, remove(), removeState(), os.RemoveAll(filepath.Join(src, agentState))) }()
	t, err := trial.Start(ctx, trial.Options{Program: []string{r.weir}, Dir: state, DB: db, Sites: []trial.Site{{Name: "A", Root: src}, {Name: "B", Root: dir}}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Add(ctx, serviceName, "A"); err != nil {
		return nil, err
	}
	c, err := t.Client()
	if err != nil {
		return nil, err
	}
	f = figures{}
	ids, err := submitAll(ctx, c, requests)
	if err != nil {
		f[failed]++
	}
	if err := f.ends(ctx, t, c, ids, requests*files); err != nil {
		return nil, err
	}
	f[failed] += complaints(filepath.Join(state, "coordinator.log"))
	return f, nil
}

// submitAll asks for each block at the same moment.
func submitAll(ctx context.Context, c *client.Client, n int) ([]int64, error) {
	ids, errs := make([]int64, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			q, err := c.Submit(ctx, transfer.Submission{Dataset: serviceName, Block: blockName(i), To: "B", Approve: true})
			ids[i], errs[i] = q.ID, err
		})
	}
	all.Wait()
	return slices.DeleteFunc(ids, func(id int64) bool { return id == 0 }), errors.Join(errs...)
}

// ends waits for requests and says when they ended, and had their first files.
func (f figures) ends(ctx context.Context, t *trial.Trial, c *client.Client, ids []int64, files int) error {
	var made time.Time
	var ends, firsts []float64
	for _, id := range ids {
		m, err := t.Wait(ctx, id)
		if err != nil {
			return err
		}
		if m.Request.Status != transfer.Completed {
			f[failed]++
		}
		if made.IsZero() || m.Request.Made.Before(made) {
			made = m.Request.Made
		}
		attempts, err := c.Attempts(ctx, id, 0, 1)
		if err != nil || len(attempts) == 0 {
			return errors.Join(err, fmt.Errorf("request %d has no attempts", id))
		}
		ends = append(ends, float64(m.Request.Ended.UnixNano()))
		firsts = append(firsts, float64(attempts[0].End.UnixNano()))
	}
	since := func(at float64) float64 { return (at - float64(made.UnixNano())) / 1e9 }
	s := spreadOf(ends)
	f[firstEnd], f[medianEnd], f[lastEnd] = since(s.low), since(s.median), since(s.high)
	f[endsSpread], f[firstFile] = f[lastEnd]/f[medianEnd], since(slices.Max(firsts))
	f[filesRate] = float64(files) / f[lastEnd]
	return nil
}

// complaints counts what a coordinator said of its database.
func complaints(log string) (n float64) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 1
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "database") || strings.Contains(line, "locked") {
			n++
		}
	}
	return n
}
