package queue

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// What the queue reads of the tables of catalog/store, in its own transactions,
// and has it write there.

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

// readReplicas are those of files, by the catalog's number.
func readReplicas(tx *db.Tx, files []*file) (map[int64][]replica, error) {
	m := map[int64][]replica{}
	ids := numbers(files)
	if len(ids) == 0 {
		return m, nil
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

func (e *edit) replicas(files []*file) (map[int64][]replica, error) { return readReplicas(e.tx, files) }

// informed gives files whose checksums were not known when they were asked for
// those that the catalog has learned since.
func (e *edit) informed(files []*file) error {
	var without []*file
	for _, f := range files {
		if f.adler == "" && f.in != 0 {
			without = append(without, f)
		}
	}
	known, err := store.Checksums(e.tx, numbers(without))
	for _, f := range without {
		f.adler = known[f.in]
	}
	return err
}

// A dataset is one, or one of its blocks, that files are asked of.
type dataset struct {
	name, block string
	id          int64
	blockID     int64 // 0: all
	upto        int64 // page leaves out files from this number on, which are newer; 0: none
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

// size is how much it is.
func (d *dataset) size(tx *db.Tx) (a transfer.Requested, err error) {
	if d.blockID == 0 {
		err = tx.Row("SELECT files, bytes FROM dataset WHERE id = ?", d.id).Scan(&a.Files, &a.Bytes)
	} else {
		err = tx.Row("SELECT files, bytes FROM block WHERE id = ?", d.blockID).Scan(&a.Files, &a.Bytes)
	}
	return a, err
}

func scanCatalog(rows *db.Rows) (*file, error) {
	f := &file{}
	return f, rows.Scan(&f.in, &f.name, &f.size, &f.adler)
}

// page are its next n files, by name.
func (d *dataset) page(tx *db.Tx, after string, n int) ([]*file, error) {
	upto := d.upto
	if upto == 0 {
		upto = math.MaxInt64
	}
	if d.blockID == 0 {
		return db.All(tx, scanCatalog, "SELECT id, name, size, adler FROM file WHERE dataset = ? AND name > ? AND id < ? ORDER BY name LIMIT ?", d.id, after, upto, n)
	}
	return db.All(tx, scanCatalog, "SELECT id, name, size, adler FROM file WHERE dataset = ? AND block = ? AND name > ? AND id < ? ORDER BY name LIMIT ?", d.id, d.blockID, after, upto, n)
}

// named are its files of these names, in no order.
func (d *dataset) named(tx *db.Tx, names []string) ([]*file, error) {
	if d.blockID == 0 {
		return db.All(tx, scanCatalog, "SELECT id, name, size, adler FROM file WHERE dataset = ? AND name {{in}}", d.id, names)
	}
	return db.All(tx, scanCatalog, "SELECT id, name, size, adler FROM file WHERE dataset = ? AND block = ? AND name {{in}}", d.id, d.blockID, names)
}

// savePlaced tells the catalog what files' attempts have shown of replicas.
func (e *edit) savePlaced() error {
	if err := store.Learn(e.tx, slices.Collect(maps.Values(e.learned))); err != nil {
		return err
	}
	if err := store.Place(e.tx, e.placed); err != nil {
		return err
	}
	if err := store.Spoil(e.tx, e.spoiled); err != nil {
		return err
	}
	return e.saveHolds()
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

// saveHolds lets nothing begin at destinations that have just said that they are
// full, for longer each time, and takes that back for those that took a file.
func (e *edit) saveHolds() error {
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
			rest := pause(transfer.Outcome{Fault: transfer.DestFull}, h.times+1, (1+e.random())/2)
			_, err = e.tx.Exec(`INSERT INTO hold (dest, until, times, reason) VALUES (?, ?, ?, ?)
				ON CONFLICT (dest) DO UPDATE SET until = excluded.until, times = excluded.times, reason = excluded.reason`, dest, e.now.Add(rest), h.times+1, full)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
