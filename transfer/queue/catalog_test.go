package queue

import (
	"fmt"
	"iter"
	"time"

	"weir/internal/db"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// site adds or changes a site.
func (w *world) site(name string, up bool, free int64) {
	w.t.Helper()
	_ = w.store.AddSite(w.ctx, catalog.Site{Name: name, Kind: "agent"}) // it may exist already
	w.must(w.store.Saw(w.ctx, name, w.clock(), up, free, ""))
}

func (w *world) down(name, problem string) {
	w.t.Helper()
	w.must(w.store.Saw(w.ctx, name, time.Time{}, false, -1, problem))
}

func fileName(set string, i int) string { return fmt.Sprintf("%s/f%07d", set, i) }

// entries returns files of 1000 bytes and more.
func entries(set string, from, to int) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		for i := from; i < to; i++ {
			f := catalog.File{Name: fileName(set, i), Block: fmt.Sprintf("b%d", i/1000), Size: int64(1000 + i), Adler: fmt.Sprintf("%08x", i+1)}
			if !yield(catalog.Entry{File: f, Verified: start}, nil) {
				return
			}
		}
	}
}

// dataset registers a dataset of n files at sites.
func (w *world) dataset(name string, n int, sites ...string) {
	w.t.Helper()
	for _, site := range sites {
		w.register(name, 0, n, site)
	}
}

func (w *world) register(name string, from, to int, site string) {
	w.t.Helper()
	_, err := w.store.Register(w.ctx, name, site, "test", entries(name, from, to))
	w.must(err)
}

// spoil marks a replica as bad.
func (w *world) spoil(file, site, why string) {
	w.t.Helper()
	w.must(w.db.Write(w.ctx, func(tx *db.Tx) error {
		var id int64
		if err := tx.Row("SELECT id FROM file WHERE name = ?", file).Scan(&id); err != nil {
			return err
		}
		return store.MarkBad(tx, []store.BadReplica{{File: id, Site: site, Why: why}})
	}))
}

// badness returns the reason why a replica is bad.
func (w *world) badness(file, site string) string {
	w.t.Helper()
	found, err := w.store.Find(w.ctx, file)
	w.must(err)
	for _, r := range found[0].Replicas {
		if r.Site == site {
			return r.Bad
		}
	}
	return "no replica"
}
