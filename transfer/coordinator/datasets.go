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
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

const (
	mostProblems = 100  // of a scan that are kept
	mostScans    = 1000 // that are not done, at once
)

// datasets lists datasets by name: those after a name, or from a name on.
func (c *Coordinator) datasets(q *call, _ *struct{}) ([]catalog.Dataset, error) {
	from, after, rows := q.param("from"), q.param("after"), q.rows()
	list, err := c.catalog.Datasets(q.Context(), max(from, after), rows)
	if err != nil || from <= after {
		return orEmpty(list), err
	}
	first, err := c.catalog.Dataset(q.Context(), from)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return orEmpty(list), nil
	case err != nil:
		return nil, err
	}
	list = slices.Insert(list, 0, first)
	return list[:min(len(list), rows)], nil
}

func (c *Coordinator) dataset(q *call, _ *struct{}) (catalog.Dataset, error) {
	return c.catalog.Dataset(q.Context(), q.param("name"))
}

func (c *Coordinator) files(q *call, _ *struct{}) ([]transfer.FileReplicas, error) {
	list, err := c.catalog.Files(q.Context(), q.param("name"), q.param("after"), q.rows())
	all := make([]transfer.FileReplicas, 0, len(list))
	for _, p := range list {
		all = append(all, transfer.FileReplicas{File: p.File, Replicas: p.Replicas})
	}
	return all, err
}

