package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"weir/internal/db"
	"weir/internal/say"
	"weir/transfer/catalog"
)

// Added is the result of Register.
type Added struct {
	New      int64 // files that the catalog did not have
	Known    int64 // files that the catalog had already, unchanged
	Replicas int64 // new replicas, and replicas that replace bad or less recent replicas
	Bytes    int64 // of the new files
}

// A ConflictError lists files that contradict the catalog. All other files were registered.
type ConflictError struct {
	Files int64      // the number of files
	First []Conflict // at most 100 of them
}

// A Conflict is a file that contradicts the catalog, with the reason.
type Conflict struct {
	Name string
	Why  string // a sentence without its subject's name
}

// Error returns the number of files and the first few conflicts.
func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s refused: what is said contradicts what is known", say.Plural(int(e.Files), "file"))
	for i, c := range e.First {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", e.Files-3)
			break
		}
		fmt.Fprintf(&b, "; %q: %s", c.Name, c.Why)
	}
	return b.String()
}

func (e *ConflictError) add(name, why string) {
	if e.Files++; len(e.First) < 100 {
		e.First = append(e.First, Conflict{name, why})
	}
}

// Register adds files to a dataset, which is created if it is new, with a replica of each at a
// site. by is the reader of the checksums there. A file that the catalog has already gets another
// replica, and the checksums that were missing. A file is skipped if its size, checksums, block or
// dataset contradict the catalog, and a *ConflictError lists these files. The same files may be
// registered again.
//
// It accepts any number of files and holds 5000 in memory; each 5000 are one transaction. An error
// that files yields ends it after the files before the error are written.
func (s *Store) Register(ctx context.Context, dataset, site, by string, files iter.Seq2[catalog.Entry, error]) (Added, error) {
	var sum Added
	var wrong ConflictError
	if err := catalog.CheckName(dataset); err != nil {
		return sum, err
	}
	r := &registration{dataset: dataset, site: site, by: by}
	flush := func() error {
		var got Added
		var conflicts ConflictError
		err := s.db.Write(ctx, func(t *db.Tx) (err error) {
			conflicts = ConflictError{}
			got, err = r.write(t, &conflicts)
			return err
		})
		if err != nil {
			return err
		}
		sum = Added{sum.New + got.New, sum.Known + got.Known, sum.Replicas + got.Replicas, sum.Bytes + got.Bytes}
		for _, c := range conflicts.First {
			wrong.add(c.Name, c.Why)
		}
		wrong.Files += conflicts.Files - int64(len(conflicts.First))
		r.batch = r.batch[:0]
		return nil
	}
	var ended error
	for e, err := range files {
		if err == nil {
			e, err = catalog.CheckEntry(e)
		}
		if ended = err; err != nil {
			break
		}
		if r.batch = append(r.batch, e); len(r.batch) == page {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	// This also flushes an empty batch, so that a missing site is reported.
	if err := errors.Join(flush(), ended); err != nil {
		return sum, err
	}
	if wrong.Files > 0 {
		return sum, &wrong
	}
	return sum, nil
}

// A registration is the state of a Register call: the files that are being added to the catalog.
type registration struct {
	dataset, site, by string
	batch             []catalog.Entry
	id                int64 // of the dataset
	bytes             int64 // that it has
	blocks            map[string]int64
}

// A knownFile is a file of the catalog that has the name of a file in the batch.
type knownFile struct {
	catalog.File
	id, dataset int64
}

// write registers one batch.
func (r *registration) write(t *db.Tx, wrong *ConflictError) (a Added, err error) {
	next, err := lockFiles(t)
	if err != nil {
		return a, err
	}
	if err = r.begin(t); err != nil {
		return a, err
	}
	known, err := r.known(t)
	if err != nil {
		return a, err
	}
	var fresh []catalog.Entry
	var all []Placement
	var fill []knownFile
	for _, e := range r.batch {
		k, found := known[e.Name]
		if found {
			if why := r.conflict(k, e); why != "" {
				wrong.add(e.Name, why)
				continue
			}
			a.Known++
		} else if e.Size > catalog.MostBytes-r.bytes-a.Bytes {
			wrong.add(e.Name, "its dataset would have more than 1 EiB")
			continue
		} else {
			k = knownFile{e.File, next, r.id}
			next++
			fresh = append(fresh, e)
			a.New++
			a.Bytes += e.Size
		}
		if was := k.File; found {
			k.Adler, k.More = cmp.Or(k.Adler, e.Adler), catalog.Merged(k.More, e.More)
			if k.File != was {
				fill = append(fill, k)
			}
		}
		known[e.Name] = k
		all = append(all, Placement{File: k.id, Site: r.site, Path: e.Path, Verified: e.Verified, By: r.byOf(e)})
	}
	if err = r.insert(t, fresh, next-int64(len(fresh))); err != nil {
		return a, err
	}
	if err = fillIn(t, fill); err != nil {
		return a, err
	}
	a.Replicas, err = register(t, r.id, r.site, all, int64(len(fresh)) == int64(len(all)))
	return a, err
}

func (r *registration) byOf(e catalog.Entry) string {
	if e.Verified.IsZero() {
		return ""
	}
	return r.by
}

// lockFiles serializes the transactions that add or remove files, and returns the number of the
// next new file.
func lockFiles(t *db.Tx) (next int64, err error) {
	err = t.Row("UPDATE counter SET next = next WHERE name = 'file' RETURNING next").Scan(&next)
	return next, err
}

// Next returns the number of the next new file. Files that are registered later have this number or
// a larger number.
func Next(t *db.Tx) (next int64, err error) {
	err = t.Row("SELECT next FROM counter WHERE name = 'file'").Scan(&next)
	return next, err
}

// begin finds the site, and finds or creates the dataset and the blocks.
func (r *registration) begin(t *db.Tx) error {
	var name string
	if err := t.Row("SELECT name FROM site WHERE name = ? {{share}}", r.site).Scan(&name); errors.Is(err, db.ErrNone) {
		return missing("site", r.site)
	} else if err != nil {
		return err
	}
	if _, err := t.Exec("INSERT INTO dataset (name, blocks, files, bytes) VALUES (?, 0, 0, 0) ON CONFLICT (name) DO NOTHING",
		r.dataset); err != nil {
		return err
	}
	var err error
	if err = t.Row("SELECT id, bytes FROM dataset WHERE name = ?", r.dataset).Scan(&r.id, &r.bytes); err != nil {
		return err
	}
	r.blocks = map[string]int64{}
	return nil
}

// known returns the files of the catalog that have the names of the batch.
func (r *registration) known(t *db.Tx) (map[string]knownFile, error) {
	names := make([]string, len(r.batch))
	for i, e := range r.batch {
		names[i] = e.Name
	}
	known := make(map[string]knownFile, len(names))
	_, err := db.All(t, func(rows *db.Rows) (k knownFile, err error) {
		err = rows.Scan(&k.id, &k.Name, &k.Block, &k.Size, &k.Adler, &k.More, &k.dataset)
		known[k.Name] = k
		return k, err
	}, "SELECT f.id, f.name, b.name, f.size, f.adler, f.more, f.dataset FROM file f JOIN block b ON b.id = f.block WHERE f.name {{in}}", names)
	return known, err
}

func (r *registration) conflict(k knownFile, e catalog.Entry) string {
	switch {
	case k.dataset != r.id:
		return "it is part of another dataset"
	case k.Block != "" && e.Block != "" && k.Block != e.Block:
		return fmt.Sprintf("it is said to be in block %q, it is in %q", e.Block, k.Block)
	default:
		return catalog.Contradicts(k.File, e.File)
	}
}

// insert adds new files, numbered from first on, and updates the sums of their blocks and dataset.
func (r *registration) insert(t *db.Tx, fresh []catalog.Entry, first int64) error {
	if len(fresh) == 0 {
		return nil
	}
	made, err := r.find(t, fresh)
	if err != nil {
		return err
	}
	id := first
	var bytes int64
	sums := map[string][2]int64{}
	_, err = t.Bulk("file", []string{"id", "name", "dataset", "block", "size", "adler", "more"}, func(yield func([]any) bool) {
		row := make([]any, 7)
		for _, e := range fresh {
			row[0], row[1], row[2], row[3], row[4], row[5], row[6] = id, e.Name, r.id, r.blocks[e.Block], e.Size, e.Adler, e.More
			if !yield(row) {
				return
			}
			id++
			bytes += e.Size
			sum := sums[e.Block]
			sums[e.Block] = [2]int64{sum[0] + 1, sum[1] + e.Size}
		}
	})
	if err != nil {
		return err
	}
	if _, err = t.Exec("UPDATE counter SET next = ? WHERE name = 'file'", id); err != nil {
		return err
	}
	if _, err = t.Exec("UPDATE dataset SET blocks = blocks + ?, files = files + ?, bytes = bytes + ? WHERE id = ?", made, len(fresh), bytes,
		r.id); err != nil {
		return err
	}
	_, err = t.Many("UPDATE block SET files = files + ?, bytes = bytes + ? WHERE id = ?", func(yield func([]any) bool) {
		for name, sum := range sums {
			if !yield([]any{sum[0], sum[1], r.blocks[name]}) {
				return
			}
		}
	})
	return err
}

// find finds or creates the blocks of new files, and returns the number of blocks that it created.
func (r *registration) find(t *db.Tx, fresh []catalog.Entry) (made int, err error) {
	var names []string
	for _, e := range fresh {
		if _, seen := r.blocks[e.Block]; !seen {
			r.blocks[e.Block] = 0
			names = append(names, e.Block)
		}
	}
	_, err = db.All(t, func(rows *db.Rows) (name string, err error) {
		var id int64
		err = rows.Scan(&name, &id)
		r.blocks[name] = id
		return name, err
	}, "SELECT name, id FROM block WHERE dataset = ? AND name {{in}}", r.id, names)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if r.blocks[name] != 0 {
			continue
		}
		var id int64
		if err := t.Row("INSERT INTO block (dataset, name, files, bytes) VALUES (?, ?, 0, 0) RETURNING id", r.id, name).Scan(&id); err != nil {
			return 0, err
		}
		r.blocks[name] = id
		made++
	}
	return made, nil
}

// fillIn writes the checksums that were missing in the catalog.
func fillIn(t *db.Tx, files []knownFile) error {
	_, err := t.Many("UPDATE file SET adler = ?, more = ? WHERE id = ?", func(yield func([]any) bool) {
		for _, k := range files {
			if !yield([]any{k.Adler, k.More, k.id}) {
				return
			}
		}
	})
	return err
}

// register writes the replicas of registered files. Unlike UpsertReplicas, it does not overwrite
// better data: a replica that was verified later stays.
func register(t *db.Tx, dataset int64, site string, all []Placement, fresh bool) (n int64, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	if fresh { // no replica can be there
		if n, err = t.Bulk("replica", []string{"file", "site", "path", "verified", "by", "bad"}, func(yield func([]any) bool) {
			row := make([]any, 6)
			for _, p := range all {
				row[0], row[1], row[2], row[3], row[4], row[5] = p.File, p.Site, p.Path, p.Verified, p.By, ""
				if !yield(row) {
					return
				}
			}
		}); err == nil {
			_, err = t.Exec("INSERT INTO presence (dataset, site, files) VALUES (?, ?, ?) ON CONFLICT (dataset, site) DO UPDATE SET files = "+
				"presence.files + excluded.files", dataset, site, n)
		}
		return n, err
	}
	c, err := censusOf(t, all, func(p Placement) (int64, string) { return p.File, p.Site })
	if err != nil {
		return 0, err
	}
	var better []Placement
	for _, p := range all {
		was, there := c.was[spot{p.File, p.Site}]
		if !there || was.verified.Before(p.Verified) || was.good && was.verified.IsZero() && was.path != p.Path {
			c.set(p.File, p.Site, replica{true, p.Verified, p.Path})
			better = append(better, p)
		}
	}
	if err := place(t, better); err != nil {
		return 0, err
	}
	return int64(len(better)), c.save(t)
}
