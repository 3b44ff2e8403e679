package dispatch

import (
	"slices"

	"weir/transfer"
)

// A Scan is a folder that an agent lists.
type Scan struct {
	transfer.ScanState
	Site, Dataset, Path string
}

// OpenScans returns the number of scans that are not done.
func (f *Agents) OpenScans() int {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.scans)
}

// AddScan adds a scan, and wakes its agent.
func (f *Agents) AddScan(s *Scan) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scans[s.ID] = s
	if a := r.agents[s.Site]; a != nil {
		a.wake()
	}
}

// Scan returns a scan that is not done.
func (f *Agents) Scan(id int64) (_ Scan, known bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.scans[id]
	if s == nil {
		return Scan{}, false
	}
	return *s, true
}

// SetScan records the progress of a scan.
func (f *Agents) SetScan(s Scan) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Done {
		delete(r.scans, s.ID)
	} else if r.scans[s.ID] != nil {
		r.scans[s.ID] = &s
	}
}

// scansOfLocked returns the scans that an agent has not received yet, and the scans that it has to
// abort.
func (r *registry) scansOfLocked(a *Agent) (begin []transfer.Scan, drop []int64) {
	for _, s := range r.scans {
		if s.Site == a.Site && !slices.Contains(a.scans, s.ID) {
			begin = append(begin, transfer.Scan{ID: s.ID, Path: s.Path})
			a.scans = append(a.scans, s.ID)
		}
	}
	a.scans = slices.DeleteFunc(a.scans, func(id int64) bool {
		s := r.scans[id]
		over := s == nil || s.Site != a.Site
		if over {
			drop = append(drop, id)
		}
		return over
	})
	return begin, drop
}