// addFiles adds files that a site has to a dataset. Agents add files through scans only.
func (c *Coordinator) addFiles(q *call, in *transfer.NewFiles) (none catalog.Dataset, err error) {
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

func (c *Coordinator) removeDataset(q *call, in *catalog.Dataset) (none struct{}, err error) {
	if err = c.catalog.RemoveDataset(q.Context(), in.Name); err == nil {
		c.log.Info("dataset removed from the catalog", "dataset", in.Name, "by", q.name)
	}
	return none, err
}

// A scan is a folder that an agent lists.
type scan struct {
	transfer.ScanState
	site, dataset, path string
}

const scanColumns = "SELECT id, site, dataset, path, done, files, bytes, problems FROM scan "

func readScan(r *db.Rows) (s *scan, err error) {
	s = &scan{}
	var problems string
	err = r.Scan(&s.ID, &s.site, &s.dataset, &s.path, &s.Done, &s.Files, &s.Bytes, &problems)
	_ = json.Unmarshal([]byte(problems), &s.Problem) // written by scannedPart
	return s, err
}

// addScan has the agent of a site list a folder.
func (c *Coordinator) addScan(q *call, in *transfer.NewScan) (none transfer.ScanState, err error) {
	if slices.Contains(strings.Split(in.Path, "/"), "..") {
		return none, wire.Refuse(http.StatusBadRequest, "%.200q: the path must be below the site's root, without ..", in.Path)
	}
	in.Path = strings.Trim(path.Clean("/"+in.Path), "/")
	if err := catalog.CheckName(in.Dataset); err != nil {
		return none, err
	}
	site, err := c.catalog.Site(q.Context(), in.Site)
	c.registry.mu.Lock()
	many := len(c.registry.scans)
	c.registry.mu.Unlock()
	switch {
	case err != nil:
		return none, err
	case site.Kind != agentKind || !site.Up:
		return none, wire.Refuse(http.StatusConflict, "site %s has no agent that could list files now: %s", in.Site,
			cmp.Or(site.Problem, "it is a site without an agent"))
	case many >= mostScans:
		return none, wire.Refuse(http.StatusTooManyRequests, "%d scans are running: wait until some have ended", many)
	}
	s := &scan{site: in.Site, dataset: in.Dataset, path: in.Path}
	err = c.db.Write(q.Context(), func(tx *db.Tx) error {
		const query = "INSERT INTO scan (site, dataset, path, asked_by, made, done, files, bytes, problems) VALUES (?, ?, ?, ?, ?, FALSE, 0, " +
			"0, '[]') RETURNING id"
		return tx.Row(query, s.site, s.dataset, s.path, q.name, c.now()).Scan(&s.ID)
	})
	if err != nil {
		return none, err
	}
	c.log.Info("scan added", "scan", s.ID, "site", s.site, "path", s.path, "dataset", s.dataset, "by", q.name)
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	c.registry.scans[s.ID] = s
	if a := c.registry.agents[s.site]; a != nil {
		a.wake()
	}
	return s.ScanState, nil
}

func (c *Coordinator) showScan(q *call, _ *struct{}) (transfer.ScanState, error) {
	list, err := db.Select(q.Context(), c.db, readScan, scanColumns+"WHERE id = ?", q.number)
	if err == nil && len(list) == 0 {
		err = wire.Refuse(http.StatusNotFound, "there is no scan %d", q.number)
	}
	if err != nil {
		return transfer.ScanState{}, err
	}
	return list[0].ScanState, nil
}

// scansOfLocked returns the scans that an agent does not know yet, and those that it has to abort.
func (c *Coordinator) scansOfLocked(a *agent) (begin []transfer.Scan, drop []int64) {
	for _, s := range c.registry.scans {
		if s.site == a.Site && !slices.Contains(a.scans, s.ID) {
			begin = append(begin, transfer.Scan{ID: s.ID, Path: s.path})
			a.scans = append(a.scans, s.ID)
		}
	}
	a.scans = slices.DeleteFunc(a.scans, func(id int64) bool {
		s := c.registry.scans[id]
		over := s == nil || s.site != a.Site
		if over {
			drop = append(drop, id)
		}
		return over
	})
	return begin, drop
}

// scanned adds the results of scans to the catalog. drop are scans that the agent has to abort.
func (c *Coordinator) scanned(ctx context.Context, site string, all []transfer.ScanResult) (drop []int64, err error) {
	for _, f := range all {
		c.registry.mu.Lock()
		s := c.registry.scans[f.Scan]
		c.registry.mu.Unlock()
		if s == nil || s.site != site {
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
func (c *Coordinator) scannedPart(ctx context.Context, s *scan, f transfer.ScanResult) error {
	c.registry.mu.Lock()
	next := *s
	c.registry.mu.Unlock()
	next.Problem, next.Done = slices.Clone(next.Problem), f.Done
	if err := c.addScanned(ctx, &next, f.Files); err != nil {
		return err
	}
	if f.Problem != "" {
		next.Problem = append(next.Problem, sentence(f.Problem))
	}
	next.Problem = next.Problem[:min(len(next.Problem), mostProblems)]
	text, err := json.Marshal(orEmpty(next.Problem))
	if err != nil {
		return err
	}
	const query = "UPDATE scan SET done = ?, files = ?, bytes = ?, problems = ? WHERE id = ?"
	if err := c.db.Exec(ctx, query, next.Done, next.Files, next.Bytes, string(text), next.ID); err != nil {
		return err
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	*s = next
	if s.Done {
		delete(c.registry.scans, s.ID)
		c.log.Info("scan ended", "scan", s.ID, "files", s.Files, "problems", len(s.Problem))
	}
	return nil
}

// addScanned adds files to the catalog and counts them in s. Files with invalid names, or that
// contradict the catalog, are problems of the scan.
func (c *Coordinator) addScanned(ctx context.Context, s *scan, files []transfer.ScannedFile) error {
	if len(files) == 0 {
		return nil
	}
	now, before := c.now(), *s
	_, err := c.catalog.Register(ctx, s.dataset, s.site, "the agent of "+s.site, func(yield func(catalog.Entry, error) bool) {
		s.Files, s.Bytes, s.Problem = before.Files, before.Bytes, slices.Clone(before.Problem) // it may be called again
		for _, f := range files {
			e, invalid := entry(s, f)
			if invalid != nil {
				s.Problem = append(s.Problem, sentence(invalid.Error()))
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
func entry(s *scan, f transfer.ScannedFile) (e catalog.Entry, err error) {
	name, block := s.dataset+"/"+f.Path, path.Dir(f.Path)
	if block == "." {
		block = ""
	}
	e.File, err = catalog.Check(catalog.File{Name: name, Block: block, Size: f.Size, Adler: f.Adler})
	at := path.Join(s.path, f.Path)
	if at != strings.TrimPrefix(name, "/") {
		e.Path = at
	}
	return e, err
}
