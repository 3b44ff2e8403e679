package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/trust"
	"weir/internal/wire"
	"weir/monitor"
	"weir/transfer"
	"weir/transfer/mover"
)

const (
	reportEvery  = 500 * time.Millisecond // while attempts run: a cancellation takes effect within a second
	idleReport   = 2 * time.Second
	farewell     = 3 * time.Second // time to report the last outcomes when the agent ends
	farOff       = 5 * time.Second // a larger deviation means that the coordinator's clock was set; responses also take time
	mostReported = 120             // samples in one report
	firstWait    = 100 * time.Millisecond
	longestWait  = 5 * time.Second
)

// Run performs the work assigned by the coordinator, until ctx ends. Then copies are interrupted,
// to be resumed later, and Run returns nil. It fails if the coordinator refuses the first
// registration of this site, or if the endpoint fails.
func (a *Agent) Run(ctx context.Context) error {
	asked := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	watch, err := monitor.Start(ctx, nil, monitor.Options{Look: a.samples.look}, a.samples)
	if err != nil {
		return err
	}
	talking, hush := context.WithCancel(context.WithoutCancel(ctx))
	defer hush()
	var loops, talk sync.WaitGroup
	if a.endpoint != nil {
		loops.Go(func() {
			if err := a.endpoint.serve(ctx); err != nil {
				end(fmt.Errorf("endpoint of the site: %w", err))
			}
		})
	}
	a.recallAll(ctx)
	loops.Go(func() { a.work(ctx, end) })
	talk.Go(func() { a.report(talking) })
	<-ctx.Done()
	a.activity.cancelAll(errEnding)
	loops.Wait()
	a.runs.Wait()
	a.lastReport(talking)
	hush()
	talk.Wait()
	a.deregister(context.WithoutCancel(ctx))
	err = watch.Stop()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Cause(asked)) {
		err = errors.Join(cause, err)
	}
	return err
}

// register registers the agent unless the coordinator has accepted its registration.
func (a *Agent) register(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return nil
	}
	if err := a.clock.set(ctx, a.ask); err != nil { // another process may run there, with another clock
		return err
	}
	own := transfer.Register{Site: a.o.Site, Session: a.session, Version: a.o.Version, Slots: a.o.Slots, Free: freeSpace(a.dir),
		Root: a.rootName(), NewRoot: a.o.NewRoot}
	own.Host, _ = os.Hostname()
	own.Holding, _ = a.activity.holding()
	if a.endpoint != nil {
		own.URL, own.Pin = a.endpoint.url, a.endpoint.pin
	}
	w, err := a.ask.Register(a.reach.trace(ctx), own)
	if err != nil {
		return err
	}
	a.reach.learn(ctx, own.URL)
	if a.endpoint != nil {
		if err := a.endpoint.register(w); err != nil {
			return err
		}
	}
	if !a.heard {
		a.log.Info("the coordinator knows this site", "site", a.o.Site, "holds", len(own.Holding))
	}
	a.known, a.heard = true, true
	return nil
}

// answered records whether the coordinator responded, and logs changes. It reports whether further
// requests are useless.
func (a *Agent) answered(err error) (refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusedLocked(err) {
		return true // Run reports the reason
	}
	switch status := wire.Status(err); {
	case err == nil && a.away:
		a.away = false
		a.log.Info("the coordinator answers again")
	case status == http.StatusGone:
		a.known = false
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && !a.away:
		a.away = true
		a.log.Error("the coordinator does not take this agent's token any more: start it again with another one; copies that run go on, "+
			"and what there is to tell is kept", "error", err)
	case status == http.StatusConflict && !a.away:
		a.away = true
		a.log.Warn("the coordinator has another agent in the place of this one: copies go on, and it is asked again", "error", err)
	case err != nil && !a.away && !errors.Is(err, context.Canceled):
		a.away = true
		a.log.Warn("the coordinator does not answer: copies go on, and what there is to tell is kept", "error", err)
	}
	return false
}

// refusedLocked reports whether further attempts are useless: the coordinator has never accepted
// this agent, and has refused it with a reason.
func (a *Agent) refusedLocked(err error) bool {
	status := wire.Status(err)
	return !a.heard && (errors.Is(err, trust.ErrPin) || status >= 400 && status < 500 && status != http.StatusTooManyRequests &&
		status != http.StatusGone)
}

// A backoff is the time to wait before the next request.
type backoff time.Duration

