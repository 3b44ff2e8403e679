package v1

import (
	"errors"
	"net/http"
	"slices"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// datasets lists datasets by name: datasets after a name, or from a name on.
func (h *Handlers) datasets(q *api.Call, _ *struct{}) ([]catalog.Dataset, error) {
	from, after, rows := q.Param("from"), q.Param("after"), q.Rows()
	list, err := h.Catalog.Datasets(q.Context(), max(from, after), rows)
	if err != nil || from <= after {
		return api.OrEmpty(list), err
	}
	first, err := h.Catalog.Dataset(q.Context(), from)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return api.OrEmpty(list), nil
	case err != nil:
		return nil, err
	}
	list = slices.Insert(list, 0, first)
	return list[:min(len(list), rows)], nil
}

func (h *Handlers) dataset(q *api.Call, _ *struct{}) (catalog.Dataset, error) {
	return h.Catalog.Dataset(q.Context(), q.Param("name"))
}

func (h *Handlers) files(q *api.Call, _ *struct{}) ([]transfer.FileReplicas, error) {
	list, err := h.Catalog.Files(q.Context(), q.Param("name"), q.Param("after"), q.Rows())
	all := make([]transfer.FileReplicas, 0, len(list))
	for _, p := range list {
		all = append(all, transfer.FileReplicas{File: p.File, Replicas: p.Replicas})
	}
	return all, err
}

// addFiles adds files of a site to a dataset. Agents add files through scans only.
func (h *Handlers) addFiles(q *api.Call, in *transfer.NewFiles) (none catalog.Dataset, err error) {
	if len(in.Files) == 0 || len(in.Files) > transfer.MaxNewFiles {
		return none, wire.Refuse(http.StatusBadRequest, "expected 1 to %d files at a time, not %d", transfer.MaxNewFiles, len(in.Files))
	}
	if len(in.By) > 200 {
		return none, wire.Refuse(http.StatusBadRequest, "verified_by must have at most 200 bytes")
	}
	now := h.Now()
	_, err = h.Catalog.Register(q.Context(), in.Dataset, in.Site, in.By, func(yield func(catalog.Entry, error) bool) {
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
	h.WakeAll()
	return h.Catalog.Dataset(q.Context(), in.Dataset)
}

func (h *Handlers) removeDataset(q *api.Call, in *catalog.Dataset) (none struct{}, err error) {
	if err = h.Catalog.RemoveDataset(q.Context(), in.Name); err == nil {
		h.Log.Info("dataset removed from the catalog", "dataset", in.Name, "by", q.Name)
	}
	return none, err
}

func (h *Handlers) addScan(q *api.Call, in *transfer.NewScan) (transfer.ScanState, error) {
	return h.Scans.Add(q.Context(), in, q.Name)
}

func (h *Handlers) showScan(q *api.Call, _ *struct{}) (transfer.ScanState, error) {
	return h.Scans.Get(q.Context(), q.Number)
}
