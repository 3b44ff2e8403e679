package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/internal/say"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
)

const (
	mostProblems = 100  // of a scan that are kept
	mostScans    = 1000 // that are not done, at once
)

// datasets lists datasets by name: those after a name, or from a name on.
func (c *Coordinator) datasets(q *api.Call, _ *struct{}) ([]catalog.Dataset, error) {
	from, after, rows := q.Param("from"), q.Param("after"), q.Rows()
	list, err := c.catalog.Datasets(q.Context(), max(from, after), rows)
	if err != nil || from <= after {
		return api.OrEmpty(list), err
	}
	first, err := c.catalog.Dataset(q.Context(), from)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return api.OrEmpty(list), nil
	case err != nil:
		return nil, err
	}
	list = slices.Insert(list, 0, first)
	return list[:min(len(list), rows)], nil
}

func (c *Coordinator) dataset(q *api.Call, _ *struct{}) (catalog.Dataset, error) {
	return c.catalog.Dataset(q.Context(), q.Param("name"))
}

func (c *Coordinator) files(q *api.Call, _ *struct{}) ([]transfer.FileReplicas, error) {
	list, err := c.catalog.Files(q.Context(), q.Param("name"), q.Param("after"), q.Rows())
	all := make([]transfer.FileReplicas, 0, len(list))
	for _, p := range list {
		all = append(all, transfer.FileReplicas{File: p.File, Replicas: p.Replicas})
	}
	return all, err
}

