package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
)

// A Placement is a file that has arrived at a site.
type Placement struct {
	File     int64 // its number in the table file
	Site     string
	Path     string    // below the site's root; "" is its name
	Verified time.Time // when its checksum was last read there; zero: never
	By       string
}

// UpsertReplicas stores good replicas and overwrites the existing rows of the same files at the
// same sites. Files and sites that are no longer in the catalog are left out.
func UpsertReplicas(t *db.Tx, all []Placement) error {
	c, err := censusOf(t, all, func(p Placement) (int64, string) { return p.File, p.Site })
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p Placement) bool { return !c.has(p.File, p.Site) })
	for _, p := range all {
		c.set(p.File, p.Site, replica{true, p.Verified, p.Path})
	}
	if err := place(t, all); err != nil {
		return err
	}
	return c.save(t)
}

// place writes all placements that differ only in their files with one statement, at a fraction of
// the cost.
func place(t *db.Tx, all []Placement) error {
	alike := map[Placement][]int64{}
	var order []Placement
	for _, p := range all {
		id := p.File
		p.File = 0
		if alike[p] == nil {
			order = append(order, p)
		}
		alike[p] = append(alike[p], id)
	}
	_, err := t.Many(`INSERT INTO replica (file, site, path, verified, by, bad)
		SELECT id, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), '' FROM file WHERE id {{in}}
		ON CONFLICT (file, site) DO UPDATE SET path = excluded.path, verified = excluded.verified, by = excluded.by, bad = ''`,
		db.Each(order, func(p Placement) []any {
			return []any{p.Site, p.Path, p.Verified, p.By, alike[p]}
		}))
	return err
}

// A BadReplica is a replica that is no longer a source.
type BadReplica struct {
	File int64
	Site string
	Why  string // a sentence, not ""
}

// MarkBad marks replicas as bad. Replicas that are not in the catalog are left out.
func MarkBad(t *db.Tx, all []BadReplica) error {
	c, err := censusOf(t, all, func(b BadReplica) (int64, string) { return b.File, b.Site })
	if err != nil {
		return err
	}
	for _, b := range all {
		if r, there := c.was[spot{b.File, b.Site}]; there {
			r.good = false
			c.set(b.File, b.Site, r)
		}
	}
	_, err = t.Many("UPDATE replica SET bad = ? WHERE file = ? AND site = ?",
		db.Each(all, func(b BadReplica) []any { return []any{cmp.Or(b.Why, "bad"), b.File, b.Site} }))
	if err != nil {
		return err
	}
	return c.save(t)
}

// A census updates the counts of table presence while replicas change.
type census struct {
	dataset map[int64]int64 // of files
	sites   map[string]bool // that exist
	was     map[spot]replica
	more    map[counted]int64
}

// A replica is the state of a file at a site.
type replica struct {
	good     bool
	verified time.Time
	path     string
}

// A spot identifies a file at a site, a counted the files of a dataset at a site.
type (
	spot struct {
		file int64
		site string
	}
	counted struct {
		dataset int64
		site    string
	}
)

// censusOf reads the replicas that are to change, and locks their counts. All transactions lock in
// the same order.
func censusOf[T any](t *db.Tx, all []T, of func(T) (int64, string)) (*census, error) {
	c := &census{sites: map[string]bool{}, was: map[spot]replica{}, more: map[counted]int64{}}
	if len(all) == 0 {
		return c, nil
	}
	var ids []int64
	sites := map[string]bool{}
	for _, one := range all {
		id, site := of(one)
		ids = append(ids, id)
		sites[site] = true
	}
	if err := c.stay(t, ids, sites); err != nil {
		return nil, err
	}
	for _, one := range all {
		if id, site := of(one); c.has(id, site) {
			c.more[counted{c.dataset[id], site}] = 0
		}
	}
	_, err := t.Many("INSERT INTO presence (dataset, site, files) VALUES (?, ?, 0) ON CONFLICT (dataset, site) DO UPDATE SET files "+
		"= presence.files", db.Each(c.keys(), func(k counted) []any { return []any{k.dataset, k.site} }))
	if err == nil {
		err = c.look(t, ids)
	}
	return c, err
}

