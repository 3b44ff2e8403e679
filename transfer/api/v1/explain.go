package v1

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
)

// explainSample is the number of files of each state that are examined to explain a request.
const explainSample = 1000

// explain returns the reasons why files of a request do not move now, or the steps that are under
// way.
func (h *Handlers) explain(q *api.Call, _ *struct{}) (e transfer.Explanation, err error) {
	ctx := q.Context()
	r, err := h.Queue.Read.Get(ctx, q.Number)
	if err != nil {
		return e, err
	}
	x := &explainer{h.State.Leases.Explain(r), h}
	if name := q.Param("file"); name != "" {
		var it transfer.Item
		if it, err = h.Queue.Read.Find(ctx, q.Number, name); err == nil {
			err = x.items(ctx, []transfer.Item{it}, 1)
		}
	} else {
		err = x.request(ctx)
	}
	return transfer.Explanation{Request: r, Reasons: x.Sorted()}, err
}

// An explainer finds the files of a request whose reasons are collected.
type explainer struct {
	*dispatch.Reasons
	h *Handlers
}

// request explains all files.
func (x *explainer) request(ctx context.Context) error {
	n := x.Request.Count
	files := cmp.Or(n.Files, x.Request.Asked.Files) // if the queue has no files of it yet
	switch {
	case x.Request.Status == transfer.Awaiting:
		x.Add("awaiting", "", files, "The request awaits approval by a user with the role %s.", transfer.RoleNames(access.MayApprove))
		return nil
	case x.Request.Status.Ended() && n.Failed+n.Cancelled == 0:
		x.Add("ended", "", files, "The request has ended: %s%s.", x.Request.Status, dispatch.Prefixed(", ", x.Request.Reason))
		return nil
	case x.Request.Status == transfer.Resolving:
		x.Add("resolving", "", 0, "Its files are being added to the queue: %d of %s so far.", n.Files,
			say.Plural(int(x.Request.Asked.Files), "file"))
	}
	counts := map[transfer.State]int64{transfer.Queued: n.Queued, transfer.NoSource: n.NoSource, transfer.Leased: n.Leased,
		transfer.FileFailed: n.Failed}
	if x.Request.Status.Ended() {
		counts[transfer.FileCancelled] = n.Cancelled
	}
	for state, count := range counts {
		if count == 0 {
			continue
		}
		items, err := x.h.itemsAfter(ctx, x.Request.ID, state, 0, explainSample)
		if err != nil {
			return err
		}
		if err := x.items(ctx, items, count); err != nil {
			return err
		}
	}
	return nil
}

// items explains the first of count files; the last of items stands for the files that follow.
func (x *explainer) items(ctx context.Context, items []transfer.Item, count int64) error {
	replicas, err := x.replicas(ctx, items)
	if err != nil {
		return err
	}
	x.One = len(items) == 1 && count == 1
	for i, it := range items {
		files := int64(1)
		if i == len(items)-1 {
			files = max(1, count-int64(len(items))+1)
		}
		x.AddFile(it, replicas[it.Name], files)
	}
	return nil
}

// replicas returns the replicas of waiting files by name.
func (x *explainer) replicas(ctx context.Context, items []transfer.Item) (map[string][]catalog.Replica, error) {
	if x.Request.Job != "" {
		return x.h.Queue.Read.PairReplicas(ctx, items)
	}
	var names []string
	for _, it := range items {
		if it.State == transfer.Queued || it.State == transfer.NoSource {
			names = append(names, it.Name)
		}
	}
	all := map[string][]catalog.Replica{}
	for part := range slices.Chunk(names, explainSample) {
		list, err := x.h.Catalog.Find(ctx, part...)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		for _, p := range list {
			all[p.Name] = p.Replicas
		}
	}
	return all, nil
}
