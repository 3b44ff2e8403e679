package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"

	"weir/internal/unit"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// sized is a service that supports only requests for sizes.
type sized struct {
	size  func(path string) (int64, error)
	asked atomic.Int64
}

func (s *sized) Client() storage.Client { return s }
func (s *sized) Close() error           { return nil }

func (s *sized) Do(_ context.Context, op *storage.Op, _ storage.Progress) (storage.Result, error) {
	if op.Kind != storage.Stat {
		return storage.Result{Size: -1}, fmt.Errorf("%s: %w", op.Kind, errors.ErrUnsupported)
	}
	s.asked.Add(1)
	size, err := s.size(op.Path)
	return storage.Result{Size: size}, err
}

// unsized returns n files of a list that has no sizes.
func unsized(n int) []workload.File {
	files := make([]workload.File, n)
	for i := range files {
		files[i] = workload.File{Path: fmt.Sprintf("f%d", i), Size: -1}
	}
	return files
}

func preparing(s storage.Service, w workload.Work, command ...string) Config {
	return Config{Service: s, Plan: &scenario.Plan{Work: w, Command: command, Files: scenario.Files{List: "list.txt"}}}
}

var (
	inParts = workload.Work{Kind: "read", Part: &workload.Part{Size: 100, Count: 8}}
	whole   = workload.Work{Kind: "read"}
	chunked = workload.Work{Kind: "read", Chunk: unit.Size(10)}
)

func TestSizesAreAskedFor(t *testing.T) {
	known := func(string) (int64, error) { return 5000, nil }
	silent := func(string) (int64, error) { return -1, nil }
	lost := func(string) (int64, error) { return -1, fs.ErrNotExist }
	one := func(other func(string) (int64, error)) func(string) (int64, error) {
		return func(path string) (int64, error) {
			if path == "f7" {
				return other(path)
			}
			return known(path)
		}
	}
	for name, tt := range map[string]struct {
		work    workload.Work
		command []string
		size    func(string) (int64, error)
		asked   int64
		err     error
		want    int64
	}{
		"parts":                 {work: inParts, size: known, asked: 100, want: 5000},
		"whole files":           {work: whole, size: known, want: -1},
		"whole files in chunks": {work: chunked, size: known, asked: 100, want: 5000},
		"chunks without a size": {work: chunked, size: silent, asked: 100, want: -1},
		"no sizes":              {work: inParts, size: silent, asked: 100, err: workload.ErrSizes},
		"one without a size":    {work: inParts, size: one(silent), asked: 100, err: workload.ErrSizes},
		"files that are gone":   {work: inParts, size: lost, asked: 100, err: fs.ErrNotExist},
		"one that is gone":      {work: inParts, size: one(lost), asked: 100, err: fs.ErrNotExist},
		"a refusal":             {work: inParts, size: func(string) (int64, error) { return -1, fs.ErrPermission }, err: fs.ErrPermission},
		"no way to ask": {work: inParts, size: func(string) (int64, error) { return -1, errors.ErrUnsupported },
			err: workload.ErrSizes},
		"a program with {size}":   {work: whole, command: []string{"x", "--bytes={size}"}, size: known, asked: 100, want: 5000},
		"a program that has none": {work: whole, command: []string{"x", "{size}"}, size: silent, asked: 100, err: workload.ErrSizes},
		"a program with {{size}":  {work: whole, command: []string{"x", "{{size}"}, size: silent, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sized{size: tt.size}
			files, err := Prepare(t.Context(), preparing(s, tt.work, tt.command...), unsized(100), nil)
			if !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if asked := s.asked.Load(); tt.asked > 0 && asked != tt.asked || tt.asked == 0 && err == nil && asked > 0 {
				t.Errorf("%d sizes asked for, want %d", asked, tt.asked)
			}
			for _, f := range files {
				if f.Size != tt.want {
					t.Fatalf("%s has %d bytes, want %d", f.Path, f.Size, tt.want)
				}
			}
		})
	}
}

// Sizes of a list that differ from the service's end a run before its load, or, if a driver detects
// them by itself, are a class of their own.
func TestWrongSizesOfAListAreRefused(t *testing.T) {
	s := &sized{size: func(path string) (int64, error) {
		if path == "f0" {
			return 4999, nil
		}
		return 5000, nil
	}}
	files := unsized(1000)
	for i := range files {
		files[i].Size = 5000
	}
	_, err := Prepare(t.Context(), preparing(s, inParts), files, nil)
	if !errors.Is(err, storage.ErrSize) || storage.Classify(err) != storage.Sized {
		t.Errorf("%v, want ErrSize", err)
	}
	if asked := s.asked.Load(); asked > mostLooked {
		t.Errorf("%d files were looked at, want %d at most", asked, mostLooked)
	}
	if _, err := Prepare(t.Context(), preparing(s, inParts), files[1:], nil); err != nil {
		t.Errorf("a right list: %v", err)
	}
}

func TestSizesTellHowFarTheyAre(t *testing.T) {
	var most, total atomic.Int64
	_, err := Prepare(t.Context(), preparing(&sized{size: func(string) (int64, error) { return 5000, nil }}, inParts), unsized(50),
		func(_ string, done, of int) {
			for was := most.Load(); int64(done) > was && !most.CompareAndSwap(was, int64(done)); was = most.Load() {
			}
			total.Store(int64(of))
		})
	if err != nil || most.Load() != 50 || total.Load() != 50 {
		t.Errorf("%d of %d, %v", most.Load(), total.Load(), err)
	}
}
