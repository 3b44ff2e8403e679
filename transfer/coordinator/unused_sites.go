package coordinator

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"weir/internal/db"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/fts"
)

// unusedEvery is the time between two searches for unused sites. A site that a submission has named is in use for as long.
const unusedEvery = 10 * time.Minute

// removeAllUnused removes unused sites until ctx ends.
func (c *Coordinator) removeAllUnused(ctx context.Context) {
	for c.conf.KeepEndpoints > 0 && ctx.Err() == nil {
		c.repeatedly(ctx, unusedEvery, func(ctx context.Context) (more bool, err error) { return false, c.removeUnused(ctx) })
	}
}

// removeUnused removes the sites that were added for jobs, and that have not been in use for as long as they are kept. Those that an
// administrator has named, limited or banned stay.
func (c *Coordinator) removeUnused(ctx context.Context) error {
	used, err := c.sitesInUse(ctx)
	if err != nil {
		return err
	}
	var unused []string
	c.registry.mu.Lock()
	for name, s := range c.registry.sites {
		if s.Kind == urlKind && !slices.Contains(used, name) && !c.registry.ofInterestLocked(s) && !c.recentlyNamedLocked(name) {
			unused = append(unused, name)
		}
	}
	c.registry.mu.Unlock()
	var over []string
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM unused WHERE NOT site {{in}}", append([]string{""}, unused...))
		if err == nil {
			_, err = tx.Many("INSERT INTO unused (site, since) VALUES (?, ?) ON CONFLICT (site) DO NOTHING",
				db.Each(unused, func(name string) []any { return []any{name, c.now()} }))
		}
		if err == nil {
			over, err = db.Column[string](tx, "SELECT site FROM unused WHERE since <= ? ORDER BY site", c.now().Add(-c.conf.KeepEndpoints))
		}
		return err
	})
	for _, name := range over {
		if err == nil {
			err = c.removeURLSite(ctx, name)
		}
	}
	return err
}

// sitesInUse returns the sites of open files, of files that a tape system is asked about, of temporary files that are to be removed, and of
// replicas.
func (c *Coordinator) sitesInUse(ctx context.Context) ([]string, error) {
	used, err := c.queue.SitesInUse(ctx)
	if err != nil {
		return nil, err
	}
	cleaned, err := db.Select(ctx, c.db, db.Value[string], "SELECT DISTINCT site FROM leftover")
	if err != nil {
		return nil, err
	}
	holders, err := c.catalog.Holders(ctx)
	return slices.Concat(used, cleaned, holders), err
}

// ofInterestLocked reports whether an administrator has set something about a site.
func (r *registry) ofInterestLocked(s catalog.Site) bool {
	names := []string{s.Name, r.elementLocked(s.Name)}
	for _, l := range r.settings.links {
		if slices.Contains(names, l.Source) || slices.Contains(names, l.Dest) {
			return true
		}
	}
	_, banned := r.bannedAsLocked(s)
	return banned || s.Max > 0 || slices.ContainsFunc(names, func(name string) bool { _, is := r.settings.se[name]; return is })
}

// recentlyNamedLocked reports whether a submission has named a site a short time ago.
func (c *Coordinator) recentlyNamedLocked(site string) bool {
	at, named := c.registry.named[site]
	return named && c.now().Sub(at) < unusedEvery
}

// removeURLSite removes a site that was added for jobs, unless a submission has named it meanwhile. One that names it now adds it again.
func (c *Coordinator) removeURLSite(ctx context.Context, name string) error {
	c.urlSites.Lock()
	defer c.urlSites.Unlock()
	c.registry.mu.Lock()
	busy := c.recentlyNamedLocked(name) || c.registry.net.Active(name) > 0 || c.registry.sites[name].Kind != urlKind
	if !busy {
		c.registry.leaving = name
	}
	c.registry.mu.Unlock()
	if busy {
		return nil
	}
	err := c.catalog.RemoveSite(ctx, name)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = c.siteRemoved(ctx, name)
	}
	c.registry.mu.Lock()
	c.registry.leaving = ""
	c.registry.mu.Unlock()
	if err == nil {
		c.log.Info("endpoint that no job uses removed from the sites", "site", name)
	}
	return err
}

// siteRemoved forgets what is known of a site that the catalog does not have any more.
func (c *Coordinator) siteRemoved(ctx context.Context, name string) error {
	c.registry.mu.Lock()
	c.resetBreakersLocked(name)
	c.registry.net.Forget(name)
	delete(c.registry.endpoints, name)
	delete(c.registry.named, name)
	c.registry.mu.Unlock()
	c.forgetDelegations(name)
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM link WHERE source = ? OR dest = ?", name, name)
		if err == nil {
			_, err = tx.Exec("DELETE FROM unused WHERE site = ?", name)
		}
		return err
	})
	return errors.Join(err, c.readSites(ctx))
}

// retry retries the failed and cancelled files of a request. Endpoints of a job that have been removed meanwhile become sites again.
func (c *Coordinator) retry(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	urls, err := c.queue.SiteURLs(ctx, id)
	if err != nil {
		return transfer.Request{}, err
	}
	sites := c.newURLSites()
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		if c.nameSite(name) {
			continue
		}
		u := urls[name]
		err := sites.addAs(ctx, name, u, u.Scheme+"://"+fts.Server(u))
		if errors.Is(err, tpc.ErrRefused) {
			err = wire.Refuse(http.StatusConflict, "%s", err)
		}
		if err != nil {
			return transfer.Request{}, err
		}
	}
	return c.queue.Retry(ctx, id, by, reason)
}

// nameSite notes that a submission names a site, and reports whether there is one.
func (c *Coordinator) nameSite(name string) bool {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	_, known := c.registry.sites[name]
	if known = known && name != c.registry.leaving; known {
		c.registry.named[name] = c.now()
	}
	return known
}
