package coordinator

import (
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

// A scan is what an agent was asked to look for.
type scan struct {
	transfer.ScanState
	site, dataset, path string
}

const scanColumns = "SELECT id, site, dataset, path, done, files, bytes, problems FROM scan "

func readScan(r *db.Rows) (s *scan, err error) {
	s = &scan{}
	var problems string
	if err = r.Scan(&s.ID, &s.site, &s.dataset, &s.path, &s.Done, &s.Files, &s.Bytes, &problems); err != nil {
		return nil, err
	}
	_ = json.Unmarshal([]byte(problems), &s.Problem) // a list of our own
	return s, nil
}

// openScans takes up the scans that are not done.
func (c *Coordinator) openScans(ctx context.Context) error {
	c.registry.scans = map[int64]*scan{}
	return c.db.Read(ctx, func(tx *db.Tx) error {
		list, err := db.All(tx, readScan, scanColumns+"WHERE NOT done ORDER BY id")
		for _, s := range list {
			c.registry.scans[s.ID] = s
		}
		return err
	})
}

// addScan asks the agent of a site to look for files.
func (c *Coordinator) addScan(r *http.Request, in *transfer.NewScan) (transfer.ScanState, error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return transfer.ScanState{}, err
	}
	if slices.Contains(strings.Split(in.Path, "/"), "..") {
		return transfer.ScanState{}, wire.Refuse(http.StatusBadRequest, "%.200q: the folder is below the site's root, and its path has no ..", in.Path)
	}
	in.Path = strings.Trim(path.Clean("/"+in.Path), "/")
	if err := catalog.CheckName(in.Dataset); err != nil {
		return transfer.ScanState{}, c.refusal(err)
	}
	site, err := c.catalog.Site(r.Context(), in.Site)
	c.registry.mu.Lock()
	many := len(c.registry.scans)
	c.registry.mu.Unlock()
	switch {
	case err != nil:
		return transfer.ScanState{}, c.refusal(err)
	case site.Kind != agentKind || !site.Up:
		return transfer.ScanState{}, wire.Refuse(http.StatusConflict, "site %s has no agent that could look for files now: %s", in.Site, orElse(site.Problem, "it has none at all"))
	case many >= mostScans:
		return transfer.ScanState{}, wire.Refuse(http.StatusTooManyRequests, "%d scans go on already: wait until some are done", many)
	}
	s := &scan{site: in.Site, dataset: in.Dataset, path: in.Path}
	err = c.db.Write(r.Context(), func(tx *db.Tx) error {
		return tx.Row("INSERT INTO scan (site, dataset, path, asked_by, made, done, files, bytes, problems) VALUES (?, ?, ?, ?, ?, FALSE, 0, 0, '[]') RETURNING id",
			s.site, s.dataset, s.path, who.name, c.now()).Scan(&s.ID)
	})
	if err != nil {
		return transfer.ScanState{}, c.refusal(err)
	}
	c.log.Info("a scan was asked for", "scan", s.ID, "site", s.site, "path", s.path, "dataset", s.dataset, "by", who.name)
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	c.registry.scans[s.ID] = s
	if a := c.registry.agents[s.site]; a != nil {
		a.ring()
	}
	return s.ScanState, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (c *Coordinator) showScan(r *http.Request, _ *struct{}) (s transfer.ScanState, err error) {
	id, err := c.reading(r)
	if err != nil {
		return s, err
	}
	err = c.db.Read(r.Context(), func(tx *db.Tx) error {
		list, err := db.All(tx, readScan, scanColumns+"WHERE id = ?", id)
		if err == nil && len(list) == 0 {
			return wire.Refuse(http.StatusNotFound, "there is no scan %d", id)
		}
		if err == nil {
			s = list[0].ScanState
		}
		return err
	})
	return s, c.refusal(err)
}

// scansOf are the scans that an agent does not know of yet, and those that it is
// to break off. The registry is locked.
func (c *Coordinator) scansOf(a *agent) (begin []transfer.Scan, drop []int64) {
	for _, s := range c.registry.scans {
		if s.site == a.Site && !slices.Contains(a.scans, s.ID) {
			begin = append(begin, transfer.Scan{ID: s.ID, Path: s.path})
			a.scans = append(a.scans, s.ID)
		}
	}
	for _, id := range a.scans {
		if s := c.registry.scans[id]; s == nil || s.site != a.Site {
			drop = append(drop, id)
		}
	}
	a.scans = slices.DeleteFunc(a.scans, func(id int64) bool { return slices.Contains(drop, id) })
	return begin, drop
}

// found takes over what scans have found. drop are scans that are none.
func (c *Coordinator) found(ctx context.Context, site string, all []transfer.ScanResult) (drop []int64, err error) {
	for _, f := range all {
		c.registry.mu.Lock()
		s := c.registry.scans[f.Scan]
		c.registry.mu.Unlock()
		if s == nil || s.site != site {
			drop = append(drop, f.Scan)
			continue
		}
		if err := c.foundPart(ctx, s, f); err != nil {
			return nil, err
		}
	}
	return drop, nil
}

// foundPart makes files that a scan has found part of its dataset. A part that
// comes again changes nothing: the dataset counts, not the parts.
func (c *Coordinator) foundPart(ctx context.Context, s *scan, f transfer.ScanResult) error {
	added, problems, err := c.catalogFound(ctx, s, f.Files)
	if err != nil {
		return err
	}
	if f.Problem != "" {
		problems = append(problems, sentence(f.Problem))
	}
	c.registry.mu.Lock()
	next := *s
	c.registry.mu.Unlock()
	next.Files += added.files
	next.Bytes += added.bytes
	next.Problem = append(slices.Clone(next.Problem), problems...)
	next.Problem = next.Problem[:min(len(next.Problem), mostProblems)]
	next.Done = f.Done
	text, err := json.Marshal(filled(next.Problem))
	if err != nil {
		return err
	}
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("UPDATE scan SET done = ?, files = ?, bytes = ?, problems = ? WHERE id = ?", next.Done, next.Files, next.Bytes, string(text), next.ID)
		return err
	})
	if err != nil {
		return err
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	*s = next
	if s.Done {
		delete(c.registry.scans, s.ID)
		c.log.Info("a scan is done", "scan", s.ID, "files", s.Files, "problems", len(s.Problem))
	}
	return nil
}

