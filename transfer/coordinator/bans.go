package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer/catalog"
	"weir/transfer/fts"
	"weir/transfer/queue"
)

// The statuses of bans.
const (
	banCancels = "CANCEL"  // files that wait are cancelled, and new ones refused
	banWaits   = "WAIT"    // files wait, and new ones are refused
	banAccepts = "WAIT_AS" // files wait, new ones as well
)

// A ban keeps new copies from a storage element, or requests from a user.
type ban struct {
	Kind, Name, Status, Message, By string
	Until                           time.Time // a ban that lets files wait: when it becomes one that cancels them; zero: never
	Made                            time.Time
}

// The kinds of bans.
const (
	banSE = "se"
	banDN = "dn"
)

// why says who banned what, and why.
func (b ban) why() string {
	text := fmt.Sprintf("%s is banned by %s since %s", b.Name, b.By, clockTime(b.Made))
	if b.Message != "" {
		text += " (" + b.Message + ")"
	}
	return text
}

// openBans reads the bans from the database.
func (c *Coordinator) openBans(ctx context.Context) error {
	all, err := db.Select(ctx, c.db, func(rows *db.Rows) (b ban, err error) {
		err = rows.Scan(&b.Kind, &b.Name, &b.Status, db.When(&b.Until), &b.Message, &b.By, db.When(&b.Made))
		return b, err
	}, "SELECT kind, name, status, until, message, made_by, made FROM ban ORDER BY kind, name")
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	c.registry.bans = all
	return err
}

// putBan adds or changes a ban.
func (c *Coordinator) putBan(ctx context.Context, b ban) error {
	err := c.db.Exec(ctx, `INSERT INTO ban (kind, name, status, until, message, made_by, made) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET status = excluded.status, until = excluded.until, message = excluded.message,
		made_by = excluded.made_by, made = excluded.made`, b.Kind, b.Name, b.Status, b.Until, b.Message, b.By, b.Made)
	if err != nil {
		return err
	}
	return c.openBans(ctx)
}

// liftBan removes a ban, if there is one.
func (c *Coordinator) liftBan(ctx context.Context, kind, name string) error {
	if err := c.db.Exec(ctx, "DELETE FROM ban WHERE kind = ? AND name = ?", kind, name); err != nil {
		return err
	}
	err := c.openBans(ctx)
	c.wakeAll()
	return err
}

// bannedAsLocked returns the ban of a site: by its name, or by the storage element of its endpoint.
func (r *registry) bannedAsLocked(s catalog.Site) (ban, bool) {
	if len(r.bans) == 0 {
		return ban{}, false
	}
	se := r.elementLocked(s.Name)
	for _, b := range r.bans {
		if b.Kind == banSE && (b.Name == s.Name || b.Name == se) {
			return b, true
		}
	}
	return ban{}, false
}

// bannedSites returns the bans by site; each round of dispatching asks for them.
func (r *registry) bannedSites() map[string]ban {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bans) == 0 {
		return nil
	}
	all := map[string]ban{}
	for _, s := range r.sites {
		if b, banned := r.bannedAsLocked(s); banned {
			all[s.Name] = b
		}
	}
	return all
}

// refuseBannedUser returns an error if the caller is banned.
func (c *Coordinator) refuseBannedUser(w caller) error {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, b := range c.registry.bans {
		if b.Kind == banDN && (b.Name == w.name || b.Name == w.user()) {
			return fts.Refuse(http.StatusForbidden, "The user has been banned: %s", b.why())
		}
	}
	return nil
}

// expireBans makes bans whose time to wait is over ones that cancel files.
func (c *Coordinator) expireBans(ctx context.Context) error {
	now := c.now()
	c.registry.mu.Lock()
	over := slices.DeleteFunc(slices.Clone(c.registry.bans), func(b ban) bool { return b.Until.IsZero() || b.Until.After(now) })
	c.registry.mu.Unlock()
	for _, b := range over {
		b.Status, b.Until = banCancels, time.Time{}
		if err := c.putBan(ctx, b); err != nil {
			return err
		}
		if _, err := c.banFiles(ctx, b); err != nil {
			return err
		}
		c.log.Warn("the files that waited for a banned storage element are cancelled", "storage", b.Name)
	}
	return nil
}

