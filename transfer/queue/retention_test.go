package queue

import (
	"testing"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// Requests that ended long ago are removed with all their data, waiting requests stay, and so does
// the catalog: the same dataset is requested again, and all its files are there.
func TestForget(t *testing.T) {
	each(t, Options{Lease: time.Minute}, func(w *world) {
		const files = forgottenAtOnce + 10
		w.dataset("/d", files, "A")
		w.dataset("/waits", 3, "A")
		old := w.submit(transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		waits := w.submit(transfer.Submission{Dataset: "/waits", To: "D", Approve: true})
		w.work()
		for n := 0; n < files; {
			for _, l := range w.lease("C", 1000) {
				w.report(success(l))
				n++
			}
		}
		forgets := func(want int) {
			t.Helper()
			calls := 0
			for more := true; more; calls++ {
				var err error
				more, err = w.Forget(w.ctx, w.clock().Add(-7*24*time.Hour))
				w.must(err)
			}
			if calls-1 != want {
				t.Errorf("%d transactions had more to remove, want %d", calls-1, want)
			}
		}
		forgets(0)
		w.pass(8 * 24 * time.Hour)
		forgets(1)
		left := map[string]int64{}
		for _, table := range []string{"request", "item", "attempt", "lane", "wanted"} {
			n, err := db.Get(w.ctx, w.db, func(tx *db.Tx) (n int64, err error) {
				err = tx.Row("SELECT COUNT(*) FROM " + table).Scan(&n)
				return n, err
			})
			w.must(err)
			left[table] = n
		}
		if left["request"] != 1 || left["item"] != 3 || left["attempt"] != 0 || left["lane"] != 1 {
			t.Errorf("%v stay of requests %d and %d", left, old.ID, waits.ID)
		}
		again := w.submit(transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		w.work()
		if q := w.get(again.ID); again.ID <= waits.ID || q.Count.Files != files {
			t.Errorf("the new request is %+v", q)
		}
	})
}

// A job is kept completely until all of its requests ended long ago: its state is the state of all
// its files, and a copy on the way is removed when the hop after it has ended, however long ago it
// was made.
func TestForgetJobs(t *testing.T) {
	each(t, Options{}, func(w *world) {
		second, gone := pairTo(1, "B", "C", "f"), pairTo(2, "B", "B", "f")
		second.After, gone.After, gone.Made, gone.Size, gone.Adler = 1, 2, 1, 0, ""
		w.must(w.SubmitJob(w.ctx, Job{ID: "j", Params: "{}"}, []JobPart{{To: "B", Pairs: []Pair{pairTo(0, "A", "B", "f")}},
			{To: "C", Pairs: []Pair{second}}, {To: "B", Terms: JobTerms{Delete: true}, Pairs: []Pair{gone}}}))
		w.report(success(w.lease("B", 10)[0]))
		w.pass(time.Second)
		hop := w.lease("C", 10)
		forget := func(parts int) {
			t.Helper()
			for more := true; more; {
				var err error
				more, err = w.Forget(w.ctx, w.clock().Add(-7*24*time.Hour))
				w.must(err)
			}
			n, err := db.Get(w.ctx, w.db, func(tx *db.Tx) (n int, err error) {
				return n, tx.Row("SELECT COUNT(*) FROM request").Scan(&n)
			})
			if err != nil || n != parts {
				t.Errorf("%d requests of the job are left instead of %d: %v", n, parts, err)
			}
		}
		w.now = w.now.Add(8 * 24 * time.Hour)
		forget(3)
		w.report(success(hop[0]))
		w.pass(time.Second)
		remove, err := w.Take(w.ctx, []Choice{{Item: w.waiting("B", 10)[0].ID, Source: "B", Mode: transfer.Delete}})
		w.must(err)
		done := success(remove[0])
		done.Adler = ""
		w.report(done)
		forget(3)
		w.pass(8 * 24 * time.Hour)
		forget(0)
	})
}

// Clients that follow events can request, from a restored coordinator, the events after the last
// event of the lost coordinator: there are some.
func TestEventsAfterARestore(t *testing.T) {
	each(t, Options{}, func(w *world) {
		if w.db.Dialect() != db.SQLite {
			return // a backup is restored into SQLite
		}
		w.dataset("/d", 1, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "B", Approve: true})
		w.work()
		for _, l := range w.lease("B", 1) {
			w.report(success(l))
		}
		before, err := w.Read.Events(w.ctx, 0, 1000)
		w.must(err)
		if len(before) == 0 {
			t.Fatal("no events")
		}
		last := before[len(before)-1].ID
		w.must(SkipNumbers(w.ctx, w.db))
		w.dataset("/e", 1, "A")
		w.submit(transfer.Submission{Dataset: "/e", To: "B", Approve: true})
		after, err := w.Read.Events(w.ctx, last+1000, 1000)
		w.must(err)
		if len(after) == 0 {
			t.Error("no event has a number that the lost coordinator did not give")
		}
	})
}
