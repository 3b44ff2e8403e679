package dispatch

import (
	"fmt"
	"net/url"
	"time"

	"weir/internal/say"
	"weir/transfer/catalog"
	"weir/transfer/fts"
)

// The statuses of bans.
const (
	BanCancels = "CANCEL"  // waiting files are cancelled, and new files refused
	BanWaits   = "WAIT"    // files wait, and new files are refused
	BanAccepts = "WAIT_AS" // files wait, and so do new files
)

// A Ban keeps new copies from a storage element, or requests from a user.
type Ban struct {
	Kind, Name, Status, Message, By string
	Until                           time.Time // when a ban that lets files wait begins to cancel them; zero: never
	Made                            time.Time
}

// The kinds of bans.
const (
	BanSE = "se"
	BanDN = "dn"
)

// Why returns the ban with its author and reason.
func (b Ban) Why() string {
	text := fmt.Sprintf("%s is banned by %s since %s", b.Name, b.By, say.UTC(b.Made))
	if b.Message != "" {
		text += " (" + b.Message + ")"
	}
	return text
}

// bannedAsLocked returns the ban of a site, which contains its name or the storage element of its
// endpoint.
func (r *registry) bannedAsLocked(s catalog.Site) (Ban, bool) {
	if len(r.bans) == 0 {
		return Ban{}, false
	}
	se := r.elementLocked(s.Name)
	for _, b := range r.bans {
		if b.Kind == BanSE && (b.Name == s.Name || b.Name == se) {
			return b, true
		}
	}
	return Ban{}, false
}

// Ban returns the ban of a site.
func (f *Sites) Ban(site string) (Ban, bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bannedAsLocked(r.sites[site])
}

// SetBans replaces all bans.
func (f *Sites) SetBans(all []Ban) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bans = all
}

// Bans returns all bans. Callers do not change them.
func (f *Sites) Bans() []Ban {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bans
}

// Banned returns the bans by site; each round of dispatching uses them.
func (f *Sites) Banned() map[string]Ban {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bans) == 0 {
		return nil
	}
	all := map[string]Ban{}
	for _, s := range r.sites {
		if b, banned := r.bannedAsLocked(s); banned {
			all[s.Name] = b
		}
	}
	return all
}

// elementLocked returns the storage element of a site, or its name if it has no endpoint.
func (r *registry) elementLocked(site string) string {
	u, err := url.Parse(r.sites[site].URL)
	if err != nil || u.Host == "" {
		return site
	}
	return fts.SE(u)
}

// Element returns the storage element of a site, or its name if it has no endpoint.
func (f *Sites) Element(site string) string {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.elementLocked(site)
}