type tally struct{ files, bytes int64 }

// catalogFound writes files that a scan has found into the catalog. Those that cannot
// be there, or contradict it, are problems.
func (c *Coordinator) catalogFound(ctx context.Context, s *scan, files []transfer.ScannedFile) (n tally, problems []string, err error) {
	if len(files) == 0 {
		return n, nil, nil
	}
	now := c.now()
	_, err = c.catalog.Register(ctx, s.dataset, s.site, "the agent of "+s.site, func(yield func(catalog.Entry, error) bool) {
		n, problems = tally{}, nil
		for _, f := range files {
			e, why := entry(s, f)
			if why != nil {
				problems = append(problems, sentence(why.Error()))
				continue
			}
			if e.Adler != "" {
				e.Verified = now
			}
			n.files++
			n.bytes += e.Size
			if !yield(e, nil) {
				return
			}
		}
	})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		n.files -= conflict.Files
		for _, one := range conflict.First {
			problems = append(problems, fmt.Sprintf("%s: %s", one.Name, one.Why))
		}
		err = nil
	}
	return n, problems, err
}

// entry is a file that was found as the catalog knows it: it is called after its
// dataset and where it was found in the folder, and the folder within is its block.
func entry(s *scan, f transfer.ScannedFile) (e catalog.Entry, err error) {
	name := s.dataset + "/" + f.Path
	block := path.Dir(f.Path)
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
