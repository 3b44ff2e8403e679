package dispatch

import (
	"fmt"
	"time"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/queue"
)

const orphanRetry = 10 * time.Second // after a destination did not respond

// Orphans returns the third-party copies of a former coordinator.
func (f *Leases) Orphans() (list []*ActiveLease) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if l.mover == "" && l.stop == nil {
			list = append(list, l)
		}
	}
	return list
}

// Missing returns the leases that have expired in the queue and for which no search is under way.
// It adds leases that only the database has.
func (f *Leases) Missing(list []queue.ExpiredLease) (all []*ActiveLease) {
	r := f.r
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range list {
		l := r.leaseLocked(m.ID())
		if l == nil {
			l = &ActiveLease{Lease: m.Lease, mover: moverOf(m.Lease), dispatched: true, heard: m.Heard}
			r.addLeaseLocked(l)
		}
		if l.stop != nil || l.retry > 0 || now.Before(r.missed[m.Item]) {
			continue // it runs here, or a search is under way
		}
		r.missed[m.Item] = now.Add(orphanRetry)
		all = append(all, l)
	}
	for item := range r.missed {
		if r.leases[item] == nil {
			delete(r.missed, item)
		}
	}
	return all
}

// RetryOrphan returns the time to the next search for the file of a lease. current is false if the lease has ended.
func (f *Leases) RetryOrphan(l *ActiveLease) (wait time.Duration, current bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases[l.Item] != l {
		return 0, false
	}
	l.retry = min(max(2*l.retry, orphanRetry/64), orphanRetry)
	return l.retry, true
}

// Lost returns the outcome of a lease whose mover has left, and the URL of its destination. current is false if the lease has
// ended.
func (f *Leases) Lost(l *ActiveLease) (o transfer.Outcome, address string, current bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.failedLocked(l, transfer.LeaseLost, fmt.Sprintf("its mover has stopped or has not reported since %s", say.UTC(l.heard)))
	return o, r.sites[l.Dest.Site].URL, r.leases[l.Item] == l
}