// banFiles cancels the files that need a banned storage element if the ban says so: those whose destination, or all sources, have
// such bans. It returns the jobs of these files; of a ban that lets files wait, those of all bans.
func (c *Coordinator) banFiles(ctx context.Context, b ban) (jobs []string, err error) {
	var sites []string
	for site, other := range c.registry.bannedSites() {
		if b.Status != banCancels || other.Status == banCancels {
			sites = append(sites, site)
		}
	}
	if len(sites) == 0 {
		return nil, nil
	}
	items, jobs, err := c.queue.Needing(ctx, sites)
	if err != nil || b.Status != banCancels {
		return jobs, err
	}
	why := "Storage banned: " + b.why()
	for some := range slices.Chunk(items, 1000) {
		if err := c.cancelFiles(ctx, some, why); err != nil {
			return jobs, err
		}
	}
	c.abortAll(ctx, func(l *activeLease) bool { return slices.Contains(sites, l.Source.Site) }) // their files have other sources
	return jobs, nil
}

// cancelBanned cancels what was submitted while a ban was made, and what a coordinator that ended then did not.
func (c *Coordinator) cancelBanned(ctx context.Context) error {
	for _, b := range c.registry.bannedSites() {
		if b.Status == banCancels {
			_, err := c.banFiles(ctx, b)
			return err
		}
	}
	return nil
}

// banInput reads the body of a request for a ban, JSON or a form, as FTS does.
func (c *Coordinator) banInput(q *call) (in map[string]any, err error) {
	if err := q.need(mayAdmin); err != nil {
		return nil, err
	}
	return ftsInput(q)
}

// banOf returns what a request for a ban says of any kind of ban.
func (c *Coordinator) banOf(q *call, in map[string]any, kind, key string) (b ban, err error) {
	b = ban{Kind: kind, Status: banCancels, By: q.user(), Made: c.now()}
	for name, to := range map[string]*string{key: &b.Name, "message": &b.Message} {
		text, ok := in[name].(string)
		if in[name] != nil && !ok || len(text) > 256 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\uFFFD' }) {
			return b, fts.Refuse(http.StatusBadRequest, "%s: expected a text of at most 256 bytes", name)
		}
		*to = strings.TrimSpace(text)
	}
	if b.Name == "" {
		return b, fts.Refuse(http.StatusBadRequest, "Missing %s parameter", key)
	}
	return b, nil
}

// ftsBanSE bans a storage element, and answers with the jobs that this affects.
func (c *Coordinator) ftsBanSE(q *call) (int, any, error) {
	in, err := c.banInput(q)
	if err != nil {
		return 0, nil, err
	}
	b, err := c.banOf(q, in, banSE, "storage")
	if err != nil {
		return 0, nil, err
	}
	if b.Name, err = c.storageOf(b.Name); err != nil {
		return 0, nil, err
	}
	if vo := in["vo_name"]; vo != nil && vo != "" && vo != "*" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "vo_name: a ban is for all virtual organizations: leave it out, or use *")
	}
	if status, given := in["status"]; given {
		text, _ := status.(string)
		b.Status = strings.ToUpper(text)
	}
	if fts.Truth(in["allow_submit"]) {
		if b.Status == banCancels {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "allow_submit and status = CANCEL can not be combined")
		}
		if b.Status == banWaits {
			b.Status = banAccepts
		}
	}
	if !slices.Contains([]string{banCancels, banWaits, banAccepts}, b.Status) {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "status can only be cancel or wait")
	}
	seconds, ok := fts.Integer(in["timeout"], 0, 1<<31)
	switch {
	case !ok:
		return 0, nil, fts.Refuse(http.StatusBadRequest, "timeout: expected seconds")
	case seconds > 0 && b.Status == banCancels:
		return 0, nil, fts.Refuse(http.StatusBadRequest, "timeout and status = CANCEL can not be combined")
	case seconds > 0:
		b.Until = b.Made.Add(time.Duration(seconds) * time.Second)
	}
	if err := c.putBan(q.Context(), b); err != nil {
		return 0, nil, err
	}
	jobs, err := c.banFiles(q.Context(), b)
	c.log.Warn("storage element banned", "storage", b.Name, "status", b.Status, "by", q.name, "jobs", len(jobs))
	return http.StatusOK, orEmpty(jobs), err
}