// stay finds the sites and the datasets of the files, and keeps them from being removed until the
// transaction ends.
func (c *census) stay(t *db.Tx, ids []int64, sites map[string]bool) error {
	names, err := db.Column[string](t, "SELECT name FROM site WHERE name {{in}} ORDER BY name {{share}}", slices.Collect(maps.Keys(sites)))
	if err != nil {
		return err
	}
	for _, name := range names {
		c.sites[name] = true
	}
	if err = c.find(t, ids); err != nil || t.Dialect() == db.SQLite {
		return err
	}
	if _, err = db.Column[int64](t, "SELECT id FROM dataset WHERE id {{in}} ORDER BY id {{share}}",
		slices.Collect(maps.Values(c.dataset))); err != nil {
		return err
	}
	return c.find(t, ids) // files may have been removed meanwhile
}

func (c *census) find(t *db.Tx, ids []int64) error {
	c.dataset = map[int64]int64{}
	_, err := db.All(t, func(rows *db.Rows) (id int64, err error) {
		var dataset int64
		err = rows.Scan(&id, &dataset)
		c.dataset[id] = dataset
		return id, err
	}, "SELECT id, dataset FROM file WHERE id {{in}}", ids)
	return err
}

func (c *census) has(file int64, site string) bool { return c.dataset[file] != 0 && c.sites[site] }

// look reads the state of replicas.
func (c *census) look(t *db.Tx, ids []int64) error {
	_, err := db.All(t, func(rows *db.Rows) (s spot, err error) {
		var r replica
		var bad string
		err = rows.Scan(&s.file, &s.site, &bad, db.When(&r.verified), &r.path)
		r.good = bad == ""
		c.was[s] = r
		return s, err
	}, "SELECT file, site, bad, verified, path FROM replica WHERE file {{in}}", ids)
	return err
}

func (c *census) keys() []counted {
	return slices.SortedFunc(maps.Keys(c.more), func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.site, b.site))
	})
}

// set records the new state of a replica.
func (c *census) set(file int64, site string, r replica) {
	s := spot{file, site}
	k := counted{c.dataset[file], site}
	if c.was[s].good {
		c.more[k]--
	}
	if r.good {
		c.more[k]++
	}
	c.was[s] = r
}

func (c *census) save(t *db.Tx) error {
	changed := slices.DeleteFunc(c.keys(), func(k counted) bool { return c.more[k] == 0 })
	_, err := t.Many("UPDATE presence SET files = files + ? WHERE dataset = ? AND site = ?",
		db.Each(changed, func(k counted) []any { return []any{c.more[k], k.dataset, k.site} }))
	return err
}

// A Checksum is the checksum of a file that was registered without one. By is its reader.
type Checksum struct {
	File  int64
	Adler string // 8 hex digits
	By    string
}

// AddChecksums adds checksums to files that have no checksum in the catalog. Existing checksums
// stay.
func AddChecksums(t *db.Tx, all []Checksum) error {
	_, err := t.Many("UPDATE file SET adler = ?, adler_by = ? WHERE id = ? AND adler = ''",
		db.Each(all, func(c Checksum) []any { return []any{c.Adler, c.By, c.File} }))
	return err
}

// Checksums returns the checksums of files in the catalog, by number, and locks the files. If two
// different checksums of a file are read at the same time, the second is thus refused.
func Checksums(t *db.Tx, files []int64) (map[int64]string, error) {
	known := map[int64]string{}
	if len(files) == 0 {
		return known, nil
	}
	_, err := db.All(t, func(rows *db.Rows) (id int64, err error) {
		var adler string
		err = rows.Scan(&id, &adler)
		known[id] = adler
		return id, err
	}, "SELECT id, adler FROM file WHERE id {{in}} ORDER BY id {{lock}}", files)
	return known, err
}
