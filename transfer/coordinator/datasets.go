package coordinator

import (
	"net/http"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
)

func (c *Coordinator) datasets(r *http.Request, _ *struct{}) ([]catalog.Dataset, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return nil, err
	}
	list, err := c.catalog.Datasets(r.Context(), r.URL.Query().Get("after"), int(n))
	return filled(list), c.refusal(err)
}

func (c *Coordinator) dataset(r *http.Request, _ *struct{}) (catalog.Dataset, error) {
	if _, err := need(r, mayRead); err != nil {
		return catalog.Dataset{}, err
	}
	d, err := c.catalog.Dataset(r.Context(), r.URL.Query().Get("name"))
	return d, c.refusal(err)
}

func (c *Coordinator) files(r *http.Request, _ *struct{}) ([]transfer.FileReplicas, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	list, err := c.catalog.Files(r.Context(), q.Get("name"), q.Get("after"), int(n))
	all := make([]transfer.FileReplicas, 0, len(list))
	for _, p := range list {
		all = append(all, transfer.FileReplicas{File: p.File, Replicas: p.Replicas})
	}
	return all, c.refusal(err)
}

// addFiles makes files that a site has part of a dataset. Agents tell what they were
// asked to look for, and nothing else: see found.
func (c *Coordinator) addFiles(r *http.Request, in *transfer.NewFiles) (catalog.Dataset, error) {
	if _, err := need(r, mayAdmin); err != nil {
		return catalog.Dataset{}, err
	}
	if len(in.Files) == 0 || len(in.Files) > transfer.MaxNewFiles {
		return catalog.Dataset{}, wire.Refuse(http.StatusBadRequest, "between 1 and %d files are added at a time, not %d", transfer.MaxNewFiles, len(in.Files))
	}
	if len(in.By) > 200 {
		return catalog.Dataset{}, wire.Refuse(http.StatusBadRequest, "who verified the files is told in at most 200 letters")
	}
	now := c.now()
	_, err := c.catalog.Register(r.Context(), in.Dataset, in.Site, in.By, func(yield func(catalog.Entry, error) bool) {
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
		return catalog.Dataset{}, c.refusal(err)
	}
	c.stir()
	d, err := c.catalog.Dataset(r.Context(), in.Dataset)
	return d, c.refusal(err)
}

func (c *Coordinator) removeDataset(r *http.Request, in *catalog.Dataset) (struct{}, error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return struct{}{}, err
	}
	if err := c.catalog.RemoveDataset(r.Context(), in.Name); err != nil {
		return struct{}{}, c.refusal(err)
	}
	c.log.Info("a dataset was removed from the catalog", "dataset", in.Name, "by", who.name)
	return struct{}{}, nil
}
