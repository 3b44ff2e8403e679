package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/transfer"
)

func opened(t *testing.T, dir string) (*journal, []memory) {
	t.Helper()
	j, left, err := openJournal(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return j, left
}

func closed(t *testing.T, j *journal) {
	t.Helper()
	if err := j.close(); err != nil {
		t.Error(err)
	}
}

func leaseOf(item, epoch int64) transfer.Lease {
	return transfer.Lease{
		Item: item, Epoch: epoch, Name: fmt.Sprintf("/d/f%d", item),
		Source: transfer.End{Token: "secret-one"}, Dest: transfer.End{Token: "secret-two"},
	}
}

// Attempts that began and did not end, and outcomes that the coordinator has not acknowledged, are
// there when the journal is opened again; all others and all secrets are not.
func TestJournalRemembers(t *testing.T) {
	dir := t.TempDir()
	j, left := opened(t, dir)
	if len(left) != 0 {
		t.Fatalf("a new journal remembers %v", left)
	}
	for item := range int64(4) {
		j.begin(leaseOf(item, 2))
	}
	var told sync.WaitGroup
	told.Add(2)
	for _, item := range []int64{1, 2} {
		j.end(transfer.Outcome{Item: item, Epoch: 2, Reason: "r"}, told.Done)
	}
	told.Wait()
	j.over([]transfer.LeaseID{{Item: 1, Epoch: 2}})
	closed(t, j)
	text, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%v: %s", err, text)
	}
	j, left = opened(t, dir)
	defer closed(t, j)
	var begun, ended []int64
	for _, m := range left {
		if m.outcome != nil {
			ended = append(ended, m.outcome.Item)
		} else {
			begun = append(begun, m.lease.Item)
		}
	}
	slices.Sort(begun)
	if !slices.Equal(begun, []int64{0, 3}) || !slices.Equal(ended, []int64{2}) {
		t.Errorf("began %v, ended %v", begun, ended)
	}
}

// A kill may tear the last line, and a disk may have lost others: the readable lines are used.
func TestJournalBearsTornLines(t *testing.T) {
	dir := t.TempDir()
	j, _ := opened(t, dir)
	j.begin(leaseOf(1, 1))
	j.begin(leaseOf(2, 1))
	closed(t, j)
	path := filepath.Join(dir, journalName)
	text := require.File(t, path)
	for cut := 0; cut < len(text); cut += 11 {
		require.NoError(t, os.WriteFile(path, text[:cut], 0o600))
		j, left := opened(t, dir)
		if len(left) > 2 || cut < len(text)/3 && len(left) > 1 {
			t.Errorf("cut at %d of %d: %d attempts", cut, len(text), len(left))
		}
		closed(t, j)
	}
}

// The journal stays small, however many files are copied, and keeps the attempts that are still
// needed.
func TestJournalStaysSmall(t *testing.T) {
	dir := t.TempDir()
	j, _ := opened(t, dir)
	j.begin(leaseOf(7, 7))
	for item := int64(100); item < 10_100; item++ {
		j.begin(leaseOf(item, 1))
		if item%100 == 0 { // a report acknowledges many attempts
			var all []transfer.LeaseID
			for i := item - 99; i <= item; i++ {
				all = append(all, transfer.LeaseID{Item: i, Epoch: 1})
			}
			done := make(chan struct{})
			j.end(transfer.Outcome{Item: item, Epoch: 1}, func() { close(done) })
			<-done
			j.over(all)
		}
	}
	closed(t, j)
	info, err := os.Stat(filepath.Join(dir, journalName))
	if err != nil || info.Size() > 2*longJournal {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	j, left := opened(t, dir)
	defer closed(t, j)
	if !slices.ContainsFunc(left, func(m memory) bool { return m.lease != nil && m.lease.Item == 7 }) {
		t.Errorf("the oldest attempt is forgotten; %d are left", len(left))
	}
}
