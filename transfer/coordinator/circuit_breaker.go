package coordinator

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir/transfer"
	"weir/transfer/catalog"
)

// After this many different files in a row a refusal counts as the site's: another one may concern a
// single file. A 401, or a certificate that is not trusted, is the site's at once.
const (
	deniedInRow = 3
	failedInRow = 8
)

// The time between two trials of a site that refuses requests.
const (
	firstTrial   = 5 * time.Second
	longestTrial = 5 * time.Minute
)

// mostSkipped is how many files that failed before are skipped in favor of one that did not.
const mostSkipped = 50

// A viewer is a site as seen by whoever transfers files to or from it: the agent of mover, or ("")
// the coordinator. What an agent says of a site counts only for what that agent transfers.
type viewer struct{ site, mover string }

// A breaker keeps files from a site that refuses every request. While it is open one file at a time
// is tried.
type breaker struct {
	failed  map[int64]bool // files since the last success
	since   time.Time      // zero: closed
	why     string
	next    time.Time // of the next trial
	wait    time.Duration
	trial   int64 // the file that tried last
	skipped int   // files since then, in favor of one that has not failed
}

// breakerLocked returns the open breaker of a site, nil if it is closed.
func (r *registry) breakerLocked(site, mover string) *breaker {
	if b := r.breakers[viewer{site, mover}]; b != nil && !b.since.IsZero() {
		return b
	}
	return nil
}

// classify reclassifies outcomes of active leases: as failures of a site, which use up no try, or as
// modes that are not supported. It opens and closes breakers.
func (c *Coordinator) classify(from string, all []transfer.Outcome) []transfer.Outcome {
	all = slices.Clone(all)
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for i := range all {
		o := &all[i]
		l := c.registry.leaseLocked(o.ID())
		switch {
		case l == nil || from != "" && from != l.mover:
		case o.Fault == transfer.ModeUnsupported:
			c.classifyModeLocked(l, o)
		case o.Fault == "":
			c.closeBreakersLocked(l)
		case o.At != "" && (o.At == l.Source.Site || o.At == l.Dest.Site):
			c.classifyFailureLocked(l, o)
		}
	}
	return all
}

// classifyFailureLocked decides whether a failure is the site's.
func (c *Coordinator) classifyFailureLocked(l *activeLease, o *transfer.Outcome) {
	certain, row := false, failedInRow
	switch {
	case o.Fault == transfer.Denied && l.Job != "": // each job has credentials of its own
		return
	case o.Fault == transfer.Denied:
		foreign := o.At != l.mover && c.registry.sites[o.At].Kind != agentKind
		certain, row = foreign && (o.Status == 0 || o.Status == http.StatusUnauthorized), deniedInRow
	case o.Fault != transfer.Transient || o.Status < 500: // for broken connections the pauses are enough
		return
	}
	k := viewer{o.At, l.mover}
	b := c.registry.breakers[k]
	if b == nil {
		b = &breaker{failed: map[int64]bool{}}
		c.registry.breakers[k] = b
	}
	b.failed[o.Item] = true
	open := !b.since.IsZero()
	trial := open && b.trial == o.Item
	switch {
	case trial:
		b.wait, b.trial = min(2*b.wait, longestTrial), 0
	case open:
	case certain || len(b.failed) >= row:
		b.since, b.wait = c.now(), firstTrial
		c.log.Warn("site refuses requests; its files wait", "site", k.site, "mover", k.mover, "reason", o.Reason)
	default:
		return
	}
	b.why, b.next, b.skipped = o.Reason, c.now().Add(b.wait), 0
	if certain || !trial { // a single file that is refused again has failed itself
		o.Fault = transfer.SiteRefuses
	}
}

// closeBreakersLocked notes that both ends of a transfer work.
func (c *Coordinator) closeBreakersLocked(l *activeLease) {
	for _, site := range []string{l.Source.Site, l.Dest.Site} {
		if c.registry.breakerLocked(site, l.mover) != nil {
			c.log.Info("site accepts requests again", "site", site, "mover", l.mover)
			c.wake.broadcast()
		}
		delete(c.registry.breakers, viewer{site, l.mover})
	}
}

