package v1

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/requests"
)

const mostStates = 7 // of files

// submit adds a request.
func (h *Handlers) submit(q *api.Call, in *transfer.Submission) (transfer.Request, error) {
	return h.Requests.Submit(q.Context(), q.Caller, in)
}

// A decisionBody is the body of a decision about a request.
type decisionBody struct {
	Reason string `json:"reason,omitempty"`
}

// decisionHandler returns a handler for decisions. decide changes the request.
func (h *Handlers) decisionHandler(what string, decide requests.Decision) func(*api.Call, *decisionBody) (transfer.Request, error) {
	return func(q *api.Call, in *decisionBody) (transfer.Request, error) {
		return h.Requests.Decide(q.Context(), q.Caller, q.Number, what, in.Reason, decide)
	}
}

// list returns requests.
func (h *Handlers) list(q *api.Call, _ *struct{}) ([]transfer.Request, error) {
	f := transfer.Filter{
		Status: transfer.Status(q.Param("status")), Open: q.Param("open") == "true", To: q.Param("to"), Dataset: q.Param("dataset"),
		By:     q.Param("by"),
		Before: q.Integer("before", 0, 0, 1<<62), Limit: int(q.Integer("n", 100, 1, 1000)),
	}
	list, err := h.Queue.Read.List(q.Context(), f)
	return api.OrEmpty(list), err
}

func (h *Handlers) show(q *api.Call, _ *struct{}) (transfer.Request, error) {
	return h.Queue.Read.Get(q.Context(), q.Number)
}

// items returns files of a request and the progress of their transfers.
func (h *Handlers) items(q *api.Call, _ *struct{}) (items []transfer.Item, err error) {
	var states []transfer.State
	for _, s := range q.URL.Query()["state"] { // it may be repeated
		states = append(states, transfer.State(s))
	}
	after, n := q.After(), q.Rows()
	switch {
	case len(states) < 2:
		items, err = h.itemsAfter(q.Context(), q.Number, append(states, "")[0], after, n)
	case after != 0 || len(states) > mostStates:
		err = wire.Refuse(http.StatusBadRequest,
			"after=%d: only files in one state have pages; with up to %d states the answer has the first files", after, mostStates)
	default:
		items, err = h.Queue.Read.First(q.Context(), q.Number, states, n)
	}
	h.State.Leases.AddProgress(items)
	return api.OrEmpty(items), err
}

// itemsAfter returns n files of a request; pages of the queue may be short.
func (h *Handlers) itemsAfter(ctx context.Context, id int64, s transfer.State, after int64, n int) (all []transfer.Item, err error) {
	for len(all) < n {
		items, next, err := h.Queue.Read.Items(ctx, id, s, after, n-len(all))
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); next == 0 {
			break
		}
		after = next
	}
	return all, nil
}

func (h *Handlers) attempts(q *api.Call, _ *struct{}) ([]transfer.Attempt, error) {
	item, n := q.Integer("item", 0, 0, 1<<62), q.Rows()
	if item == 0 {
		last := transfer.Attempt{Item: q.After(), Late: q.Param("late") != "false"}
		last.Epoch = q.Integer("epoch", 0, 0, 1<<62)
		list, err := h.Queue.Read.RequestAttempts(q.Context(), q.Number, last, n)
		return api.OrEmpty(list), err
	}
	_, of, err := h.Queue.Read.Item(q.Context(), item)
	if err != nil {
		return nil, err
	}
	if of != q.Number {
		return nil, wire.Refuse(http.StatusNotFound, "file %d does not belong to request %d", item, q.Number)
	}
	list, err := h.Queue.Read.Attempts(q.Context(), item)
	return api.OrEmpty(list[:min(len(list), n)]), err
}

func (h *Handlers) links(*api.Call, *struct{}) ([]transfer.Link, error) {
	return api.OrEmpty(h.State.Leases.Links()), nil
}

// manifest streams a transfer.Manifest: a request may have a million files. A connection whose
// response cannot be completed is reset.
func (h *Handlers) manifest(q *api.Call, w http.ResponseWriter) error {
	r, err := h.Queue.Read.Get(q.Context(), q.Number)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	out, to := bufio.NewWriterSize(w, 64<<10), http.NewResponseController(w)
	complete := func(err error) {
		if err != nil {
			panic(http.ErrAbortHandler) // clients must not mistake a part for the whole manifest
		}
	}
	head, err := json.Marshal(r)
	complete(err)
	_, _ = fmt.Fprintf(out, "{\"request\":%s,\n\"items\":[\n", head) // out stores the error
	sum, n := transfer.NewManifestHash(), 0
	for one, err := range h.Queue.Read.All(q.Context(), q.Number) {
		complete(err)
		text, err := json.Marshal(one)
		complete(err)
		if n > 0 {
			_, _ = out.WriteString(",\n")
		}
		if n++; n%api.PageRows == 1 {
			_ = to.SetWriteDeadline(time.Now().Add(time.Minute)) // for each page
		}
		_, err = out.Write(text)
		complete(err)
		sum.Add(one)
	}
	_, _ = fmt.Fprintf(out, "\n],\"sha256\":%q}\n", sum.Digest())
	complete(out.Flush())
	return nil
}
