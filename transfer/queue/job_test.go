package queue

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/transfer"
)

// The files of a job go through the same states as the files of a dataset, on SQLite and
// PostgreSQL: with an unknown size, in the order of their sources, from their destination's own
// site, and one after the other to the same destination.
func TestJob(t *testing.T) {
	each(t, Options{}, func(w *world) {
		source := func(site string) PairSource {
			return PairSource{Site: site, Path: "from", URL: "https://" + site + "/from"}
		}
		parts := []JobPart{
			{To: "C", Share: "users", Replace: true, Orderly: true, Timeout: time.Hour, Streams: 2, Tries: 2, Pairs: []Pair{
				{Number: 1, Sources: []PairSource{source("B"), source("A")}, Dest: "https://C/x", Path: "x", Size: -1, Params: `{"n":1}`},
				{Number: 0, Sources: []PairSource{source("C")}, Dest: "https://C/y", Path: "y", Size: 5, Adler: "00000001", Params: "{}"},
			}},
			{To: "D", Pairs: []Pair{{Number: 2, Sources: []PairSource{source("A")}, Dest: "https://D/x", Path: "x", Size: 7, Adler: "00000002"}}},
		}
		w.must(w.SubmitJob(w.ctx, Job{ID: "one", By: "alice", Params: `{"k":1}`}, parts))
		if err := w.SubmitJob(w.ctx, Job{ID: "one", By: "bob"}, parts[1:]); !errors.Is(err, ErrDuplicate) {
			t.Errorf("the same id again: %v", err)
		}
		require.NoError(t, w.SubmitJob(w.ctx, Job{ID: "two", By: "bob"}, parts[1:]))
		same := []JobPart{{To: "D", Pairs: []Pair{parts[1].Pairs[0], parts[1].Pairs[0]}}}
		if err := w.SubmitJob(w.ctx, Job{ID: "three"}, same); !errors.Is(err, ErrRefused) {
			t.Errorf("two files with one destination: %v", err)
		}

		leases := w.lease("C", 10)
		if len(leases) != 2 {
			t.Fatalf("%+v", leases)
		}
		x, y := leases[0], leases[1]
		if x.Source.Site != "B" || x.Source.Path != "from" || x.Dest.Path != "x" || x.Size != -1 || x.Job != "one" || !x.Replace ||
			x.Timeout != time.Hour || x.Streams != 2 {
			t.Errorf("%+v", x)
		}
		if y.Source.Site != "C" || y.Mode == transfer.Check || y.Size != 5 {
			t.Errorf("%+v", y)
		}
		w.report(failure(x, transfer.SourceBad, "it is not there"), success(y))
		next := w.lease("C", 10)
		if len(next) != 1 || next[0].Source.Site != "A" {
			t.Fatalf("%+v", next)
		}
		arrived := success(next[0])
		arrived.Size, arrived.Adler = 1234, "0000abcd"
		w.report(arrived)

		d := w.lease("D", 10)
		if len(d) != 1 || d[0].Job != "one" {
			t.Fatalf("two jobs bring the same file to the same place: %+v", d)
		}
		w.report(success(d[0]))
		jobs, err := w.Read.Jobs(w.ctx, []string{"one", "none"})
		w.must(err)
		if len(jobs) != 1 || len(jobs[0].Parts) != 2 || jobs[0].Params != `{"k":1}` || jobs[0].Parts[0].Status != transfer.Completed ||
			jobs[0].Parts[0].Count.Bytes != 1239 {
			t.Fatalf("%+v", jobs[0])
		}
		files, err := w.Read.JobFiles(w.ctx, jobs[0])
		w.must(err)
		if len(files) != 3 || files[1].Number != 1 || files[1].Item.Size != 1234 || files[1].State != transfer.Done || files[1].Began.IsZero() ||
			files[1].Failures["B"] == "" || files[1].Params != `{"n":1}` || files[1].Attempts != 2 || files[2].Share != "default" {
			t.Errorf("%+v", files[1])
		}
		open, err := w.Read.FindJobs(w.ctx, JobFilter{Open: true, Limit: 10})
		w.must(err)
		if len(open) != 1 || open[0].ID != "two" {
			t.Errorf("%+v", open)
		}
		w.must(w.SetPriority(w.ctx, "two", 2))

		// A job is removed with the last of its requests.
		w.pass(8 * 24 * time.Hour)
		for more := true; more; {
			more, err = w.Forget(w.ctx, w.clock().Add(-7*24*time.Hour))
			w.must(err)
		}
		for table, want := range map[string]int64{"job": 1, "pair": 1} {
			n, err := db.Get(w.ctx, w.db, func(tx *db.Tx) (n int64, err error) {
				err = tx.Row("SELECT COUNT(*) FROM " + table).Scan(&n)
				return n, err
			})
			w.must(err)
			if n != want {
				t.Errorf("%d rows of %s, want %d", n, table, want)
			}
		}
	})
}

// A file of a job is found by its name, for any order of the submitted files.
func TestFindInJobs(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Pairs: []Pair{pairTo(0, "A", "B", "c"),
			pairTo(1, "A", "B", "a"), pairTo(2, "A", "B", "b")}}}))
		j, _ := w.jobFiles("j")
		for i, name := range []string{"/c", "/a", "/b"} {
			if one, err := w.Read.Find(w.ctx, j.Parts[0].ID, name); err != nil || one.ID != j.Parts[0].ID*perRequest+int64(i)+1 {
				t.Errorf("%s: %+v, %v", name, one, err)
			}
		}
		if _, err := w.Read.Find(w.ctx, j.Parts[0].ID, "/d"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a file that it does not have: %v", err)
		}
	})
}

// Sources are read as they were written, for any content of their texts.
func TestSourceList(t *testing.T) {
	t.Parallel()
	for _, want := range [][]PairSource{
		{{"A", "f", "https://a/f"}}, {{"A", "f", "https://a/f"}, {"B", "", "http://b/"}}, {{`A"`, `x\y`, "<é>"}}, {{"A", "x},{y", "[]{}"}}, nil,
	} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		if got, err := readSourceList(string(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