// elementLocked returns the storage element of a site: its name if it has no endpoint.
func (r *registry) elementLocked(site string) string {
	u, err := url.Parse(r.sites[site].URL)
	if err != nil || u.Host == "" {
		return site
	}
	return fts.SE(u)
}

// storageOf returns a storage element as FTS names it, or the name of a site.
func (c *Coordinator) storageOf(text string) (string, error) {
	if _, known := c.registry.site(text); known {
		return text, nil
	}
	if se, ok := fts.ReadSE(text); ok {
		return se, nil
	}
	return "", fts.Refuse(http.StatusBadRequest, "storage %.100q: expected one such as https://se.example.org or root://se.example.org, "+
		"or the name of a site", text)
}

func (c *Coordinator) ftsUnbanSE(q *call) (int, any, error) {
	name := q.param("storage")
	if err := q.need(mayAdmin); err != nil {
		return 0, nil, err
	}
	if name == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing storage parameter")
	}
	name, err := c.storageOf(name)
	if err != nil {
		return 0, nil, err
	}
	c.log.Warn("storage element no longer banned", "storage", name, "by", q.name)
	return http.StatusNoContent, nil, c.liftBan(q.Context(), banSE, name)
}

// ftsBanDN bans a user, whose jobs are cancelled.
func (c *Coordinator) ftsBanDN(q *call) (int, any, error) {
	in, err := c.banInput(q)
	if err != nil {
		return 0, nil, err
	}
	b, err := c.banOf(q, in, banDN, "user_dn")
	if err != nil {
		return 0, nil, err
	}
	if b.Name == q.name || b.Name == q.user() {
		return 0, nil, fts.Refuse(http.StatusConflict, "The user tried to ban (her|his)self")
	}
	if err := c.putBan(q.Context(), b); err != nil {
		return 0, nil, err
	}
	n, err := c.cancelJobs(q.Context(), q.name, "User banned", func(j *queue.JobState) bool {
		return j.By == b.Name || fts.UserOf(j) == b.Name
	})
	c.log.Warn("user banned", "user", b.Name, "by", q.name, "jobs", len(n.IDs))
	return http.StatusOK, orEmpty(n.IDs), err
}

func (c *Coordinator) ftsUnbanDN(q *call) (int, any, error) {
	name := q.param("user_dn")
	if err := q.need(mayAdmin); err != nil {
		return 0, nil, err
	}
	if name == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing user_dn parameter")
	}
	c.log.Warn("user no longer banned", "user", name, "by", q.name)
	return http.StatusNoContent, nil, c.liftBan(q.Context(), banDN, name)
}

// ftsBans lists the bans of a kind.
func (c *Coordinator) ftsBans(kind string) func(*call) (int, any, error) {
	return func(q *call) (int, any, error) {
		if err := q.need(mayAdmin); err != nil {
			return 0, nil, err
		}
		c.registry.mu.Lock()
		defer c.registry.mu.Unlock()
		list := []fts.BanAnswer{}
		for _, b := range c.registry.bans {
			if b.Kind != kind {
				continue
			}
			one := fts.BanAnswer{Message: b.Message, Made: fts.TimeText(b.Made), By: b.By, Status: b.Status}
			if one.DN = b.Name; kind == banSE {
				one.DN, one.SE, one.VO = "", b.Name, "*"
			}
			if !b.Until.IsZero() {
				one.Timeout = int64(b.Until.Sub(b.Made).Seconds())
			}
			list = append(list, one)
		}
		return http.StatusOK, list, nil
	}
}
