package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/db"
	"weir/transfer/catalog"
)

// AddSite adds a site, which is not up before Saw is called. Its error is ErrExists if the name is
// taken.
func (s *Store) AddSite(ctx context.Context, site catalog.Site) error {
	if err := catalog.CheckSite(site.Name); err != nil {
		return err
	}
	return s.db.Write(ctx, func(t *db.Tx) error {
		n, err := t.Exec("INSERT INTO site (name, kind, url, max, free, seen, up, problem) VALUES (?, ?, ?, ?, -1, 0, FALSE, "+
			"'') ON CONFLICT (name) DO NOTHING", site.Name, site.Kind, site.URL, site.Max)
		if err == nil && n == 0 {
			return fmt.Errorf("site %q: %w", site.Name, ErrExists)
		}
		return err
	})
}

// SetSite changes the kind, URL and Max of a site.
func (s *Store) SetSite(ctx context.Context, site catalog.Site) error {
	return s.db.Write(ctx, func(t *db.Tx) error {
		n, err := t.Exec("UPDATE site SET kind = ?, url = ?, max = ? WHERE name = ?", site.Kind, site.URL, site.Max, site.Name)
		return one(n, err, site.Name)
	})
}

// Saw stores the observed state of a site: whether it is up, its free bytes (-1: not known) and its
// problem, if it has one. seen is the time of the last contact; the zero time leaves the stored
// time unchanged.
func (s *Store) Saw(ctx context.Context, name string, seen time.Time, up bool, free int64, problem string) error {
	return s.db.Write(ctx, func(t *db.Tx) error {
		n, err := t.Exec("UPDATE site SET seen = CASE WHEN CAST(? AS BIGINT) = 0 THEN seen ELSE ? END, up = ?, free = ?, "+
			"problem = ? WHERE name = ?", seen, seen, up, free, problem, name)
		return one(n, err, name)
	})
}

const siteColumns = "SELECT name, kind, url, max, free, seen, up, problem FROM site "

func scanSite(r *db.Rows) (s catalog.Site, err error) {
	err = r.Scan(&s.Name, &s.Kind, &s.URL, &s.Max, &s.Free, db.When(&s.Seen), &s.Up, &s.Problem)
	return s, err
}

// Sites returns all sites by name.
func (s *Store) Sites(ctx context.Context) (all []catalog.Site, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		all, err = db.All(t, scanSite, siteColumns+"ORDER BY name")
		return err
	})
	return all, err
}

// Site returns the site with a name.
func (s *Store) Site(ctx context.Context, name string) (site catalog.Site, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		all, err := db.All(t, scanSite, siteColumns+"WHERE name = ?", name)
		if err == nil && len(all) == 0 {
			return missing("site", name)
		}
		if err == nil {
			site = all[0]
		}
		return err
	})
	return site, err
}

// Holders returns the names of the sites that have or had files of datasets.
func (s *Store) Holders(ctx context.Context) ([]string, error) {
	return db.Select(ctx, s.db, db.Value[string], "SELECT DISTINCT site FROM presence")
}

// SetSecret stores a secret of a site, which the caller has encrypted; nil removes it.
func (s *Store) SetSecret(ctx context.Context, site string, secret []byte) error {
	return s.db.Write(ctx, func(t *db.Tx) error {
		n, err := t.Exec("UPDATE site SET secret = ? WHERE name = ?", secret, site)
		return one(n, err, site)
	})
}

// Secret returns the secret that SetSecret stored.
func (s *Store) Secret(ctx context.Context, site string) (secret []byte, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		secret = nil
		err := t.Row("SELECT secret FROM site WHERE name = ?", site).Scan(&secret)
		if errors.Is(err, db.ErrNone) {
			return missing("site", site)
		}
		return err
	})
	return secret, err
}

// RemoveSite removes a site and its replicas from the catalog. No file is removed at the site.
// After an interruption, it may be called again.
func (s *Store) RemoveSite(ctx context.Context, name string) error {
	for {
		var dataset int64 // a dataset with files at the site
		err := s.db.Write(ctx, func(t *db.Tx) error {
			var found string
			err := t.Row("SELECT name FROM site WHERE name = ? {{lock}}", name).Scan(&found)
			if errors.Is(err, db.ErrNone) {
				return missing("site", name)
			}
			if err != nil {
				return err
			}
			dataset = 0
			err = t.Row("SELECT dataset FROM presence WHERE site = ? ORDER BY dataset LIMIT 1", name).Scan(&dataset)
			if errors.Is(err, db.ErrNone) {
				_, err = t.Exec("DELETE FROM site WHERE name = ?", name)
			}
			return err
		})
		if err != nil || dataset == 0 {
			return err
		}
		if err := s.leave(ctx, name, dataset); err != nil {
			return err
		}
	}
}

// leave removes the replicas of one dataset at a site.
func (s *Store) leave(ctx context.Context, site string, dataset int64) error {
	for after := ""; ; {
		var last string
		var n int
		err := s.db.Write(ctx, func(t *db.Tx) error {
			var ids []int64
			var err error
			if last, ids, err = pageOf(t, dataset, after); err != nil {
				return err
			}
			n = len(ids)
			if _, err = t.Exec(`UPDATE presence SET files = files - (SELECT count(*) FROM replica WHERE site = ? AND bad = '' AND file {{in}})
				WHERE dataset = ? AND site = ?`, site, ids, dataset, site); err != nil {
				return err
			}
			if _, err = t.Exec("DELETE FROM replica WHERE site = ? AND file {{in}}", site, ids); err != nil || n == page {
				return err
			}
			_, err = t.Exec("DELETE FROM presence WHERE dataset = ? AND site = ?", dataset, site)
			return err
		})
		if err != nil || n < page {
			return err
		}
		after = last
	}
}

// pageOf returns the numbers of the next files of a dataset, sorted by name, and the last of these
// names.
func pageOf(t *db.Tx, dataset int64, after string) (last string, ids []int64, err error) {
	ids, err = db.All(t, func(r *db.Rows) (id int64, err error) {
		err = r.Scan(&id, &last)
		return id, err
	}, "SELECT id, name FROM file WHERE dataset = ? AND name > ? ORDER BY name LIMIT ?", dataset, after, page)
	return last, ids, err
}

// ErrOtherRoot is the error for a site whose root has changed.
var ErrOtherRoot = errors.New("the site's root is another one")

// Rooted stores the id of the root of a site. If the site had a different root and has files, it
// returns ErrOtherRoot, unless isNew allows the change.
func (s *Store) Rooted(ctx context.Context, site, root string, isNew bool) error {
	return s.db.Write(ctx, func(t *db.Tx) error {
		var was string
		err := t.Row("SELECT root FROM site WHERE name = ? {{lock}}", site).Scan(&was)
		if errors.Is(err, db.ErrNone) {
			return missing("site", site)
		}
		if err != nil || was == root {
			return err
		}
		if was != "" && !isNew {
			var files int64
			if err := t.Row("SELECT CAST(COALESCE(SUM(files), 0) AS BIGINT) FROM presence WHERE site = ?", site).Scan(&files); err != nil {
				return err
			}
			if files > 0 {
				return ErrOtherRoot
			}
		}
		_, err = t.Exec("UPDATE site SET root = ? WHERE name = ?", root, site)
		return err
	})
}
