package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/wire"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/health"
	"weir/transfer/queue"
)

// A Call is a request to the API.
type Call struct {
	*http.Request
	access.Caller
	Params  []string // of the query, that the route has
	Number  int64    // of the request or scan in the path
	Invalid error    // the first invalid parameter of the query
}

// NewCall parses the parameters of the path, and returns an error if the caller does not have the
// role.
func NewCall(r *http.Request, role string, params []string) (*Call, error) {
	q := &Call{Request: r, Caller: access.CallerOf(r.Context()), Params: params}
	if role != "" {
		if err := q.Need(role); err != nil {
			return nil, err
		}
	}
	if text := r.PathValue("number"); text != "" {
		var err error
		if q.Number, err = strconv.ParseInt(text, 10, 64); err != nil || q.Number <= 0 {
			return nil, wire.Refuse(http.StatusBadRequest, "invalid id %.50q: expected a positive integer", text)
		}
	}
	return q, nil
}

// Param returns a parameter of the query that the route describes.
func (q *Call) Param(name string) string {
	if !slices.Contains(q.Params, name) {
		panic("the route does not describe the parameter " + name) // a mistake in routes.go, which each test of the route shows
	}
	return q.URL.Query().Get(name)
}

// Integer returns a parameter of the query, or absent if it is not given.
func (q *Call) Integer(name string, absent, least, most int64) int64 {
	text := q.Param(name)
	if !q.URL.Query().Has(name) {
		return absent
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.Invalid = cmp.Or(q.Invalid, wire.Refuse(http.StatusBadRequest, "%s=%.50s: expected an integer from %d to %d", name, text, least, most))
		return absent
	}
	return n
}

// PageRows is the default number of rows of a response.
const PageRows = 1000

const mostRows = 10000

// Rows returns the requested number of rows.
func (q *Call) Rows() int { return int(q.Integer("n", PageRows, 1, mostRows)) }

// After returns the id or time, in nanoseconds, after which rows are requested.
func (q *Call) After() int64 { return q.Integer("after", 0, 0, 1<<63-1) }

// A Refuser turns errors into responses.
type Refuser struct {
	Health *health.Health
	Log    *slog.Logger
}

// Refusal returns an error in the form in which it is sent.
func (r *Refuser) Refusal(ctx context.Context, err error) error {
	var conflict *store.ConflictError
	switch {
	case err == nil, wire.Status(err) != 0, ctx.Err() != nil:
		return err
	case errors.Is(err, db.ErrBusy):
		r.Health.Database(err)
		return &wire.Error{Status: http.StatusServiceUnavailable, Text: "the database is unavailable: try again", After: 2 * time.Second}
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return wire.Refuse(http.StatusNotFound, "%s", trimKind(err, queue.ErrNotFound))
	case errors.Is(err, queue.ErrRefused), errors.Is(err, store.ErrExists), errors.As(err, &conflict):
		return wire.Refuse(http.StatusConflict, "%s", trimKind(err, queue.ErrRefused))
	case errors.Is(err, db.ErrText):
		return wire.Refuse(http.StatusBadRequest, "%s", db.ErrText)
	case errors.Is(err, catalog.ErrBad):
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	r.Log.Error("request to the API failed", "error", err)
	return wire.Refuse(http.StatusInternalServerError, "%s", err.Error())
}

// trimKind returns the text of an error without the text of its kind, which the status already
// expresses.
func trimKind(err, kind error) string {
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), kind.Error()+": "), ": "+kind.Error())
}

// OrEmpty returns an empty list for nil, so that its JSON is a list.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