// addFiles adds files that a site has to a dataset. Agents add files through scans only.
func (c *Coordinator) addFiles(q *api.Call, in *transfer.NewFiles) (none catalog.Dataset, err error) {
	if len(in.Files) == 0 || len(in.Files) > transfer.MaxNewFiles {
		return none, wire.Refuse(http.StatusBadRequest, "expected 1 to %d files at a time, not %d", transfer.MaxNewFiles, len(in.Files))
	}
	if len(in.By) > 200 {
		return none, wire.Refuse(http.StatusBadRequest, "verified_by must have at most 200 bytes")
	}
	now := c.now()
	_, err = c.catalog.Register(q.Context(), in.Dataset, in.Site, in.By, func(yield func(catalog.Entry, error) bool) {
		for _, f := range in.Files {
			e := catalog.Entry{File: f.File, Path: f.Path}
			if in.By != "" && f.Adler != "" {
				e.Verified = now
			}
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return none, err
	}
	c.wakeAll()
	return c.catalog.Dataset(q.Context(), in.Dataset)
}

func (c *Coordinator) removeDataset(q *api.Call, in *catalog.Dataset) (none struct{}, err error) {
	if err = c.catalog.RemoveDataset(q.Context(), in.Name); err == nil {
		c.log.Info("dataset removed from the catalog", "dataset", in.Name, "by", q.Name)
	}
	return none, err
}

const scanColumns = "SELECT id, site, dataset, path, done, files, bytes, problems FROM scan "

func readScan(r *db.Rows) (s *dispatch.Scan, err error) {
	s = &dispatch.Scan{}
	var problems string
	err = r.Scan(&s.ID, &s.Site, &s.Dataset, &s.Path, &s.Done, &s.Files, &s.Bytes, &problems)
	_ = json.Unmarshal([]byte(problems), &s.Problem) // written by scannedPart
	return s, err
}

// addScan has the agent of a site list a folder.
func (c *Coordinator) addScan(q *api.Call, in *transfer.NewScan) (none transfer.ScanState, err error) {
	if slices.Contains(strings.Split(in.Path, "/"), "..") {
		return none, wire.Refuse(http.StatusBadRequest, "%.200q: the path must be below the site's root, without ..", in.Path)
	}
	in.Path = strings.Trim(path.Clean("/"+in.Path), "/")
	if err := catalog.CheckName(in.Dataset); err != nil {
		return none, err
	}
	site, err := c.catalog.Site(q.Context(), in.Site)
	many := c.agents.OpenScans()
	switch {
	case err != nil:
		return none, err
	case site.Kind != catalog.AgentSite || !site.Up:
		return none, wire.Refuse(http.StatusConflict, "site %s has no agent that could list files now: %s", in.Site,
			cmp.Or(site.Problem, "it is a site without an agent"))
	case many >= mostScans:
		return none, wire.Refuse(http.StatusTooManyRequests, "%d scans are running: wait until some have ended", many)
	}
	s := &dispatch.Scan{Site: in.Site, Dataset: in.Dataset, Path: in.Path}
	err = c.db.Write(q.Context(), func(tx *db.Tx) error {
		const query = "INSERT INTO scan (site, dataset, path, asked_by, made, done, files, bytes, problems) VALUES (?, ?, ?, ?, ?, FALSE, 0, " +
			"0, '[]') RETURNING id"
		return tx.Row(query, s.Site, s.Dataset, s.Path, q.Name, c.now()).Scan(&s.ID)
	})
	if err != nil {
		return none, err
	}
	c.log.Info("scan added", "scan", s.ID, "site", s.Site, "path", s.Path, "dataset", s.Dataset, "by", q.Name)
	c.agents.AddScan(s)
	return s.ScanState, nil
}

func (c *Coordinator) showScan(q *api.Call, _ *struct{}) (transfer.ScanState, error) {
	list, err := db.Select(q.Context(), c.db, readScan, scanColumns+"WHERE id = ?", q.Number)
	if err == nil && len(list) == 0 {
		err = wire.Refuse(http.StatusNotFound, "there is no scan %d", q.Number)
	}
	if err != nil {
		return transfer.ScanState{}, err
	}
	return list[0].ScanState, nil
}

// scanned adds the results of scans to the catalog. drop are scans that the agent has to abort.
func (c *Coordinator) scanned(ctx context.Context, site string, all []transfer.ScanResult) (drop []int64, err error) {
	for _, f := range all {
		s, known := c.agents.Scan(f.Scan)
		if !known || s.Site != site {
			drop = append(drop, f.Scan)
			continue
		}
		if err := c.scannedPart(ctx, s, f); err != nil {
			return nil, err
		}
	}
	return drop, nil
}

// scannedPart adds files to the dataset of a scan. A repeated part does not change the dataset.
func (c *Coordinator) scannedPart(ctx context.Context, next dispatch.Scan, f transfer.ScanResult) error {
	next.Problem, next.Done = slices.Clone(next.Problem), f.Done
	if err := c.addScanned(ctx, &next, f.Files); err != nil {
		return err
	}
	if f.Problem != "" {
		next.Problem = append(next.Problem, say.Bounded(f.Problem))
	}
	next.Problem = next.Problem[:min(len(next.Problem), mostProblems)]
	text, err := json.Marshal(api.OrEmpty(next.Problem))
	if err != nil {
		return err
	}
	const query = "UPDATE scan SET done = ?, files = ?, bytes = ?, problems = ? WHERE id = ?"
	if err := c.db.Exec(ctx, query, next.Done, next.Files, next.Bytes, string(text), next.ID); err != nil {
		return err
	}
	c.agents.SetScan(next)
	if next.Done {
		c.log.Info("scan ended", "scan", next.ID, "files", next.Files, "problems", len(next.Problem))
	}
	return nil
}

// addScanned adds files to the catalog and counts them in s. Files with invalid names, or that
// contradict the catalog, are problems of the scan.
func (c *Coordinator) addScanned(ctx context.Context, s *dispatch.Scan, files []transfer.ScannedFile) error {
	if len(files) == 0 {
		return nil
	}
	now, before := c.now(), *s
	_, err := c.catalog.Register(ctx, s.Dataset, s.Site, "the agent of "+s.Site, func(yield func(catalog.Entry, error) bool) {
		s.Files, s.Bytes, s.Problem = before.Files, before.Bytes, slices.Clone(before.Problem) // it may be called again
		for _, f := range files {
			e, invalid := entry(s, f)
			if invalid != nil {
				s.Problem = append(s.Problem, say.Bounded(invalid.Error()))
				continue
			}
			if e.Adler != "" {
				e.Verified = now
			}
			s.Files++
			s.Bytes += e.Size
			if !yield(e, nil) {
				return
			}
		}
	})
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	s.Files -= conflict.Files
	for _, one := range conflict.First {
		s.Problem = append(s.Problem, fmt.Sprintf("%s: %s", one.Name, one.Why))
	}
	return nil
}

// entry returns a scanned file for the catalog. Its name is that of the dataset and its path in the
// scanned folder, whose subfolders are blocks.
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
