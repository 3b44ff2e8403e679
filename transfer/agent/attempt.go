package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/durable"
	"weir/transfer"
	"weir/transfer/mover"
)

// Causes that cancel an attempt, beside mover.ErrCancelled: its part stays.
var (
	errEnding = errors.New("the agent is ending")
	errLost   = errors.New("the coordinator has given the file to another attempt")
	errNewer  = errors.New("a newer attempt at the same file has begun")
)

// begin starts an attempt, unless the agent has it already.
func (a *Agent) begin(ctx context.Context, l transfer.Lease) {
	mine, cancel := context.WithCancelCause(ctx)
	r := a.activity.take(l, cancel)
	if r == nil {
		cancel(nil)
		return
	}
	a.journal.begin(l)
	a.runs.Go(func() {
		defer cancel(nil)
		a.attempt(mine, r, func() transfer.Outcome {
			if ours(l.Source.Path) || ours(l.Dest.Path) {
				now := a.clock.now()
				return transfer.Outcome{Begin: now, End: now, Fault: transfer.Denied, Reason: "names that begin with .weir are the agent's own: " +
					"they are not copied"}
			}
			if !a.mounted() {
				now := a.clock.now()
				return transfer.Outcome{Begin: now, End: now, Fault: transfer.Throttled, After: time.Minute, Reason: a.notMounted().Error()}
			}
			return a.mover.Do(mine, l, func(p transfer.Progress) { a.activity.progress(r, p) })
		})
	})
}

// ours reports whether a path leads to a file that belongs to the agent and not to the site, such
// as the key of its endpoint. The importer and the endpoint also skip such files.
func ours(path string) bool {
	return strings.HasPrefix(path, ".weir") || strings.Contains(path, "/.weir")
}

// attempt runs do when it is its turn, and reports the outcome.
func (a *Agent) attempt(ctx context.Context, r *run, do func() transfer.Outcome) {
	var out transfer.Outcome
	if way := linkOf(&r.lease); a.scheduler.enter(ctx, way, r.lease.AtOnce) {
		a.activity.progress(r, transfer.Progress{Stage: transfer.Moving})
		out = do()
		a.scheduler.leave(way)
	} else {
		now := a.clock.now()
		out = transfer.Outcome{Begin: now, End: now, Fault: transfer.RequestCancelled}
	}
	out.Item, out.Epoch = r.lease.Item, r.lease.Epoch
	if out.Fault != "" && ctx.Err() != nil {
		out.Fault, out.Reason = a.broken(context.Cause(ctx))
	}
	a.journal.end(out, func() { a.activity.end(r, out) })
}

// broken returns the class and the reason for an attempt that was cancelled with cause.
func (a *Agent) broken(cause error) (transfer.ErrorClass, string) {
	switch {
	case errors.Is(cause, mover.ErrCancelled):
		return transfer.RequestCancelled, cause.Error()
	case errors.Is(cause, errLost), errors.Is(cause, errNewer):
		return transfer.LeaseLost, cause.Error()
	}
	return transfer.MoverStopped, fmt.Sprintf("the agent of site %s was ended", a.o.Site)
}

// recallAll handles the attempts left by an earlier process: outcomes are reported, and for
// attempts that it did not end, recall determines the outcome.
func (a *Agent) recallAll(ctx context.Context) {
	for _, m := range a.left {
		if m.outcome != nil {
			a.activity.keep(*m.outcome)
			continue
		}
		mine, cancel := context.WithCancelCause(ctx)
		l := *m.lease
		r := a.activity.take(l, cancel)
		if r == nil { // there was a later attempt at the same file
			cancel(nil)
			a.journal.over([]transfer.LeaseID{holdOf(&l)})
			continue
		}
		a.runs.Go(func() {
			defer cancel(nil)
			a.attempt(mine, r, func() transfer.Outcome { return a.recall(mine, l) })
		})
	}
	a.left = nil
}

// recall determines the outcome of an attempt whose process was killed: if the file is at its
// destination, it had been renamed; if not, the existing part is resumed by the next attempt.
func (a *Agent) recall(ctx context.Context, l transfer.Lease) transfer.Outcome {
	out := transfer.Outcome{
		Begin: a.clock.now(), Fault: transfer.LeaseLost,
		Reason: fmt.Sprintf("the agent of site %s ended in the middle and was started again", a.o.Site),
	}
	if l.Mode == transfer.Pull && l.Adler != "" {
		look := l
		look.Mode, look.Source = transfer.Check, l.Dest
		if a.mover.Do(ctx, look, func(transfer.Progress) {}).Fault == "" && a.settled(l.Dest.Path) {
			out.Fault, out.Reason, out.Size, out.Adler, out.Verified = "", "", l.Size, l.Adler, true
		}
	}
	out.End = a.clock.now()
	return out
}

// settled makes the name of a file survive a loss of power, as the process that renamed it may have
// been killed before it did so.
func (a *Agent) settled(name string) bool {
	err := durable.SyncFolder(filepath.Join(a.o.Root, filepath.FromSlash(path.Dir(name))))
	if err != nil {
		a.log.Warn("a file's folder could not be written to the disk: the file is copied again", "path", name, "error", err)
	}
	return err == nil
}
