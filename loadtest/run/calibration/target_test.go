package calibration

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"weir/internal/redact"
	"weir/loadtest/engine"
	"weir/loadtest/run"
	"weir/loadtest/workload"
	"weir/storage"
)

// A guarded service gives the size of files that are not called secret.
type guarded struct{}

func (guarded) Client() storage.Client { return guarded{} }
func (guarded) Close() error           { return nil }

func (guarded) Do(_ context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	if op.Path == "secret" {
		return storage.Result{}, fs.ErrPermission
	}
	return storage.Result{Size: 5}, nil
}

// A file that may not be read is left out, unless no other is left.
func TestDeniedFilesAreLeftOut(t *testing.T) {
	warned := 0
	c := &calibrator{Config: Config{Interrupts: run.Interrupts{Finish: t.Context()}, Console: run.Console{Secrets: &redact.Values{},
		Warn: func(string, ...any) { warned++ }}}}
	c.sides[0] = &side{config: engine.Config{Service: guarded{}}}
	known, err := c.sizes([]workload.File{{Path: "secret", Size: -1}, {Path: "a", Size: -1}})
	if err != nil || len(known) != 1 || known[0] != (workload.File{Path: "a", Size: 5}) || warned != 1 {
		t.Errorf("%v, %v, %d warnings", known, err, warned)
	}
	if _, err := c.sizes([]workload.File{{Path: "secret", Size: -1}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("all denied: %v", err)
	}
}
