package dispatch

import (
	"weir/transfer"
	"weir/transfer/catalog"
)

// A Temporary is a temporary file that a transfer may leave at a site without an agent.
type Temporary struct {
	Site, Path  string
	Item, Epoch int64
}

// temporaryOfLocked returns the temporary file of a lease. ok is false if it has no temporary file,
// or if the site's agent removes it.
func (r *registry) temporaryOfLocked(l *transfer.Lease) (one Temporary, ok bool) {
	if l.Mode == transfer.Check || l.Mode == transfer.Delete || r.sites[l.Dest.Site].Kind == catalog.AgentSite {
		return one, false
	}
	one = Temporary{Site: l.Dest.Site, Item: l.Item, Epoch: l.Epoch, Path: l.TempPath()}
	if l.Mode == transfer.Push && l.Dest.Temp == "" {
		one.Path = transfer.PartName(l.Item, l.Epoch)
	}
	return one, true
}

// Temporaries returns the temporary files of leases.
func (f *Leases) Temporaries(leases []transfer.Lease) (all []Temporary) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range leases {
		if one, ok := r.temporaryOfLocked(&leases[i]); ok {
			all = append(all, one)
		}
	}
	return all
}

// WithoutTemporary returns the leases whose movers report that they renamed or never wrote their temporary files, or that never began.
func (f *Leases) WithoutTemporary(mover string, all []transfer.Outcome) (done []transfer.LeaseID) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range all {
		o := &all[i]
		l := r.leaseLocked(o.ID())
		if l != nil && (l.mover == mover && (o.Unwritten || o.Fault == "" && !o.Existed) || mover == "" && !l.dispatched) {
			if _, ok := r.temporaryOfLocked(&l.Lease); ok {
				done = append(done, o.ID())
			}
		}
	}
	return done
}
