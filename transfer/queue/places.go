package queue

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// A replica is a file at a site.
type replica struct {
	site, path, bad string
	verified        time.Time
}

func readSites(tx *db.Tx) (map[string]catalog.Site, error) {
	all, err := db.All(tx, func(rows *db.Rows) (s catalog.Site, err error) {
		return s, rows.Scan(&s.Name, &s.Free, db.When(&s.Seen), &s.Up, &s.Problem)
	}, "SELECT name, free, seen, up, problem FROM site")
	m := map[string]catalog.Site{}
	for _, s := range all {
		m[s.Name] = s
	}
	return m, err
}

// readReplicas returns the replicas of files, by replicaKey.
func readReplicas(tx *db.Tx, files []*file) (map[int64][]replica, error) {
	m := map[int64][]replica{}
	var ids, pairs []int64
	for _, f := range files {
		if f.in < 0 {
			pairs = append(pairs, f.id)
		} else {
			ids = append(ids, f.in)
		}
	}
	if err := readSources(tx, pairs, m); err != nil || len(ids) == 0 {
		return m, err
	}
	type one struct {
		file int64
		replica
	}
	all, err := db.All(tx, func(rows *db.Rows) (o one, err error) {
		return o, rows.Scan(&o.file, &o.site, &o.path, &o.bad, db.When(&o.verified))
	}, "SELECT file, site, path, bad, verified FROM replica WHERE file {{in}}", ids)
	for _, o := range all {
		m[o.file] = append(m[o.file], o.replica)
	}
	return m, err
}

// fillChecksums fills in the checksums that the catalog has by now, for files whose checksums were
// unknown when they were submitted.
func (e *edit) fillChecksums(files []*file) error {
	var without []*file
	for _, f := range files {
		if f.adler == "" && f.in > 0 {
			without = append(without, f)
		}
	}
	known, err := store.Checksums(e.tx, idsOf(without, catalogID))
	for _, f := range without {
		f.adler = known[f.in]
	}
	return err
}

// A dataset is a dataset, or one of its blocks, whose files are requested.
type dataset struct {
	name, block string
	id          int64
	blockID     int64 // 0: all blocks
	upto        int64 // page leaves out files from this number on, which are newer; 0: no limit
}

func (d *dataset) String() string {
	if d.block != "" {
		return "block " + d.block + " of " + d.name
	}
	return d.name
}

func datasetOf(tx *db.Tx, name, block string) (*dataset, error) {
	d := &dataset{name: name, block: block}
	err := tx.Row("SELECT id FROM dataset WHERE name = ?", name).Scan(&d.id)
	if errors.Is(err, db.ErrNone) {
		return nil, unknown("there is no dataset %q", name)
	}
	if err != nil || block == "" {
		return d, err
	}
	err = tx.Row("SELECT id FROM block WHERE dataset = ? AND name = ?", d.id, block).Scan(&d.blockID)
	if errors.Is(err, db.ErrNone) {
		return nil, unknown("%s has no block %q", name, block)
	}
	return d, err
}

// replicaKey returns the key of a file's replicas in readReplicas: the catalog's number, or less
// than 0.
func (f *file) replicaKey() int64 {
	if f.in < 0 { // two jobs may have files with the same destination
		return -f.id
	}
	return f.in
}

// catalogID returns the catalog's number of a file.
func catalogID(f *file) int64 { return f.in }

// size returns the number of files and bytes of the dataset or block.
func (d *dataset) size(tx *db.Tx) (a transfer.Requested, err error) {
	query, id := "SELECT files, bytes FROM dataset WHERE id = ?", d.id
	if d.blockID != 0 {
		query, id = "SELECT files, bytes FROM block WHERE id = ?", d.blockID
	}
	err = tx.Row(query, id).Scan(&a.Files, &a.Bytes)
	return a, err
}

// files returns the files that match a condition.
func (d *dataset) files(tx *db.Tx, where string, args ...any) ([]*file, error) {
	query, of := "SELECT id, name, size, adler FROM file WHERE dataset = ?", []any{d.id}
	if d.blockID != 0 {
		query, of = query+" AND block = ?", append(of, d.blockID)
	}
	return db.All(tx, func(rows *db.Rows) (*file, error) {
		f := &file{}
		return f, rows.Scan(&f.in, &f.name, &f.size, &f.adler)
	}, query+" AND "+where, append(of, args...)...)
}

