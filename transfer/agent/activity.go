package agent

import (
	"context"
	"slices"
	"sync"

	"weir/transfer"
)

// A run is an attempt that is running, or waits for its turn.
type run struct {
	lease    transfer.Lease
	cancel   context.CancelCauseFunc
	progress transfer.Progress
}

// activity holds the work of an agent: running attempts, and the outcomes and scan results that the
// coordinator has not acknowledged yet.
type activity struct {
	mu    sync.Mutex
	runs  map[transfer.LeaseID]*run
	last  map[int64]*run // the latest attempt at each item
	done  []transfer.Outcome
	ended map[transfer.LeaseID]bool // the attempts in done
	found []transfer.ScanResult
	scans map[int64]context.CancelFunc
	moved int64 // bytes by all attempts, including the ended attempts

	parts  chan struct{} // has an element for each part of a scan that is not acknowledged
	urgent chan struct{} // signals that there is something to report at once
}

func newActivity() *activity {
	return &activity{
		runs: map[transfer.LeaseID]*run{}, last: map[int64]*run{}, ended: map[transfer.LeaseID]bool{}, scans: map[int64]context.CancelFunc{},
		parts: make(chan struct{}, mostParts), urgent: make(chan struct{}, 1),
	}
}

// poke wakes the goroutine that waits for c.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take adds an attempt. It returns nil if the agent already has this attempt or a later attempt at
// the same file. An earlier attempt is cancelled.
func (h *activity) take(l transfer.Lease, cancel context.CancelCauseFunc) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := holdOf(&l)
	other := h.last[l.Item]
	if h.ended[id] || other != nil && other.lease.Epoch >= l.Epoch {
		return nil
	}
	if other != nil {
		other.cancel(errNewer)
	}
	r := &run{lease: l, cancel: cancel, progress: transfer.Progress{Item: l.Item, Epoch: l.Epoch}}
	h.runs[id], h.last[l.Item] = r, r
	poke(h.urgent) // reports are more frequent now
	return r
}

// progress updates the progress of an attempt.
func (h *activity) progress(r *run, p transfer.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if more := p.Moved - r.progress.Moved; more > 0 {
		h.moved += more
	}
	r.progress.Stage, r.progress.Moved = p.Stage, max(p.Moved, r.progress.Moved)
}

// end replaces a run by its outcome, which is to be reported.
func (h *activity) end(r *run, o transfer.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if more := o.Moved - r.progress.Moved; more > 0 {
		h.moved += more
	}
	delete(h.runs, holdOf(&r.lease))
	if h.last[r.lease.Item] == r {
		delete(h.last, r.lease.Item)
	}
	h.addLocked(o)
	poke(h.urgent)
}

// addLocked adds an outcome to the outcomes to be reported.
func (h *activity) addLocked(o transfer.Outcome) {
	h.done = append(h.done, o)
	h.ended[transfer.LeaseID{Item: o.Item, Epoch: o.Epoch}] = true
}

// keep adds an outcome of an earlier process.
func (h *activity) keep(o transfer.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addLocked(o)
}

// has reports whether an attempt at a file is running or waiting.
func (h *activity) has(item int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[item] != nil
}

// holding returns all attempts of the agent, with the ended attempts that are not acknowledged yet,
// and the number of attempts that are running or waiting.
func (h *activity) holding() (all []transfer.LeaseID, running int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.runs {
		all = append(all, id)
	}
	for _, o := range h.done {
		all = append(all, transfer.LeaseID{Item: o.Item, Epoch: o.Epoch})
	}
	return all, len(h.runs)
}

// cancel cancels attempts.
func (h *activity) cancel(which []transfer.LeaseID, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range which {
		if r := h.runs[id]; r != nil {
			r.cancel(why)
		}
	}
}

// cancelAll cancels all attempts and scans.
func (h *activity) cancelAll(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		r.cancel(why)
	}
	for _, cancel := range h.scans {
		cancel()
	}
}

// The maximum numbers of outcomes and of scan results in a report.
const (
	mostOutcomes = 2000
	mostFound    = 4
)

// report adds the progress, outcomes and scan results to r.
func (h *activity) report(r *transfer.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range h.runs {
		r.Progress = append(r.Progress, run.progress)
	}
	r.Outcomes = slices.Clone(h.done[:min(len(h.done), mostOutcomes)])
	r.Found = slices.Clone(h.found[:min(len(h.found), mostFound)])
}

// acknowledged removes the outcomes and scan results of an acknowledged report, and returns the
// attempts that are over and need not be kept any more.
func (h *activity) acknowledged(r *transfer.Report) (over []transfer.LeaseID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range r.Outcomes { // only the reporter removes outcomes: these are the first
		id := transfer.LeaseID{Item: o.Item, Epoch: o.Epoch}
		over = append(over, id)
		delete(h.ended, id)
	}
	h.done = slices.Delete(h.done, 0, len(r.Outcomes))
	h.found = slices.Delete(h.found, 0, len(r.Found))
	for _, f := range r.Found {
		<-h.parts
		if f.Done {
			delete(h.scans, f.Scan)
		}
	}
	if len(h.done) > 0 || len(h.found) > 0 {
		poke(h.urgent)
	}
	return over
}

// movedBytes returns the number of bytes that all attempts have moved so far, and the number of
// attempts that are running or waiting.
func (h *activity) movedBytes() (moved int64, running int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved, len(h.runs)
}

// beginScan adds a scan; it returns false if the scan is already running.
func (h *activity) beginScan(id int64, cancel context.CancelFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scans[id] != nil {
		return false
	}
	h.scans[id] = cancel
	return true
}

// dropScans cancels scans.
func (h *activity) dropScans(ids []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if cancel := h.scans[id]; cancel != nil {
			cancel()
			delete(h.scans, id)
		}
	}
}

// scanning returns the scans that are running, or whose end was not acknowledged.
func (h *activity) scanning() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []int64
	for id := range h.scans {
		ids = append(ids, id)
	}
	return ids
}
