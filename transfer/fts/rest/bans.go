package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
	"weir/transfer/queue"
)

// OpenBans reads the bans from the database.
func (c *Configuration) OpenBans(ctx context.Context) error {
	all, err := db.Select(ctx, c.db, func(rows *db.Rows) (b dispatch.Ban, err error) {
		err = rows.Scan(&b.Kind, &b.Name, &b.Status, db.When(&b.Until), &b.Message, &b.By, db.When(&b.Made))
		return b, err
	}, "SELECT kind, name, status, until, message, made_by, made FROM ban ORDER BY kind, name")
	c.sites.SetBans(all)
	return err
}

// putBan adds or changes a ban.
func (c *Configuration) putBan(ctx context.Context, b dispatch.Ban) error {
	err := c.db.Exec(ctx, `INSERT INTO ban (kind, name, status, until, message, made_by, made) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET status = excluded.status, until = excluded.until, message = excluded.message,
		made_by = excluded.made_by, made = excluded.made`, b.Kind, b.Name, b.Status, b.Until, b.Message, b.By, b.Made)
	if err != nil {
		return err
	}
	return c.OpenBans(ctx)
}

// liftBan removes a ban, if there is one.
func (c *Configuration) liftBan(ctx context.Context, kind, name string) error {
	if err := c.db.Exec(ctx, "DELETE FROM ban WHERE kind = ? AND name = ?", kind, name); err != nil {
		return err
	}
	err := c.OpenBans(ctx)
	c.wakeAll()
	return err
}

// ExpireBans changes bans whose waiting time has ended into bans that cancel files.
func (c *Configuration) ExpireBans(ctx context.Context) error {
	now := c.now()
	for _, b := range c.sites.Bans() {
		if b.Until.IsZero() || b.Until.After(now) {
			continue
		}
		b.Status, b.Until = dispatch.BanCancels, time.Time{}
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

// banFiles cancels the files that need a banned storage element if the ban has that status: files
// whose destination, or all of whose sources, have such bans. It returns the jobs of these files.
// For a ban that lets files wait, it returns the jobs of files that need any banned storage
// element.
func (c *Configuration) banFiles(ctx context.Context, b dispatch.Ban) (jobs []string, err error) {
	var sites []string
	for site, other := range c.sites.Banned() {
		if b.Status != dispatch.BanCancels || other.Status == dispatch.BanCancels {
			sites = append(sites, site)
		}
	}
	if len(sites) == 0 {
		return nil, nil
	}
	items, jobs, err := c.queue.Read.Needing(ctx, sites)
	if err != nil || b.Status != dispatch.BanCancels {
		return jobs, err
	}
	why := "Storage banned: " + b.Why()
	for some := range slices.Chunk(items, 1000) {
		if err := c.requests.CancelFiles(ctx, some, why); err != nil {
			return jobs, err
		}
	}
	c.requests.Abort(ctx, func(l *dispatch.ActiveLease) bool { // their files have other sources
		return slices.Contains(sites, l.Source.Site)
	})
	return jobs, nil
}

// CancelBanned cancels files that were submitted while a ban was made, or whose coordinator stopped
// before it cancelled them.
func (c *Configuration) CancelBanned(ctx context.Context) error {
	for _, b := range c.sites.Banned() {
		if b.Status == dispatch.BanCancels {
			_, err := c.banFiles(ctx, b)
			return err
		}
	}
	return nil
}

// banInput decodes the body of a request for a ban, JSON or a form, as FTS does.
func (c *Configuration) banInput(q *api.Call) (in map[string]any, err error) {
	if err := q.Need(access.MayAdmin); err != nil {
		return nil, err
	}
	return input(q)
}

// banOf returns a ban with the values that requests for all kinds of bans have.
func (c *Configuration) banOf(q *api.Call, in map[string]any, kind, key string) (b dispatch.Ban, err error) {
	b = dispatch.Ban{Kind: kind, Status: dispatch.BanCancels, By: q.User(), Made: c.now()}
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

// banSE bans a storage element, and returns the affected jobs.
func (c *Configuration) banSE(q *api.Call) (int, any, error) {
	in, err := c.banInput(q)
	if err != nil {
		return 0, nil, err
	}
	b, err := c.banOf(q, in, dispatch.BanSE, "storage")
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
		if b.Status == dispatch.BanCancels {
			return 0, nil, fts.Refuse(http.StatusBadRequest, "allow_submit and status = CANCEL can not be combined")
		}
		if b.Status == dispatch.BanWaits {
			b.Status = dispatch.BanAccepts
		}
	}
	if !slices.Contains([]string{dispatch.BanCancels, dispatch.BanWaits, dispatch.BanAccepts}, b.Status) {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "status can only be cancel or wait")
	}
	seconds, ok := fts.Integer(in["timeout"], 0, 1<<31)
	switch {
	case !ok:
		return 0, nil, fts.Refuse(http.StatusBadRequest, "timeout: expected seconds")
	case seconds > 0 && b.Status == dispatch.BanCancels:
		return 0, nil, fts.Refuse(http.StatusBadRequest, "timeout and status = CANCEL can not be combined")
	case seconds > 0:
		b.Until = b.Made.Add(time.Duration(seconds) * time.Second)
	}
	if err := c.putBan(q.Context(), b); err != nil {
		return 0, nil, err
	}
	jobs, err := c.banFiles(q.Context(), b)
	c.log.Warn("storage element banned", "storage", b.Name, "status", b.Status, "by", q.Name, "jobs", len(jobs))
	return http.StatusOK, api.OrEmpty(jobs), err
}

// storageOf returns a storage element in the notation of FTS, or the name of a site.
func (c *Configuration) storageOf(text string) (string, error) {
	if _, known := c.sites.Get(text); known {
		return text, nil
	}
	if se, ok := fts.ReadSE(text); ok {
		return se, nil
	}
	return "", fts.Refuse(http.StatusBadRequest, "storage %.100q: expected one such as https://se.example.org or root://se.example.org, "+
		"or the name of a site", text)
}

func (c *Configuration) unbanSE(q *api.Call) (int, any, error) {
	name := q.Param("storage")
	if err := q.Need(access.MayAdmin); err != nil {
		return 0, nil, err
	}
	if name == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing storage parameter")
	}
	name, err := c.storageOf(name)
	if err != nil {
		return 0, nil, err
	}
	c.log.Warn("storage element no longer banned", "storage", name, "by", q.Name)
	return http.StatusNoContent, nil, c.liftBan(q.Context(), dispatch.BanSE, name)
}

