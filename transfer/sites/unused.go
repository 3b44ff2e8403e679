package sites

import (
	"context"
	"errors"
	"slices"

	"weir/internal/db"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
)

// RemoveAllUnused removes unused sites until ctx ends.
func (c *Registry) RemoveAllUnused(ctx context.Context) {
	for c.conf.KeepEndpoints > 0 && ctx.Err() == nil {
		c.health.Repeatedly(ctx, dispatch.UnusedEvery, func(ctx context.Context) (more bool, err error) { return false, c.RemoveUnused(ctx) })
	}
}

// RemoveUnused removes the sites that were added for jobs, and that have not been in use for
// KeepEndpoints. Sites that an administrator has named, limited or banned stay.
func (c *Registry) RemoveUnused(ctx context.Context) error {
	used, err := c.inUse(ctx)
	if err != nil {
		return err
	}
	unused := c.sites.Unused(used)
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
			err = c.RemoveURLSite(ctx, name)
		}
	}
	return err
}

// inUse returns the sites of open files, of files on tape whose state is polled, of temporary files
// that will be removed, and of replicas.
func (c *Registry) inUse(ctx context.Context) ([]string, error) {
	used, err := c.queue.Read.SitesInUse(ctx)
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

// RemoveURLSite removes a site that was added for jobs, unless a submission has named it meanwhile.
// A submission that names it now adds it again.
func (c *Registry) RemoveURLSite(ctx context.Context, name string) error {
	c.naming.Lock()
	defer c.naming.Unlock()
	if !c.sites.Leave(name) {
		return nil
	}
	err := c.catalog.RemoveSite(ctx, name)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = c.removed(ctx, name)
	}
	c.sites.Left()
	if err == nil {
		c.log.Info("endpoint that no job uses removed from the sites", "site", name)
	}
	return err
}

// removed discards the state of a site that was removed from the catalog.
func (c *Registry) removed(ctx context.Context, name string) error {
	c.sites.Forget(name)
	c.endpoints.Forget(name)
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM link WHERE source = ? OR dest = ?", name, name)
		if err == nil {
			_, err = tx.Exec("DELETE FROM unused WHERE site = ?", name)
		}
		return err
	})
	return errors.Join(err, c.Read(ctx))
}
