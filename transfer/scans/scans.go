// Package scans keeps the scans of a coordinator: an agent lists a folder of its site, and the files
// that it reports are added to a dataset of the catalog.
package scans

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/say"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
)

const (
	mostProblems = 100  // of a scan that are kept
	mostScans    = 1000 // that are not done
)

// A Store keeps scans in the database of a coordinator. It is safe for concurrent use.
type Store struct {
	DB      *db.DB
	Catalog *store.Store
	Agents  *dispatch.Agents // have the scans that are not done
	Log     *slog.Logger
	Now     func() time.Time
}

const columns = "SELECT id, site, dataset, path, done, files, bytes, problems FROM scan "

func read(r *db.Rows) (s *dispatch.Scan, err error) {
	s = &dispatch.Scan{}
	var problems string
	err = r.Scan(&s.ID, &s.Site, &s.Dataset, &s.Path, &s.Done, &s.Files, &s.Bytes, &problems)
	_ = json.Unmarshal([]byte(problems), &s.Problem) // written by part
	return s, err
}

// Open returns the scans of a database that are not done.
func Open(ctx context.Context, d *db.DB) ([]*dispatch.Scan, error) {
	return db.Select(ctx, d, read, columns+"WHERE NOT done ORDER BY id")
}

// Add has the agent of a site list a folder. by is the name of the caller.
func (s *Store) Add(ctx context.Context, in *transfer.NewScan, by string) (none transfer.ScanState, err error) {
	if slices.Contains(strings.Split(in.Path, "/"), "..") {
		return none, wire.Refuse(http.StatusBadRequest, "%.200q: the path must be below the site's root, without ..", in.Path)
	}
	in.Path = strings.Trim(path.Clean("/"+in.Path), "/")
	if err := catalog.CheckName(in.Dataset); err != nil {
		return none, err
	}
	site, err := s.Catalog.Site(ctx, in.Site)
	many := s.Agents.OpenScans()
	switch {
	case err != nil:
		return none, err
	case site.Kind != catalog.AgentSite || !site.Up:
		return none, wire.Refuse(http.StatusConflict, "site %s has no agent that could list files now: %s", in.Site,
			cmp.Or(site.Problem, "it is a site without an agent"))
	case many >= mostScans:
		return none, wire.Refuse(http.StatusTooManyRequests, "%d scans are running: wait until some have ended", many)
	}
	scan := &dispatch.Scan{Site: in.Site, Dataset: in.Dataset, Path: in.Path}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		const query = "INSERT INTO scan (site, dataset, path, asked_by, made, done, files, bytes, problems) VALUES (?, ?, ?, ?, ?, FALSE, 0, " +
			"0, '[]') RETURNING id"
		return tx.Row(query, scan.Site, scan.Dataset, scan.Path, by, s.Now()).Scan(&scan.ID)
	})
	if err != nil {
		return none, err
	}
	s.Log.Info("scan added", "scan", scan.ID, "site", scan.Site, "path", scan.Path, "dataset", scan.Dataset, "by", by)
	s.Agents.AddScan(scan)
	return scan.ScanState, nil
}

// Get returns the progress of a scan.
func (s *Store) Get(ctx context.Context, id int64) (none transfer.ScanState, err error) {
	list, err := db.Select(ctx, s.DB, read, columns+"WHERE id = ?", id)
	if err != nil {
		return none, err
	}
	if len(list) == 0 {
		return none, wire.Refuse(http.StatusNotFound, "there is no scan %d", id)
	}
	return list[0].ScanState, nil
}

// Found adds the results of scans of a site to the catalog. drop are scans that the agent has to abort.
func (s *Store) Found(ctx context.Context, site string, all []transfer.ScanResult) (drop []int64, err error) {
	for _, f := range all {
		scan, known := s.Agents.Scan(f.Scan)
		if !known || scan.Site != site {
			drop = append(drop, f.Scan)
			continue
		}
		if err := s.part(ctx, scan, f); err != nil {
			return nil, err
		}
	}
	return drop, nil
}

// part adds files to the dataset of a scan. A repeated part does not change the dataset.
func (s *Store) part(ctx context.Context, next dispatch.Scan, f transfer.ScanResult) error {
	next.Problem, next.Done = slices.Clone(next.Problem), f.Done
	if err := s.register(ctx, &next, f.Files); err != nil {
		return err
	}
	if f.Problem != "" {
		next.Problem = append(next.Problem, say.Bounded(f.Problem))
	}
	next.Problem = append([]string{}, next.Problem[:min(len(next.Problem), mostProblems)]...)
	text, err := json.Marshal(next.Problem)
	if err != nil {
		return err
	}
	const query = "UPDATE scan SET done = ?, files = ?, bytes = ?, problems = ? WHERE id = ?"
	if err := s.DB.Exec(ctx, query, next.Done, next.Files, next.Bytes, string(text), next.ID); err != nil {
		return err
	}
	s.Agents.SetScan(next)
	if next.Done {
		s.Log.Info("scan ended", "scan", next.ID, "files", next.Files, "problems", len(next.Problem))
	}
	return nil
}

// register adds files to the catalog and counts them in scan. Files with invalid names, or that
// contradict the catalog, are problems of the scan.
func (s *Store) register(ctx context.Context, scan *dispatch.Scan, files []transfer.ScannedFile) error {
	if len(files) == 0 {
		return nil
	}
	now, before := s.Now(), *scan
	_, err := s.Catalog.Register(ctx, scan.Dataset, scan.Site, "the agent of "+scan.Site, func(yield func(catalog.Entry, error) bool) {
		scan.Files, scan.Bytes, scan.Problem = before.Files, before.Bytes, slices.Clone(before.Problem) // it may be called again
		for _, f := range files {
			e, invalid := entry(scan, f)
			if invalid != nil {
				scan.Problem = append(scan.Problem, say.Bounded(invalid.Error()))
				continue
			}
			if e.Adler != "" {
				e.Verified = now
			}
			scan.Files++
			scan.Bytes += e.Size
			if !yield(e, nil) {
				return
			}
		}
	})
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	scan.Files -= conflict.Files
	for _, one := range conflict.First {
		scan.Problem = append(scan.Problem, fmt.Sprintf("%s: %s", one.Name, one.Why))
	}
	return nil
}

// entry returns a scanned file for the catalog. Its name consists of the name of the dataset and
// its path in the scanned folder, whose subfolders are blocks.
func entry(s *dispatch.Scan, f transfer.ScannedFile) (e catalog.Entry, err error) {
	name, block := s.Dataset+"/"+f.Path, path.Dir(f.Path)
	if block == "." {
		block = ""
	}
	e.File, err = catalog.Check(catalog.File{Name: name, Block: block, Size: f.Size, Adler: f.Adler})
	at := path.Join(s.Path, f.Path)
	if at != strings.TrimPrefix(name, "/") {
		e.Path = at
	}
	return e, err
}
