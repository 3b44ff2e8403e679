package queue

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/db"
)

// tables makes the catalog's.
func (w *world) tables() {
	w.t.Helper()
	w.must(w.db.Write(w.ctx, func(tx *db.Tx) error {
		for _, s := range strings.Split(`CREATE TABLE IF NOT EXISTS site (name {{text}} PRIMARY KEY, free BIGINT NOT NULL, seen BIGINT NOT NULL, up BOOLEAN NOT NULL, problem {{text}} NOT NULL);
			CREATE TABLE IF NOT EXISTS dataset (id {{id}}, name {{text}} NOT NULL UNIQUE);
			CREATE TABLE IF NOT EXISTS block (id {{id}}, dataset BIGINT NOT NULL, name {{text}} NOT NULL, UNIQUE (dataset, name));
			CREATE TABLE IF NOT EXISTS file (id {{id}}, dataset BIGINT NOT NULL, block BIGINT NOT NULL, name {{text}} NOT NULL, size BIGINT NOT NULL, adler {{text}} NOT NULL, UNIQUE (dataset, name));
			CREATE TABLE IF NOT EXISTS replica (file BIGINT NOT NULL, site {{text}} NOT NULL, path {{text}} NOT NULL, verified BIGINT NOT NULL, by {{text}} NOT NULL, bad {{text}} NOT NULL, PRIMARY KEY (file, site)) {{keyed}}`, ";") {
			if _, err := tx.Exec(s); err != nil {
				return err
			}
		}
		return nil
	}))
}

// site makes or changes a site.
func (w *world) site(name string, up bool, free int64) {
	w.t.Helper()
	w.mu.Lock()
	seen := w.now
	w.mu.Unlock()
	w.exec(`INSERT INTO site (name, free, seen, up, problem) VALUES (?, ?, ?, ?, '') ON CONFLICT (name) DO UPDATE SET free = excluded.free, up = excluded.up, seen = excluded.seen`, name, free, seen, up)
}

func (w *world) down(name string) {
	w.t.Helper()
	w.exec("UPDATE site SET up = FALSE WHERE name = ?", name)
}

func fileName(set string, i int) string { return fmt.Sprintf("%s/f%07d", set, i) }

func adlerOf(i int) string { return fmt.Sprintf("%08x", i+1) }

// dataset makes one of n files of 1000 bytes and more, which are at sites.
func (w *world) dataset(name string, n int, sites ...string) {
	w.t.Helper()
	w.must(w.db.Write(w.ctx, func(tx *db.Tx) error {
		var id, first int64
		if err := tx.Row("INSERT INTO dataset (name) VALUES (?) RETURNING id", name).Scan(&id); err != nil {
			return err
		}
		if err := tx.Row("SELECT COALESCE(MAX(id), 0) FROM file").Scan(&first); err != nil {
			return err
		}
		_, err := tx.Bulk("file", []string{"id", "dataset", "block", "name", "size", "adler"}, func(yield func([]any) bool) {
			for i := range n {
				if !yield([]any{first + int64(i) + 1, id, int64(0), fileName(name, i), int64(1000 + i), adlerOf(i)}) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		for _, site := range sites {
			_, err := tx.Bulk("replica", []string{"file", "site", "path", "verified", "by", "bad"}, func(yield func([]any) bool) {
				for i := range n {
					if !yield([]any{first + int64(i) + 1, site, "", start.UnixNano(), "test", ""}) {
						return
					}
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// replica adds or changes that of a file at a site; the zero time is not verified.
func (w *world) replica(file, site string, verified time.Time) {
	w.t.Helper()
	w.exec(`INSERT INTO replica (file, site, path, verified, by, bad) SELECT id, ?, '', CAST(? AS BIGINT), 'test', '' FROM file WHERE name = ?
		ON CONFLICT (file, site) DO UPDATE SET verified = excluded.verified, bad = ''`, site, verified, file)
}

func (w *world) without(file, site string) {
	w.t.Helper()
	w.exec("DELETE FROM replica WHERE site = ? AND file IN (SELECT id FROM file WHERE name = ?)", site, file)
}

// badness is why a replica is no source any more.
func (w *world) badness(file, site string) (bad string) {
	w.t.Helper()
	w.must(w.db.Read(w.ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT bad FROM replica WHERE site = ? AND file IN (SELECT id FROM file WHERE name = ?)", site, file).Scan(&bad)
	}))
	return bad
}
