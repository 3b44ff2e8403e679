package queue

import (
	"testing"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// Requests that ended long ago are removed with all that belongs to them, those that wait stay, and so does the catalog: the
// same dataset is asked for again, and all its files are there.
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
