package direct

import (
	"context"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// Start reports the copies as queued, and requests each of them in a goroutine of its own.
func (in *injector) Start(ctx context.Context, copies []inject.Copy) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, c := range copies {
		if !in.start(c) {
			return errClosed
		}
	}
	return nil
}

// start begins a copy. It returns false if the injector is closed.
func (in *injector) start(c inject.Copy) bool {
	ctx, cancel := context.WithCancelCause(in.base)
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		cancel(nil)
		return false
	}
	in.flights[c.ID] = cancel
	in.copies.Add(1)
	in.mu.Unlock()
	in.report(inject.Report{ID: c.ID, State: inject.Queued})
	go func() {
		defer in.copies.Done()
		in.report(in.run(ctx, c))
		in.mu.Lock()
		delete(in.flights, c.ID)
		in.mu.Unlock()
		cancel(nil)
	}()
	return true
}

// run makes a copy and returns its final report.
func (in *injector) run(ctx context.Context, c inject.Copy) inject.Report {
	l := in.links[c.Link]
	used := [2]credential{l.from.credential(), l.to.credential()}
	p := &progress{in: in, id: c.ID, begun: time.Now()}
	op := storage.Op{Kind: storage.Copy, Source: c.Source.Path, Path: c.Dest, Size: c.Source.Size,
		Timeout: time.Duration(in.config.Challenge.Timeout)}
	client := l.client()
	_, err := client.Do(ctx, &op, p)
	l.put(client)
	cancelled := ctx.Err() != nil
	if p.opened.IsZero() && !cancelled {
		in.health.answered(time.Since(p.begun), err)
	}
	r := inject.Report{ID: c.ID, State: inject.Done, Moved: p.moved, Begin: p.opened, Label: l.SciTag > 0 && !p.opened.IsZero()}
	switch {
	case err == nil:
		l.from.accepted.note(used[0])
		l.to.accepted.note(used[1])
		r.Moved = max(p.moved, c.Source.Size)
	case cancelled:
		r.State, r.Class, r.Reason = inject.Cancelled, storage.Canceled, service.Line(context.Cause(ctx).Error())
	default:
		r.State, r.Class = inject.Failed, classify(err)
		r.Site = l.blame(err, !p.opened.IsZero())
		r.Reason = service.Line(without(l.reason(err, r.Site), used))
		r.Expired, r.Exists = l.expired(err, r.Site, used), exists(err)
	}
	return r
}

// report passes a report on. Reports of a copy come from one goroutine at a time.
func (in *injector) report(r inject.Report) {
	in.reports.Lock()
	defer in.reports.Unlock()
	r.At = time.Now()
	in.config.Report(r)
}

// Cancel ends copies: their connections are closed, with which the sites give them up.
func (in *injector) Cancel(_ context.Context, ids []int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range ids {
		if cancel := in.flights[id]; cancel != nil {
			cancel(errCancelled)
		}
	}
	return nil
}

// Resume reports all copies as failed: they ended with the connections of the process that requested
// them.
func (in *injector) Resume(ctx context.Context, copies []inject.Copy) error {
	for _, c := range copies {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		in.report(inject.Report{ID: c.ID, State: inject.Failed, Class: storage.Canceled,
			Reason: "the process that requested the copy was killed, and the copy ended with its connection"})
	}
	return nil
}

// A progress reports the progress of a copy. It implements storage.Progress.
type progress struct {
	in     *injector
	id     int64
	begun  time.Time
	opened time.Time // when the sites had accepted the request; zero: not yet
	moved  int64
}

// Reached implements storage.Progress.
func (p *progress) Reached(phase storage.Phase) {
	if phase == storage.Opened && p.opened.IsZero() {
		p.opened = time.Now()
		p.in.health.answered(p.opened.Sub(p.begun), nil)
	}
}

// Moved implements storage.Progress.
func (p *progress) Moved(n int) {
	p.moved += int64(n)
	p.in.report(inject.Report{ID: p.id, State: inject.Running, Moved: p.moved})
}

// ServedBy implements storage.Progress.
func (*progress) ServedBy(string) {}
