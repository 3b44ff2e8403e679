package run

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"weir/engine"
	"weir/scenario"
	"weir/storage/diagnosis"
	"weir/workload"
)

// An Explained error ended a run before its load, and says what to do about it.
type Explained struct {
	err error
	diagnosis.Diagnosis
}

// Error returns what is wrong in one line and what to do in another.
func (e *Explained) Error() string {
	text := strings.ReplaceAll(e.err.Error(), "\n", "; ")
	if what := e.Text(); what != "" {
		text = what + " (" + text + ")"
	}
	return text + "\nhint: " + e.Hint()
}

// Unwrap returns the error itself.
func (e *Explained) Unwrap() error { return e.err }

// longestProbe is how long a run that has failed looks at the target's port.
const longestProbe = 8 * time.Second

// explain returns err with what to do about it, if that is known. Wrong calls explain
// themselves.
func (r *session) explain(ctx context.Context, err error) error {
	if err == nil || r.loaded || errors.As(err, new(*UsageError)) || errors.As(err, new(*Explained)) || r.Finish.Err() != nil {
		return err
	}
	return explain(ctx, r.Plan, err, r.links == nil && len(r.Plan.Command) == 0)
}

// explain returns err with what to do about it at the plan's target. reach
// allows it to connect there.
func explain(ctx context.Context, plan *scenario.Plan, err error, reach bool) error {
	target, bad := url.Parse(plan.Target)
	if bad != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longestProbe)
	defer cancel()
	d, ok := diagnosis.Of(ctx, target, err, diagnosis.Sentinels{NoFiles: engine.ErrNoFiles, NoSizes: workload.ErrSizes}, reach)
	if !ok {
		return err
	}
	return &Explained{err: err, Diagnosis: d}
}