// resetBreakersLocked has a site tried at once, because its credentials have changed.
func (c *Coordinator) resetBreakersLocked(site string) {
	for k := range c.registry.breakers {
		if k.site == site {
			delete(c.registry.breakers, k)
		}
	}
	for k := range c.registry.unable {
		if k.source == site || k.dest == site {
			delete(c.registry.unable, k)
		}
	}
}

// blockedLocked says why a mover may not use the sites now, "" if it may.
func (c *Coordinator) blockedLocked(mover string, sites ...string) string {
	for _, site := range sites {
		if b := c.registry.breakerLocked(site, mover); b != nil && c.now().Before(b.next) {
			return fmt.Sprintf("%s has refused all files since %s (%s); it is tried again at %s", site, clockTime(b.since), b.why, clockTime(b.next))
		}
	}
	return ""
}

// skipLocked reports whether a file is not the one to try a site that refuses requests: it has failed
// there, and another one may not have.
func (c *Coordinator) skipLocked(item int64, mover string, sites ...string) bool {
	for _, site := range sites {
		if b := c.registry.breakerLocked(site, mover); b != nil && b.failed[item] && b.skipped < mostSkipped {
			b.skipped++
			return true
		}
	}
	return false
}

// beginTrialLocked notes that a file is dispatched: for a site that refuses requests it is the only one
// until its outcome is known.
func (c *Coordinator) beginTrialLocked(item int64, mover string, sites ...string) {
	for _, site := range sites {
		if b := c.registry.breakerLocked(site, mover); b != nil {
			b.next, b.trial, b.skipped = c.now().Add(b.wait), item, 0
		}
	}
}

// refusalsLocked returns the sites that refuse requests, with a sentence.
func (c *Coordinator) refusalsLocked() map[string]string {
	all := map[string]string{}
	for k, b := range c.registry.breakers {
		if b.since.IsZero() {
			continue
		}
		who := "the coordinator"
		if k.mover != "" {
			who = "the agent of " + k.mover
		}
		text := fmt.Sprintf("it has refused all files of %s since %s: %s", who, clockTime(b.since), b.why)
		all[k.site] = min(text, cmp.Or(all[k.site], text))
	}
	return all
}

// A pair is two sites and a mode.
type pair struct {
	source, dest string
	mode         transfer.Mode
}

// An inability says why a pair does not support its mode. It is tried again after a while.
type inability struct {
	why   string
	until time.Time
}

// retryUnsupported is the time after which a mode that two sites did not support is tried again.
const retryUnsupported = 10 * time.Minute

// classifyModeLocked notes that the ends of a lease do not support its mode. If there is another mode the
// file is tried in that one.
func (c *Coordinator) classifyModeLocked(l *activeLease, o *transfer.Outcome) {
	c.noteUnsupportedLocked(&l.Lease, o.Reason)
	from, to := c.registry.sites[l.Source.Site], c.registry.sites[l.Dest.Site]
	if l.want == "" && slices.ContainsFunc(allModes(), func(m transfer.Mode) bool {
		_, problem := c.eligibleLocked(m, from, to)
		return problem == "" && c.unsupportedLocked(m, from, to) == ""
	}) {
		o.Fault = transfer.MoverStopped
	}
}

// noteUnsupportedLocked notes that the ends of a lease do not support its mode.
func (c *Coordinator) noteUnsupportedLocked(l *transfer.Lease, why string) {
	c.registry.unable[pair{l.Source.Site, l.Dest.Site, l.Mode}] = inability{why, c.now().Add(retryUnsupported)}
}

// unsupportedLocked says why two sites do not support a mode, "" if they may.
func (c *Coordinator) unsupportedLocked(m transfer.Mode, from, to catalog.Site) string {
	if x := c.registry.unable[pair{from.Name, to.Name, m}]; c.now().Before(x.until) {
		return x.why
	}
	return ""
}
