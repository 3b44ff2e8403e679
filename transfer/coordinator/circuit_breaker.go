package coordinator

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir/transfer"
)

// After how many files in a row, none of which went well, a refusal counts as the
// site's: another one may be of a single file. An answer of 401, or a certificate that
// is not trusted, is the site's at once.
const (
	deniedInRow = 3
	failedInRow = 8
)

// How long a site that refuses is left alone until one file tries again.
const (
	firstTrial   = 5 * time.Second
	longestTrial = 5 * time.Minute
)

// A viewer is a site as who moves files to or from it sees it: the agent of mover, or
// ("") the coordinator. An agent's word counts for what that agent moves.
type viewer struct{ site, mover string }

// A breaker keeps files from a site that refuses whatever it is asked. It is open
// while since is set: one file at a time tries then.
type breaker struct {
	failed map[int64]bool // files since the last one that went well
	since  time.Time
	why    string
	next   time.Time // when a file may try
	wait   time.Duration
	trial  int64 // the file that tried last
	passed int   // files that were passed over since, for one that has not failed
}

// mostPassed is how many files are passed over for one that has not failed.
const mostPassed = 50

// judge makes a fault that is the site's, not the file's, one that uses up nothing,
// and keeps other files from that site. The registry is locked.
func (c *Coordinator) judge(l *activeLease, o transfer.Outcome) transfer.Outcome {
	if o.Fault == "" {
		c.mends(l)
		return o
	}
	if o.At == "" || o.At != l.Source.Site && o.At != l.Dest.Site {
		return o
	}
	certain, row := false, failedInRow
	switch o.Fault {
	case transfer.Denied:
		foreign := o.At != l.mover && c.registry.sites[o.At].Kind == httpKind
		certain, row = foreign && (o.Status == 0 || o.Status == http.StatusUnauthorized), deniedInRow
	case transfer.Transient:
		if o.Status < 500 { // a connection that broke: its pauses are enough
			return o
		}
	default:
		return o
	}
	k := viewer{o.At, l.mover}
	b := c.registry.breakers[k]
	if b == nil {
		b = &breaker{failed: map[int64]bool{}}
		c.registry.breakers[k] = b
	}
	b.failed[o.Item] = true
	now := c.now()
	trial := !b.since.IsZero() && b.trial == o.Item
	switch {
	case trial:
		b.wait, b.trial = min(2*b.wait, longestTrial), 0
	case !b.since.IsZero():
	case certain || len(b.failed) >= row:
		b.since, b.wait = now, firstTrial
		c.log.Warn("a site refuses: its files wait", "site", k.site, "mover", k.mover, "reason", o.Reason)
	default:
		return o
	}
	b.why, b.next, b.passed = o.Reason, now.Add(b.wait), 0
	if certain || !trial { // what one file alone was refused again is that file's after all
		o.Fault = transfer.SiteRefuses
	}
	return o
}

// mends notes that both ends of a copy work. The registry is locked.
func (c *Coordinator) mends(l *activeLease) {
	for _, site := range []string{l.Source.Site, l.Dest.Site} {
		k := viewer{site, l.mover}
		b := c.registry.breakers[k]
		if b == nil {
			continue
		}
		if !b.since.IsZero() {
			c.log.Info("a site takes files again", "site", k.site, "mover", k.mover)
			c.wake.give()
		}
		delete(c.registry.breakers, k)
	}
}

// renewed has a site tried at once: its credentials are others. The registry is locked.
func (c *Coordinator) renewed(site string) {
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

// refusing says why nothing can be moved from or to the sites by a mover now, "" if
// it can. The registry is locked.
func (c *Coordinator) refusing(mover string, sites ...string) string {
	for _, site := range sites {
		if b := c.registry.breakers[viewer{site, mover}]; b != nil && !b.since.IsZero() && c.now().Before(b.next) {
			return fmt.Sprintf("%s has refused all files since %s (%s); it is tried again at %s", site, clockTime(b.since), b.why, clockTime(b.next))
		}
	}
	return ""
}

// passes tells whether a file is not the one to try a site that refuses: it has failed
// there, and another one may not have. The registry is locked.
func (c *Coordinator) passes(item int64, mover string, sites ...string) bool {
	for _, site := range sites {
		b := c.registry.breakers[viewer{site, mover}]
		if b != nil && !b.since.IsZero() && b.failed[item] && b.passed < mostPassed {
			b.passed++
			return true
		}
	}
	return false
}

// attempted notes that a file is on its way: of a site that refuses it is the only one
// until it is known what becomes of it. The registry is locked.
func (c *Coordinator) attempted(item int64, mover string, sites ...string) {
	for _, site := range sites {
		if b := c.registry.breakers[viewer{site, mover}]; b != nil && !b.since.IsZero() {
			b.next, b.trial, b.passed = c.now().Add(b.wait), item, 0
		}
	}
}

// refusals are the sites that refuse, with what is to be said of them. The registry is
// locked.
func (c *Coordinator) refusals() map[string]string {
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
		if all[k.site] == "" || text < all[k.site] {
			all[k.site] = text
		}
	}
	return all
}

// A pair is two sites and a way to copy from one to the other.
type pair struct {
	source, dest string
	mode         transfer.Mode
}

// An inability is that of a pair, which is tried again after a while.
type inability struct {
	why   string
	until time.Time
}

// forgetUnable is when a pair is tried again that could not.
const forgetUnable = 10 * time.Minute

// unable notes that the ends of a lease cannot copy in its way. Where there is another
// one the file goes that way. The registry is locked.
func (c *Coordinator) unable(l *activeLease, o transfer.Outcome) transfer.Outcome {
	c.registry.unable[pair{l.Source.Site, l.Dest.Site, l.Mode}] = inability{o.Reason, c.now().Add(forgetUnable)}
	from, to := c.registry.sites[l.Source.Site], c.registry.sites[l.Dest.Site]
	others := l.want == "" && slices.ContainsFunc([]transfer.Mode{transfer.Pull, transfer.Push, transfer.Third}, func(m transfer.Mode) bool {
		return c.may(m, from, to)
	})
	if others {
		o.Fault = transfer.MoverStopped
	}
	return o
}

// judged looks at how copies ended that are still held: what is a site's fault, and
// what cannot be done in one way.
func (c *Coordinator) judged(from string, all []transfer.Outcome) []transfer.Outcome {
	all = slices.Clone(all)
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for i, o := range all {
		l := c.registry.leases[o.Item]
		if l == nil || l.Epoch != o.Epoch || from != "" && from != l.mover {
			continue
		}
		if o.Fault == transfer.ModeUnsupported {
			all[i] = c.unable(l, o)
			continue
		}
		all[i] = c.judge(l, o)
	}
	return all
}
