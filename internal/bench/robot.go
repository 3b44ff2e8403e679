package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/transfer"
	"weir/transfer/client"
)

// A robot says what the agent of a site says, and moves nothing: each file that it
// is to fetch is there at once. So what a coordinator can do is not hidden by what
// moving takes.
type robot struct {
	ask  *client.Client
	site string

	mu      sync.Mutex
	holding map[int64]transfer.Lease
	wake    chan struct{}
	done    int
}

const (
	robotSlots   = 1000 // files at once: the most that an agent may have
	robotReports = 2000 // outcomes in a report, as agents have
)

func newRobot(c *client.Client, site string) *robot {
	return &robot{ask: c, site: site, holding: map[int64]transfer.Lease{}, wake: make(chan struct{}, 1)}
}

// hello says that the site is there.
func (r *robot) hello(ctx context.Context) error {
	_, err := r.ask.Hello(ctx, transfer.Hello{Site: r.site, Session: "one", URL: "http://127.0.0.1:1", Slots: robotSlots, Free: 1 << 50})
	return err
}

// work asks for files and says that they are there, until ctx ends.
func (r *robot) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	for _, loop := range []func(context.Context) error{r.fetch, r.tell} {
		both.Go(func() {
			for ctx.Err() == nil {
				if err := loop(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	both.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// fetch asks for files.
func (r *robot) fetch(ctx context.Context) error {
	r.mu.Lock()
	ask := transfer.WorkAsk{Site: r.site, Session: "one", Slots: robotSlots, Free: 1 << 50}
	for _, l := range r.holding {
		ask.Holding = append(ask.Holding, transfer.Hold{Item: l.Item, Epoch: l.Epoch})
	}
	r.mu.Unlock()
	w, err := r.ask.Work(ctx, ask)
	if err != nil {
		return err
	}
	r.mu.Lock()
	for _, l := range w.Leases {
		r.holding[l.Item] = l
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// tell says of files that they are there.
func (r *robot) tell(ctx context.Context) error {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-r.wake:
	case <-late.C: // so that the site counts as up
	case <-ctx.Done():
		return nil
	}
	in := transfer.Report{Site: r.site, Session: "one", Free: 1 << 50}
	now := time.Now()
	r.mu.Lock()
	for _, l := range r.holding {
		if len(in.Outcomes) < robotReports {
			in.Outcomes = append(in.Outcomes, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Size: l.Size, Adler: l.Adler, Verified: true, Moved: l.Size,
				Begin: now.Add(-10 * time.Millisecond), End: now})
		}
	}
	r.mu.Unlock()
	if _, err := r.ask.Report(ctx, in); err != nil {
		return err
	}
	r.mu.Lock()
	for _, o := range in.Outcomes {
		delete(r.holding, o.Item)
	}
	r.done += len(in.Outcomes)
	r.mu.Unlock()
	return nil
}