// page returns the next n files by name.
func (d *dataset) page(tx *db.Tx, after string, n int) ([]*file, error) {
	upto := d.upto
	if upto == 0 {
		upto = math.MaxInt64
	}
	return d.files(tx, "name > ? AND id < ? ORDER BY name LIMIT ?", after, upto, n)
}

// named returns the files with these names, in any order.
func (d *dataset) named(tx *db.Tx, names []string) ([]*file, error) {
	return d.files(tx, "name {{in}}", names)
}

// saveReplicas writes the results of attempts about replicas to the catalog.
func (e *edit) saveReplicas() error {
	if err := store.AddChecksums(e.tx, slices.Collect(maps.Values(e.checksums))); err != nil {
		return err
	}
	if err := store.UpsertReplicas(e.tx, e.placed); err != nil {
		return err
	}
	return store.MarkBad(e.tx, e.bad)
}

// A hold is a destination that is full.
type hold struct {
	until  time.Time
	times  int
	reason string
}

func holdOf(tx *db.Tx, dest string) (h hold, err error) {
	err = tx.Row("SELECT until, times, reason FROM hold WHERE dest = ?", dest).Scan(db.When(&h.until), &h.times, &h.reason)
	if errors.Is(err, db.ErrNone) {
		err = nil
	}
	return h, err
}

// saveFull suspends destinations that have just reported that they are full, for longer each time,
// and ends the suspension of destinations that have accepted a file.
func (e *edit) saveFull() error {
	for dest, full := range e.full {
		h, err := holdOf(e.tx, dest)
		if err != nil {
			return err
		}
		switch {
		case full == "" && h.times == 0, full != "" && e.now.Before(h.until):
			continue
		case full == "":
			_, err = e.tx.Exec("DELETE FROM hold WHERE dest = ?", dest)
		default:
			rest := pause(transfer.Outcome{Fault: transfer.DestFull}, h.times+1, (1+e.q.random())/2)
			_, err = e.tx.Exec(`INSERT INTO hold (dest, until, times, reason) VALUES (?, ?, ?, ?)
				ON CONFLICT (dest) DO UPDATE SET until = excluded.until, times = excluded.times, reason = excluded.reason`, dest, e.now.Add(rest),
				h.times+1, full)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SitesInUse returns the sites of files that have not ended, and of files about which a tape system
// is to be queried.
func (q *Reader) SitesInUse(ctx context.Context) ([]string, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]string, error) {
		used := map[string]bool{}
		for _, query := range []string{
			"SELECT DISTINCT dest FROM request WHERE ended = 0",
			"SELECT DISTINCT l.sites FROM request r CROSS JOIN lane l WHERE l.request = r.id AND r.ended = 0",
			"SELECT DISTINCT site FROM tape WHERE due > 0",
		} {
			all, err := db.Column[string](tx, query)
			if err != nil {
				return nil, err
			}
			for _, sites := range all {
				for site := range strings.SplitSeq(sites, ",") {
					used[site] = true
				}
			}
		}
		return slices.Collect(maps.Keys(used)), nil
	})
}

// SiteURLs returns the URL of a file of a job's request at each site that is a whole server. For a
// request of a dataset it is empty.
func (q *Reader) SiteURLs(ctx context.Context, request int64) (map[string]*url.URL, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) (map[string]*url.URL, error) {
		r, err := requestRow(tx, request)
		if err != nil {
			return nil, err
		}
		urls := map[string]*url.URL{}
		_, err = db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
			var sources, dest, name string
			if err = rows.Scan(&sources, &dest, &name); err != nil {
				return none, err
			}
			all, err := readSourceList(sources)
			for _, s := range append(all, PairSource{Site: r.To, Path: strings.TrimPrefix(name, "/"), URL: dest}) {
				if urls[s.Site] != nil {
					continue
				}
				if u, err := url.Parse(s.URL); err == nil && strings.TrimLeft(u.Path, "/") == s.Path {
					urls[s.Site] = u
				}
			}
			return none, err
		}, "SELECT p.sources, p.dest, i.name FROM pair p JOIN item i ON i.id = p.item WHERE p.item > ? AND p.item < ?", request*perRequest,
			(request+1)*perRequest)
		return urls, err
	})
}
