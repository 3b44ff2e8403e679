package batch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
)

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(12)
		at := time.Now()
		note := func(worker int, s State, reason string) {
			l.Note(Change{Time: at, Worker: worker, State: s, Reason: reason, Host: "n1", JobID: "7"})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var told []Change
		followed := make(chan error)
		follow := func() { followed <- l.Follow(ctx, func(c Change) { told = append(told, c) }) }
		go follow()
		for i := range 12 {
			note(i, Queued, "")
		}
		note(0, Running, "")
		note(0, Running, "") // no news
		note(1, Held, "no file")
		note(2, Failed, "exit status 3")
		note(2, Running, "") // too late
		note(3, Removed, "")
		for _, i := range []int{4, 5, 6, 8, 10} {
			note(i, Queued, "8 slots for 12")
		}
		note(7, Ended, "")
		note(99, Running, "")
		note(-1, Running, "")
		synctest.Wait()
		if len(told) != 12+10 {
			t.Errorf("%d changes: %v", len(told), told)
		}
		cancel()
		if err := <-followed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		ctx, told = t.Context(), nil
		l.End()
		go follow()
		if err := <-followed; err != nil || len(told) != 22 {
			t.Errorf("again: %v, %d changes", err, len(told))
		}
		want := []string{
			"worker 1 is held: no file", "worker 2 failed: exit status 3", "worker 3 was removed",
			"5 workers (4-6, 8, 10) are queued: 8 slots for 12", "2 workers (9, 11) are queued",
		}
		c := l.Counts()
		if !slices.Equal(c.Away, want) || c.Left() != 9 || c.Running != 1 || c.Ended != 1 || c.Queued != 7 {
			t.Errorf("%+v", c)
		}
	})
}

// A submission file is validated: its name alone does not make it a submission.
func TestReadSubmission(t *testing.T) {
	dir := t.TempDir()
	w := Work{Dir: dir, Program: os.Args[0], Count: 3}
	s, err := Begin("here", &w)
	require.NoError(t, err)
	s.IDs = []string{"12"}
	require.NoError(t, s.Write())
	got, err := ReadSubmission(dir, "here")
	if err != nil || got.Tag != s.Tag || !slices.Equal(got.IDs, s.IDs) || got.Out(2) != filepath.Join(dir, "out/2") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadSubmission(dir, "there"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, text := range []string{"", "{", `{"system": "here", "tag": "*", "count": 1}`,
		`{"system": "here", "tag": "weir-../../home/x", "count": 1}`, `{"system": "here", "tag": "` + s.Tag + `", "count": -1}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, SubmissionFile), []byte(text), 0o600))
		if _, err := ReadSubmission(dir, "here"); err == nil {
			t.Errorf("%s was believed", text)
		}
	}
}
