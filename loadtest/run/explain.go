package run

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"weir/loadtest/engine"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/diagnosis"
)

// An Explained error has a hint for the user. It ended a run before its load, or another command
// that contacts a storage service.
type Explained struct {
	err error
	diagnosis.Diagnosis
}

// Error returns the diagnosis in one line and the hint in another.
func (e *Explained) Error() string {
	text := strings.ReplaceAll(e.err.Error(), "\n", "; ")
	if what := e.Text(); what != "" {
		text = what + " (" + text + ")"
	}
	return text + "\nhint: " + e.Hint()
}

// Unwrap returns the error itself.
func (e *Explained) Unwrap() error { return e.err }

// longestProbe is the time limit for a run that has failed to probe the target's port.
const longestProbe = 8 * time.Second

// explain returns err with a hint for the user, if its cause is known. Wrong calls explain
// themselves.
func (r *session) explain(ctx context.Context, err error) error {
	if err == nil || r.loaded || errors.As(err, new(*Explained)) || r.Finish.Err() != nil {
		return err
	}
	return explain(ctx, r.Plan, err, r.links == nil && len(r.Plan.Command) == 0)
}

// explain returns err with a hint for the plan's target. reach allows it to connect there.
func explain(ctx context.Context, plan *scenario.Plan, err error, reach bool) error {
	return Explain(ctx, plan.Target, plan.Auth, diagnosis.Caller{NoFiles: engine.ErrNoFiles, NoSizes: workload.ErrSizes}, err, reach)
}

// Explain returns err, the error of a command that contacts target with auth, with a hint for the
// user, if its cause is known. reach allows it to connect there.
func Explain(ctx context.Context, target string, auth storage.Auth, c diagnosis.Caller, err error, reach bool) error {
	u, bad := url.Parse(target)
	if bad != nil || err == nil || errors.As(err, new(*UsageError)) || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longestProbe)
	defer cancel()
	d, ok := diagnosis.Of(ctx, u, auth, err, c, reach)
	if !ok {
		return err
	}
	return &Explained{err: err, Diagnosis: d}
}
