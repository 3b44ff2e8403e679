package dispatch

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog"
)

// After this many different files in a row a refusal counts as the site's: a single refusal may
// concern a single file. A 401, or a certificate that is not trusted, counts as the site's at once.
const (
	deniedInRow = 3
	failedInRow = 8
)

// The time between two trials of a site that refuses requests.
const (
	firstTrial   = 5 * time.Second
	longestTrial = 5 * time.Minute
)

// mostSkipped is the maximum number of files that failed before and are skipped in favor of a file
// that did not fail.
const mostSkipped = 50

// A viewer is a site from the point of view of the mover of files to or from it: the agent of
// mover, or ("") the coordinator. The reports of an agent about a site count only for the transfers
// of that agent.
type viewer struct{ site, mover string }

// A breaker keeps files from a site that refuses every request. While it is open, one file at a
// time is tried.
type breaker struct {
	failed  map[int64]bool // files since the last success
	since   time.Time      // zero: closed
	why     string
	next    time.Time // of the next trial
	wait    time.Duration
	trial   int64 // the file that tried last
	skipped int   // files since then, in favor of a file that has not failed
}

// breakerLocked returns the open breaker of a site, or nil if it is closed.
func (r *registry) breakerLocked(site, mover string) *breaker {
	if b := r.breakers[viewer{site, mover}]; b != nil && !b.since.IsZero() {
		return b
	}
	return nil
}