// next waits, longer each time, or until ctx ends.
func (b *backoff) next(ctx context.Context) {
	d := max(time.Duration(*b), firstWait)
	*b = backoff(min(2*d, longestWait))
	pause.For(ctx, d/2+rand.N(d)) // not all agents at the same time
}

// work requests work from the coordinator in a loop, and begins it.
func (a *Agent) work(ctx context.Context, fail context.CancelCauseFunc) {
	var wait backoff
	for ctx.Err() == nil {
		err := a.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		if refused := a.answered(err); refused {
			fail(fmt.Errorf("the coordinator refuses site %s: %w", a.o.Site, err))
			return
		}
		switch {
		case err == nil:
			wait = 0
		case wire.Status(err) != http.StatusGone:
			wait.next(ctx)
		}
	}
}

func (a *Agent) fetch(ctx context.Context) error {
	if err := a.register(ctx); err != nil {
		return err
	}
	ask := transfer.PollRequest{Site: a.o.Site, Session: a.session, Free: freeSpace(a.dir), Scans: a.activity.scanning()}
	all, running := a.activity.holding()
	ask.Holding, ask.Slots = all, max(0, a.o.Slots-running)
	w, err := a.ask.Work(ctx, ask)
	if err != nil {
		return err
	}
	a.activity.cancel(w.Cancel, mover.ErrCancelled)
	a.activity.cancel(w.Lost, errLost)
	a.activity.dropScans(w.Drop)
	for _, l := range w.Leases {
		a.begin(ctx, l)
	}
	for _, s := range w.Scans {
		a.beginScan(ctx, s)
	}
	return nil
}

// report sends reports until ctx ends.
func (a *Agent) report(ctx context.Context) {
	var wait backoff
	for number := int64(1); ctx.Err() == nil; number++ {
		err := a.reportOnce(ctx, number)
		if ctx.Err() != nil {
			return
		}
		a.answered(err)
		if err != nil {
			wait.next(ctx)
			continue
		}
		wait = 0
		every := idleReport
		if _, running := a.activity.movedBytes(); running > 0 {
			every = reportEvery
		}
		due := time.NewTimer(every)
		select {
		case <-a.activity.urgent:
		case <-due.C:
		case <-ctx.Done():
		}
		due.Stop()
	}
}

func (a *Agent) reportOnce(ctx context.Context, number int64) error {
	if err := a.register(ctx); err != nil {
		return err
	}
	if a.clock.stale() {
		if err := a.clock.set(ctx, a.ask); err != nil {
			return err
		}
	}
	r := transfer.Report{Site: a.o.Site, Session: a.session, Number: number, Free: freeSpace(a.dir), Samples: a.samples.waiting(mostReported)}
	a.activity.report(&r)
	r.Parts = a.parts()
	ack, err := a.ask.Report(ctx, r)
	if err != nil {
		return err
	}
	if over := a.activity.acknowledged(&r); len(over) > 0 {
		a.journal.over(over)
	}
	a.samples.acknowledge(r.Samples)
	if off := ack.Now.Sub(a.clock.now()).Abs(); !ack.Now.IsZero() && off > farOff { // the coordinator's clock was set
		if err := a.clock.set(ctx, a.ask); err != nil {
			return err
		}
	}
	a.activity.cancel(ack.Cancel, mover.ErrCancelled)
	a.activity.cancel(ack.Lost, errLost)
	a.activity.dropScans(ack.Drop)
	a.tidy(ack.Over)
	return nil
}

// deregister reports to the coordinator that the agent ends, if the coordinator is available:
// otherwise the site counts as down after a time without reports.
func (a *Agent) deregister(ctx context.Context) {
	a.mu.Lock()
	away := a.away || !a.known
	a.mu.Unlock()
	if away {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	all, _ := a.activity.holding()
	if err := a.ask.Deregister(ctx, transfer.Deregister{Site: a.o.Site, Session: a.session, Holding: all}); err != nil {
		a.log.Warn("the coordinator does not know that this site goes", "error", err)
	}
}

// lastReport waits for a short time until the reporter has sent all outcomes: outcomes that cannot
// be sent stay in the journal.
func (a *Agent) lastReport(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for {
		if all, _ := a.activity.holding(); len(all) == 0 {
			return
		}
		a.mu.Lock()
		away := a.away || !a.known
		a.mu.Unlock()
		if away || !pause.For(ctx, 10*time.Millisecond) {
			return
		}
	}
}