// banDN bans a user, whose jobs are cancelled.
func (c *Configuration) banDN(q *api.Call) (int, any, error) {
	in, err := c.banInput(q)
	if err != nil {
		return 0, nil, err
	}
	b, err := c.banOf(q, in, dispatch.BanDN, "user_dn")
	if err != nil {
		return 0, nil, err
	}
	if b.Name == q.Name || b.Name == q.User() {
		return 0, nil, fts.Refuse(http.StatusConflict, "The user tried to ban (her|his)self")
	}
	if err := c.putBan(q.Context(), b); err != nil {
		return 0, nil, err
	}
	n, err := c.cancelJobs(q.Context(), q.Name, "User banned", func(j *queue.JobState) bool {
		return j.By == b.Name || fts.UserOf(j) == b.Name
	})
	c.log.Warn("user banned", "user", b.Name, "by", q.Name, "jobs", len(n.IDs))
	return http.StatusOK, api.OrEmpty(n.IDs), err
}

func (c *Configuration) unbanDN(q *api.Call) (int, any, error) {
	name := q.Param("user_dn")
	if err := q.Need(access.MayAdmin); err != nil {
		return 0, nil, err
	}
	if name == "" {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Missing user_dn parameter")
	}
	c.log.Warn("user no longer banned", "user", name, "by", q.Name)
	return http.StatusNoContent, nil, c.liftBan(q.Context(), dispatch.BanDN, name)
}

// listBans lists the bans of a kind.
func (c *Configuration) listBans(kind string) func(*api.Call) (int, any, error) {
	return func(q *api.Call) (int, any, error) {
		if err := q.Need(access.MayAdmin); err != nil {
			return 0, nil, err
		}
		list := []fts.BanAnswer{}
		for _, b := range c.sites.Bans() {
			if b.Kind != kind {
				continue
			}
			one := fts.BanAnswer{Message: b.Message, Made: fts.TimeText(b.Made), By: b.By, Status: b.Status}
			if one.DN = b.Name; kind == dispatch.BanSE {
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

// cancelJob cancels a job.
func (c *Configuration) cancelJob(ctx context.Context, j *queue.JobState, by, why string) error {
	for _, p := range j.Parts {
		if p.Status.Ended() || p.Stop != "" || p.Terms.Delete && fts.Multihop(j) { // the intermediate copies are removed
			continue
		}
		if _, err := c.requests.Cancel(ctx, p.ID, by, why); err != nil && !errors.Is(err, queue.ErrRefused) {
			return err
		}
	}
	return nil
}

// cancelJobs cancels the open jobs that are chosen.
func (c *Configuration) cancelJobs(ctx context.Context, by, why string, chosen func(*queue.JobState) bool) (n fts.CancelledAnswer,
	err error) {
	ids, err := c.queue.Read.OpenJobIDs(ctx)
	if err != nil {
		return n, err
	}
	defer c.wakeAll()
	for some := range slices.Chunk(ids, listJobs) {
		all, err := c.queue.Read.Jobs(ctx, some)
		if err != nil {
			return n, err
		}
		for _, j := range all {
			if state := fts.State(j); !chosen(j) || !fts.Open(state) {
				continue
			}
			for _, p := range j.Parts {
				open := p.Count.Files - p.Count.Done - p.Count.Skipped - p.Count.Failed - p.Count.Cancelled
				if p.Terms.Delete {
					n.Deletes += open
				} else {
					n.Files += open
				}
			}
			n.Jobs++
			n.IDs = append(n.IDs, j.ID)
			if err := c.cancelJob(ctx, j, by, why); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