// Classify reclassifies outcomes of active leases: as failures of a site, which use up no try, or as
// modes that are not supported. It opens and closes breakers.
func (f *Leases) Classify(from string, all []transfer.Outcome) []transfer.Outcome {
	r := f.r
	all = slices.Clone(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range all {
		o := &all[i]
		l := r.leaseLocked(o.ID())
		switch {
		case l == nil || from != "" && from != l.mover:
		case o.Fault == transfer.ModeUnsupported:
			r.classifyModeLocked(l, o)
		case o.Fault == "":
			r.closeBreakersLocked(l)
		case o.At != "" && (o.At == l.Source.Site || o.At == l.Dest.Site):
			r.classifyFailureLocked(l, o)
		}
	}
	return all
}

// classifyFailureLocked decides whether a failure is the site's.
func (r *registry) classifyFailureLocked(l *ActiveLease, o *transfer.Outcome) {
	certain, row := false, failedInRow
	switch {
	case o.Fault == transfer.Denied && l.Job != "": // each job has credentials of its own
		return
	case o.Fault == transfer.Denied:
		foreign := o.At != l.mover && r.sites[o.At].Kind != catalog.AgentSite
		certain, row = foreign && (o.Status == 0 || o.Status == http.StatusUnauthorized), deniedInRow
	case o.Fault != transfer.Transient || o.Status < 500: // for broken connections the pauses are enough
		return
	}
	k := viewer{o.At, l.mover}
	b := r.breakers[k]
	if b == nil {
		b = &breaker{failed: map[int64]bool{}}
		r.breakers[k] = b
	}
	b.failed[o.Item] = true
	open := !b.since.IsZero()
	trial := open && b.trial == o.Item
	switch {
	case trial:
		b.wait, b.trial = min(2*b.wait, longestTrial), 0
	case open:
	case certain || len(b.failed) >= row:
		b.since, b.wait = r.now(), firstTrial
		r.log.Warn("site refuses requests; its files wait", "site", k.site, "mover", k.mover, "reason", o.Reason)
	default:
		return
	}
	b.why, b.next, b.skipped = o.Reason, r.now().Add(b.wait), 0
	if certain || !trial { // if a single file is refused again, the refusal counts for this file only
		o.Fault = transfer.SiteRefuses
	}
}

// closeBreakersLocked records that both ends of a transfer work.
func (r *registry) closeBreakersLocked(l *ActiveLease) {
	for _, site := range []string{l.Source.Site, l.Dest.Site} {
		if r.breakerLocked(site, l.mover) != nil {
			r.log.Info("site accepts requests again", "site", site, "mover", l.mover)
			r.wake()
		}
		delete(r.breakers, viewer{site, l.mover})
	}
}

// resetBreakersLocked allows transfers from and to a site at once, because its credentials have
// changed.
func (r *registry) resetBreakersLocked(site string) {
	for k := range r.breakers {
		if k.site == site {
			delete(r.breakers, k)
		}
	}
	for k := range r.unable {
		if k.source == site || k.dest == site {
			delete(r.unable, k)
		}
	}
}

// blockedLocked returns the reason why a mover may not use the sites now, or "" if it may use them.
func (r *registry) blockedLocked(mover string, sites ...string) string {
	for _, site := range sites {
		if b := r.breakerLocked(site, mover); b != nil && r.now().Before(b.next) {
			return fmt.Sprintf("%s has refused all files since %s (%s); it is tried again at %s", site, say.UTC(b.since), b.why, say.UTC(b.next))
		}
	}
	return ""
}

// skipLocked reports whether a file must not be the trial file of a site that refuses requests: it
// has failed there, and another file may succeed.
func (r *registry) skipLocked(item int64, mover string, sites ...string) bool {
	for _, site := range sites {
		if b := r.breakerLocked(site, mover); b != nil && b.failed[item] && b.skipped < mostSkipped {
			b.skipped++
			return true
		}
	}
	return false
}

// beginTrialLocked records that a file is dispatched: if a site refuses requests, no other file is
// dispatched until the outcome of this file is known.
func (r *registry) beginTrialLocked(item int64, mover string, sites ...string) {
	for _, site := range sites {
		if b := r.breakerLocked(site, mover); b != nil {
			b.next, b.trial, b.skipped = r.now().Add(b.wait), item, 0
		}
	}
}

// refusalsLocked returns the sites that refuse requests, with a sentence.
func (r *registry) refusalsLocked() map[string]string {
	all := map[string]string{}
	for k, b := range r.breakers {
		if b.since.IsZero() {
			continue
		}
		who := "the coordinator"
		if k.mover != "" {
			who = "the agent of " + k.mover
		}
		text := fmt.Sprintf("it has refused all files of %s since %s: %s", who, say.UTC(b.since), b.why)
		all[k.site] = min(text, cmp.Or(all[k.site], text))
	}
	return all
}

// A pair is two sites and a mode.
type pair struct {
	source, dest string
	mode         transfer.Mode
}

// An inability is the reason why a pair does not support its mode. The mode is tried again after a
// while.
type inability struct {
	why   string
	until time.Time
}

// retryUnsupported is the time after which a mode that two sites did not support is tried again.
const retryUnsupported = 10 * time.Minute

// classifyModeLocked records that the ends of a lease do not support its mode. If another mode is
// possible, the file is tried in that mode.
func (r *registry) classifyModeLocked(l *ActiveLease, o *transfer.Outcome) {
	r.noteUnsupportedLocked(&l.Lease, o.Reason)
	from, to := r.sites[l.Source.Site], r.sites[l.Dest.Site]
	if l.want == "" && slices.ContainsFunc(allModes(), func(m transfer.Mode) bool {
		_, problem := r.eligibleLocked(m, from, to)
		return problem == "" && r.unsupportedLocked(m, from, to) == ""
	}) {
		o.Fault = transfer.MoverStopped
	}
}

// noteUnsupportedLocked records that the ends of a lease do not support its mode.
func (r *registry) noteUnsupportedLocked(l *transfer.Lease, why string) {
	r.unable[pair{l.Source.Site, l.Dest.Site, l.Mode}] = inability{why, r.now().Add(retryUnsupported)}
}

// unsupportedLocked returns the reason why two sites do not support a mode, or "" if they may
// support it.
func (r *registry) unsupportedLocked(m transfer.Mode, from, to catalog.Site) string {
	if x := r.unable[pair{from.Name, to.Name, m}]; r.now().Before(x.until) {
		return x.why
	}
	return ""
}

// NoteUnsupported records that the ends of a lease do not support its mode.
func (f *Leases) NoteUnsupported(l *transfer.Lease, why string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteUnsupportedLocked(l, why)
}

// Refusals returns the sites that refuse requests, with a sentence.
func (f *Sites) Refusals() map[string]string {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusalsLocked()
}

// Blocked returns the reason why the coordinator may not use a site now, or "" if it may use it.
func (f *Sites) Blocked(site string) string {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blockedLocked("", site)
}
