package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// changes returns the changes that are kept, one a line: the state, and the attempt that began or
// ended.
func (w *world) changes(n int) (all []*FileChange, text string) {
	w.t.Helper()
	all, err := w.Changes(w.ctx, n)
	w.must(err)
	var lines []string
	for _, c := range all {
		line := fmt.Sprintf("%s %d %s", c.Job.ID, c.File.Number, c.File.State)
		switch {
		case c.Began:
			line += " begins from " + c.Source
		case c.Ended != nil:
			line += fmt.Sprintf(" ended %s from %s", c.Ended.Fault, c.Ended.Source)
		}
		lines = append(lines, strings.TrimSpace(line+" "+c.File.Reason))
	}
	return all, strings.Join(lines, "\n")
}

// Each change of a file of a job is kept in the transaction that made it, with the attempt that
// began or ended, until it is removed; changes of datasets and of removals are not kept.
func TestChanges(t *testing.T) {
	each(t, Options{Changes: true}, func(w *world) {
		w.dataset("/d", 2, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "D", Approve: true})
		source := func(site string) PairSource { return PairSource{Site: site, Path: "x", URL: "https://" + site + "/x"} }
		w.must(w.SubmitJob(w.ctx, Job{ID: "one", By: "alice", Params: `{"k":1}`}, []JobPart{{To: "C", Share: "users", Streams: 3,
			Timeout: time.Hour, Pairs: []Pair{
				{Number: 0, Sources: []PairSource{source("A"), source("B")}, Dest: "https://C/x", Path: "x", Size: 5, Adler: "00000001"},
				{Number: 1, Sources: []PairSource{source("B")}, Dest: "https://C/y", Path: "y", Size: 6, Adler: "00000002"},
			}}, {To: "D", Terms: JobTerms{Delete: true}, Pairs: []Pair{{Number: 2, Sources: []PairSource{source("D")}, Dest: "https://D/x",
			Path: "x"}}}}))
		leases := w.lease("C", 10)
		if len(leases) != 2 || leases[0].Source.Site != "A" {
			t.Fatalf("%+v", leases)
		}
		w.report(failure(leases[0], transfer.SourceBad, "it is not there"), success(leases[1]))
		next := w.lease("C", 10)
		w.report(failure(next[0], transfer.Transient, "cut"))
		w.pass(time.Hour) // the pause ends: no change is recorded
		last := w.lease("C", 10)
		w.report(failure(last[0], transfer.Permanent, "no"))
		want := `one 0 queued
one 1 queued
one 0 leased begins from A
one 1 leased begins from B
one 0 queued ended source from A it is not there
one 1 done ended  from B
one 0 leased begins from B
one 0 queued ended away from B cut
one 0 leased begins from B
one 0 failed ended permanent from B no`
		want = strings.ReplaceAll(want, "ended away", "ended "+string(transfer.Transient))
		all, got := w.changes(100)
		if got != want {
			t.Errorf("%s\ninstead of\n%s", got, want)
		}
		last0 := all[len(all)-1]
		if last0.Job.Params != `{"k":1}` || last0.File.Streams != 3 || last0.File.Timeout != time.Hour || last0.File.Share != "users" ||
			last0.File.Attempts != 3 || len(last0.File.Sources) != 2 || last0.File.Fault != transfer.Permanent || last0.At != w.clock() {
			t.Errorf("%+v", last0.File)
		}
		if all[4].At != start || all[4].File.Fault != transfer.SourceBad || !all[4].File.Ended.IsZero() {
			t.Errorf("%+v", all[4].File)
		}

		some, _ := w.changes(3)
		w.must(w.RemoveChanges(w.ctx, idsOf(some, func(c *FileChange) int64 { return c.ID })))
		if left, _ := w.changes(100); len(left) != len(all)-3 || left[0].ID != all[3].ID {
			t.Errorf("%d of %d are left", len(left), len(all))
		}
		if n, oldest, err := w.KeptChanges(w.ctx); err != nil || n != 7 || !oldest.Equal(start) {
			t.Error(n, oldest, err)
		}
		if n, _, err := w.DropChanges(w.ctx, start, 5); err != nil || n != 2 {
			t.Error(n, err)
		}
		if n, _, err := w.DropChanges(w.ctx, start.Add(time.Second), 5); err != nil || n != 3 {
			t.Error(n, err)
		}
		left, _ := w.changes(100)
		if len(left) != 2 {
			t.Fatalf("%d are left", len(left))
		}
		w.must(w.db.Write(w.ctx, func(tx *db.Tx) error { // the part that deletes has ended as well
			_, err := tx.Exec("UPDATE request SET ended = 1 WHERE ended = 0")
			return err
		}))
		for more := true; more; { // the job is forgotten before its changes are published
			var err error
			more, err = w.Forget(w.ctx, w.clock().Add(time.Hour))
			w.must(err)
		}
		w.work()
		if left, err := w.Changes(w.ctx, 100); err != nil || len(left) != 2 || left[0].Job != nil || left[0].File != nil {
			t.Error(left, err)
		}
		if n, _, err := w.DropChanges(w.ctx, w.clock().Add(time.Second), 1000); err != nil || n != 2 {
			t.Error(n, err)
		}
		if n, oldest, err := w.KeptChanges(w.ctx); err != nil || n != 0 || !oldest.IsZero() {
			t.Error(n, oldest, err)
		}
	})
}

