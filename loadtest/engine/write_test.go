package engine

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"weir/loadtest/workload"
	"weir/storage"
)

// unwritable makes folders and fails writes with err, from the first to the given number.
type unwritable struct {
	storage.Service
	err    error
	most   int64
	writes *atomic.Int64
}

func (s unwritable) Client() storage.Client { return unwritableClient{s.Service.Client(), s} }

type unwritableClient struct {
	storage.Client
	s unwritable
}

func (c unwritableClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Write && c.s.writes.Add(1) <= c.s.most {
		return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: c.s.err}
	}
	return c.Client.Do(ctx, op, p)
}

// A service that makes the folders of a run and refuses each of its first files ends a run that writes before its load. Failures that may
// pass, and refusals of some files, do not; neither leaves anything.
func TestRefusedWritesEndThePreparation(t *testing.T) {
	job := workload.Job{Events: 1, Event: 1000, OutputSize: 1000}
	write := workload.Work{Kind: "write", Size: workload.Dist{Fixed: 1000}}
	mix := workload.Work{Kind: "mix", Mix: map[string]float64{"write": 1, "read": 9}, Size: write.Size}
	for name, c := range map[string]struct {
		work workload.Work
		err  error
		most int64
		ends bool
	}{
		"denied":           {write, fs.ErrPermission, 1000, true},
		"of jobs":          {workload.Work{Kind: "job", Job: &job}, fs.ErrPermission, 1000, true},
		"of a mix":         {mix, fs.ErrPermission, 1000, true},
		"unsupported":      {write, errors.ErrUnsupported, 1000, true},
		"no space":         {write, syscall.ENOSPC, 1000, true},
		"quota":            {write, syscall.EDQUOT, 1000, true},
		"read-only":        {write, syscall.EROFS, 1000, true},
		"no reason":        {write, errors.New("550 failed"), 1000, true},
		"some denied":      {write, fs.ErrPermission, triedWrites - 1, false},
		"busy":             {write, storage.ErrBusy, 1000, false},
		"broken":           {write, syscall.ECONNRESET, 1000, false},
		"server error":     {write, storage.ErrServer, 1000, false},
		"reads":            {workload.Work{Kind: "read"}, fs.ErrPermission, 1000, false},
		"names of folders": {workload.Work{Kind: "metadata", Mix: map[string]float64{"mkdir": 1}}, fs.ErrPermission, 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.work.Session = "kept"
				conf, _ := closed(t, "simulated://x?service=1ms&files=1x1KiB", c.work, stepOf(1, 1))
				conf.Service = unwritable{conf.Service, c.err, c.most, new(atomic.Int64)}
				_, err := Prepare(t.Context(), conf, conf.Files, nil)
				if ends := errors.Is(err, c.err); ends != c.ends || err != nil && !ends {
					t.Errorf("the preparation ends with %v", err)
				}
				for path := range conf.Manifest.(*remembered).left {
					if s := conf.Service.Client(); path[len(path)-1] != '/' {
						_, err := s.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: path}, storage.NoProgress{})
						if !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("%s is left: %v", path, err)
						}
					}
				}
			})
		})
	}
}
