package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"weir/internal/db"
	"weir/transfer/catalog"
)

// Datasets returns up to n datasets (0: 1000) with a name after the given name, sorted by name. It
// reads only sums, so that its cost does not depend on the number of files.
func (s *Store) Datasets(ctx context.Context, after string, n int) (all []catalog.Dataset, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		all, err = datasets(t, "WHERE name > ? ORDER BY name LIMIT ?", after, limit(n))
		return err
	})
	return all, err
}

// Dataset returns one dataset.
func (s *Store) Dataset(ctx context.Context, name string) (one catalog.Dataset, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		all, err := datasets(t, "WHERE name = ?", name)
		if err == nil && len(all) == 0 {
			return missing("dataset", name)
		}
		if err == nil {
			one = all[0]
		}
		return err
	})
	return one, err
}

func datasets(t *db.Tx, where string, args ...any) ([]catalog.Dataset, error) {
	var ids []int64
	at := map[int64]map[string]int64{}
	all, err := db.All(t, func(r *db.Rows) (d catalog.Dataset, err error) {
		var id int64
		d.At = map[string]int64{}
		err = r.Scan(&id, &d.Name, &d.Blocks, &d.Files, &d.Bytes)
		ids, at[id] = append(ids, id), d.At
		return d, err
	}, "SELECT id, name, blocks, files, bytes FROM dataset "+where, args...)
	if err != nil {
		return nil, err
	}
	rows, err := t.Query("SELECT dataset, site, files FROM presence WHERE files > 0 AND dataset {{in}}", ids)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id, n int64
		var site string
		if err := rows.Scan(&id, &site, &n); err != nil {
			return nil, err
		}
		at[id][site] = n
	}
	return all, rows.Err()
}

func datasetID(t *db.Tx, name string) (id int64, err error) {
	if err = t.Row("SELECT id FROM dataset WHERE name = ?", name).Scan(&id); errors.Is(err, db.ErrNone) {
		err = missing("dataset", name)
	}
	return id, err
}

// A Placed file is a file with its replicas, by site.
type Placed struct {
	catalog.File
	Replicas []catalog.Replica `json:"replicas,omitempty"`
}

const fileColumns = "SELECT f.id, f.name, b.name, f.size, f.adler, f.adler_by, f.more FROM file f JOIN block b ON b.id = f.block "

// Files returns up to n files (0: 1000) of a dataset with their replicas, sorted by name. The names
// come after the given name.
func (s *Store) Files(ctx context.Context, dataset, after string, n int) (all []Placed, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		id, err := datasetID(t, dataset)
		if err == nil {
			all, err = placed(t, fileColumns+"WHERE f.dataset = ? AND f.name > ? ORDER BY f.name LIMIT ?", id, after, limit(n))
		}
		return err
	})
	return all, err
}

// Find returns the files of the catalog that have one of these names, sorted by name.
func (s *Store) Find(ctx context.Context, names ...string) (all []Placed, err error) {
	err = s.db.Read(ctx, func(t *db.Tx) error {
		all, err = placed(t, fileColumns+"WHERE f.name {{in}} ORDER BY f.name", names)
		return err
	})
	return all, err
}

// placed returns the files that a query finds, with their replicas.
func placed(t *db.Tx, query string, args ...any) ([]Placed, error) {
	var ids []int64
	place := map[int64]int{}
	all, err := db.All(t, func(r *db.Rows) (p Placed, err error) {
		var id int64
		err = r.Scan(&id, &p.Name, &p.Block, &p.Size, &p.Adler, &p.By, &p.More)
		place[id] = len(ids)
		ids = append(ids, id)
		return p, err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	rows, err := t.Query("SELECT file, site, path, verified, by, bad FROM replica WHERE file {{in}} ORDER BY site", ids)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id int64
		var r catalog.Replica
		if err := rows.Scan(&id, &r.Site, &r.Path, db.When(&r.Verified), &r.By, &r.Bad); err != nil {
			return nil, err
		}
		p := &all[place[id]]
		r.File = p.Name
		p.Replicas = append(p.Replicas, r)
	}
	return all, rows.Err()
}

// RemoveDataset removes a dataset, its files and their replicas from the catalog. No file is
// removed at any site. After an interruption, it may be called again.
func (s *Store) RemoveDataset(ctx context.Context, name string) error {
	for {
		var more bool
		err := s.db.Write(ctx, func(t *db.Tx) (err error) {
			more, err = forget(t, name)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// forget removes some files of a dataset, or the dataset if it has no files.
func forget(t *db.Tx, name string) (more bool, err error) {
	if _, err := lockFiles(t); err != nil {
		return false, err
	}
	var id int64
	err = t.Row("SELECT id FROM dataset WHERE name = ? {{lock}}", name).Scan(&id)
	if errors.Is(err, db.ErrNone) {
		return false, missing("dataset", name)
	}
	if err != nil {
		return false, err
	}
	gone, err := someOf(t, id)
	if err != nil {
		return false, err
	}
	if len(gone.ids) == 0 {
		for _, q := range []string{"DELETE FROM presence WHERE dataset = ?", "DELETE FROM block WHERE dataset = ?",
			"DELETE FROM dataset WHERE id = ?"} {
			if _, err := t.Exec(q, id); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	// The sums are updated first, because other transactions wait for their rows.
	if _, err = t.Exec("UPDATE dataset SET files = files - ?, bytes = bytes - ? WHERE id = ?", len(gone.ids), gone.bytes, id); err != nil {
		return false, err
	}
	if _, err = t.Many("UPDATE block SET files = files - ?, bytes = bytes - ? WHERE id = ?", gone.ofBlocks); err != nil {
		return false, err
	}
	if _, err = t.Exec("UPDATE presence SET files = files - (SELECT count(*) FROM replica r WHERE r.site = presence.site AND r.bad = '' AND "+
		"r.file {{in}}) WHERE dataset = ?", gone.ids, id); err != nil {
		return false, err
	}
	for _, q := range []string{"DELETE FROM replica WHERE file {{in}}", "DELETE FROM file WHERE id {{in}}"} {
		if _, err = t.Exec(q, gone.ids); err != nil {
			return false, err
		}
	}
	return true, nil
}

// A leaving is a set of files that are being removed from the catalog.
type leaving struct {
	ids    []int64
	bytes  int64
	blocks map[int64][2]int64 // files and bytes of each
}

// someOf returns up to one page of the files of a dataset.
func someOf(t *db.Tx, dataset int64) (*leaving, error) {
	l := &leaving{blocks: map[int64][2]int64{}}
	rows, err := t.Query("SELECT id, block, size FROM file WHERE dataset = ? ORDER BY name LIMIT ?", dataset, page)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id, block, size int64
		if err := rows.Scan(&id, &block, &size); err != nil {
			return nil, err
		}
		l.ids = append(l.ids, id)
		l.bytes += size
		l.blocks[block] = [2]int64{l.blocks[block][0] + 1, l.blocks[block][1] + size}
	}
	return l, rows.Err()
}

// ofBlocks yields the number of files and bytes that each block loses, by block number.
func (l *leaving) ofBlocks(yield func([]any) bool) {
	for _, block := range slices.Sorted(maps.Keys(l.blocks)) {
		if !yield([]any{l.blocks[block][0], l.blocks[block][1], block}) {
			return
		}
	}
}
