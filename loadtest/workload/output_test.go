package workload

import (
	"errors"
	"strings"
	"testing"

	"weir/storage"
)

// outputsOf runs one job and returns its writes, each with the number of events that were read
// before.
func outputsOf(t *testing.T, w Work, client int) (writes []storage.Op, after []int64) {
	t.Helper()
	s, r := mustNew(t, w, fileSet(3, 5000), client), rng(1)
	var task Task
	s.Next(r, &task)
	g := task.Job
	put := func(ended bool) {
		for g.OutputDue(ended) {
			var op storage.Op
			g.Output(r, &op)
			writes, after = append(writes, op), append(after, g.seen)
		}
	}
	for {
		if _, more := g.Next(r, &task.Ops[0]); !more {
			break
		}
		put(false)
	}
	put(true)
	return writes, after
}

func TestOutputOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Job)
		sizes  []int64
		after  []int64
	}{
		"none":                  {func(*Job) {}, nil, nil},
		"a size":                {func(j *Job) { j.OutputSize = 700 }, []int64{700}, []int64{10}},
		"a share":               {func(j *Job) { j.OutputShare = 0.25 }, []int64{250}, []int64{10}},
		"during the job":        {func(j *Job) { j.OutputSize, j.OutputFiles = 1000, 3 }, []int64{333, 333, 334}, []int64{4, 7, 10}},
		"a share during it":     {func(j *Job) { j.OutputShare, j.OutputFiles = 0.1, 2 }, []int64{50, 50}, []int64{5, 10}},
		"after each event":      {func(j *Job) { j.OutputSize, j.OutputFiles, j.Events = 4, 4, 4 }, []int64{1, 1, 1, 1}, []int64{1, 2, 3, 4}},
		"less than a byte each": {func(j *Job) { j.OutputSize, j.OutputFiles = 1, 3 }, []int64{1, 1, 1}, []int64{4, 7, 10}},
		"of what is read":       {func(j *Job) { j.OutputShare, j.Skim = 0.5, 0.2 }, []int64{100}, []int64{2}},
		"one vector":            {func(j *Job) { j.OutputSize, j.OutputFiles, j.Vector = 100, 2, 1000 }, []int64{50, 50}, []int64{10, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			writes, after := outputsOf(t, aJob(c.change), 4)
			if len(writes) != len(c.sizes) {
				t.Fatalf("%d writes, want %d", len(writes), len(c.sizes))
			}
			names := map[string]bool{}
			for i, op := range writes {
				home := Home("weir/run1", 4) + "/"
				if op.Kind != storage.Write || op.Size != c.sizes[i] || after[i] != c.after[i] || !strings.HasPrefix(op.Path, home) ||
					names[op.Path] {
					t.Errorf("write %d after %d events: %+v, want %d bytes after %d", i, after[i], op, c.sizes[i], c.after[i])
				}
				names[op.Path] = true
			}
			w := aJob(c.change)
			if Writes(w) != (len(c.sizes) > 0) {
				t.Error("it does not tell that it writes")
			}
		})
	}
}

func TestOutputIsChecked(t *testing.T) {
	for key, change := range map[string]func(*Job){
		"job.output_size": func(j *Job) { j.OutputSize = -1 }, "job.output_share": func(j *Job) { j.OutputShare = -0.1 },
		"job.output_files": func(j *Job) { j.OutputFiles = 2 },
	} {
		var bad *KeyError
		if err := Check(aJob(change)); !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
	for text, change := range map[string]func(*Job){
		"omit one of them":   func(j *Job) { j.OutputSize, j.OutputShare = 1, 0.1 },
		"11 files are more ": func(j *Job) { j.OutputSize, j.OutputFiles = 1000, 11 },
	} {
		if err := Check(aJob(change)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}