// Files that wait for a tape system, or for the previous hop, also have changes.
func TestChangesOfTapeAndHops(t *testing.T) {
	each(t, Options{Changes: true}, func(w *world) {
		pair := func(n int, from, to string) Pair {
			return Pair{Number: n, Sources: []PairSource{{Site: from, Path: "x", URL: "https://" + from + "/x"}}, Dest: "https://" + to + "/x",
				Path: "x", Size: 5, Adler: "00000001", After: n}
		}
		w.must(w.SubmitJob(w.ctx, Job{ID: "one", By: "alice"}, []JobPart{
			{To: "B", Terms: JobTerms{Stage: time.Hour}, Pairs: []Pair{pair(0, "A", "B")}},
			{To: "C", Terms: JobTerms{Archive: time.Hour}, Pairs: []Pair{pair(1, "B", "C")}}}))
		tell := func(n int) {
			due, err := w.TapeDue(w.ctx, 10)
			w.must(err)
			if len(due) != 1 {
				t.Fatalf("step %d: %+v", n, due)
			}
			due[0].Step = TapePoll
			w.must(w.TapeReport(w.ctx, []TapeNews{{TapeFile: due[0], There: true}}))
		}
		tell(1)
		w.report(success(w.lease("B", 1)[0]))
		w.pass(time.Second)
		w.report(success(w.lease("C", 1)[0]))
		w.pass(time.Second)
		var news []TapeNews
		due, err := w.TapeDue(w.ctx, 10)
		w.must(err)
		for _, f := range due {
			if f.Kind == Archive {
				news = append(news, TapeNews{TapeFile: f, There: true})
			}
		}
		w.must(w.TapeReport(w.ctx, news))
		all, err := w.Changes(w.ctx, 100)
		w.must(err)
		var got []string
		for _, c := range all {
			got = append(got, fmt.Sprint(c.File.Number, " ", c.File.State, " ", c.File.Waits, " ", c.File.Held, " ", c.Ended != nil))
		}
		want := []string{"0 queued 1 false false", "1 queued 0 true false", "0 queued 0 false false", "0 leased 0 false false",
			"0 done 0 false true", "1 queued 0 false false", "1 leased 0 false false", "1 queued 2 false true", "1 done 0 false false"}
		if !slices.Equal(got, want) {
			t.Errorf("%q\ninstead of\n%q", got, want)
		}
	})
}
