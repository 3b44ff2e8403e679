package queue

import (
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// exec changes the database without the queue.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	w.must(w.db.Write(w.ctx, func(tx *db.Tx) error { _, err := tx.Exec(query, args...); return err }))
}

// A request that cannot be resolved does not block others: they are resolved, retried and
// cancelled. It reports the reason, and continues when the cause is removed. A request that can
// never be resolved has failed.
func TestWorkThatFailsBlocksNobody(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 5, "A")
		ask := func() transfer.Request {
			w.t.Helper()
			r, err := w.Submit(w.ctx, "alice", transfer.Submission{Dataset: "/d", To: "C", Approve: true})
			w.must(err)
			return r
		}
		bad, never, good := ask(), ask(), ask()
		w.exec("INSERT INTO item ("+fileColumns+") SELECT ?, id, name, size, adler, 6, 0, 0, 0, 0, 0, '', '', '', 'in the way', 1, 0, '', "+
			"FALSE FROM file ORDER BY id LIMIT 1", bad.ID*perRequest+3)
		w.exec("UPDATE request SET files_n = ?, failed_n = ? WHERE id = ?", perRequest-3, perRequest-3, never.ID)
		for range 6 {
			_, err := w.Work(w.ctx, 100)
			w.must(err)
		}
		if r := w.get(good.ID); r.Status != transfer.Running || r.Count.Files != 5 {
			w.t.Errorf("the good one: %+v", r)
		}
		if r := w.get(bad.ID); r.Status != transfer.Resolving || !strings.Contains(r.Reason, "cannot be dealt with") {
			w.t.Errorf("the bad one: %+v", r)
		}
		if r := w.get(never.ID); r.Status != transfer.Failed || !strings.Contains(r.Reason, "files") {
			w.t.Errorf("the one that never can: %+v", r)
		}
		_, err := w.Cancel(w.ctx, good.ID, "alice", "")
		w.must(err)
		if r := w.get(good.ID); r.Status != transfer.Cancelled {
			w.t.Errorf("cancelled: %+v", r)
		}
		w.exec("DELETE FROM item WHERE id = ?", bad.ID*perRequest+3)
		w.exec("UPDATE request SET files_n = 0, failed_n = 0 WHERE id = ?", never.ID)
		w.pass(haltTime + time.Second)
		w.work()
		if r := w.get(bad.ID); r.Status != transfer.Running || r.Count.Files != 5 {
			w.t.Errorf("the bad one, mended: %+v", r)
		}
	})
}

// The request that is approved is the request that was submitted: files registered later are not
// part of it.
func TestApprovalCoversWhatWasSeen(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 3, "A")
		r, err := w.Submit(w.ctx, "alice", transfer.Submission{Dataset: "/d", To: "C"})
		w.must(err)
		w.dataset("/d", 53, "A")
		_, err = w.Approve(w.ctx, r.ID, "boss", "")
		w.must(err)
		w.work()
		if r = w.get(r.ID); r.Asked.Files != 3 || r.Count.Files != 3 {
			w.t.Errorf("%+v", r)
		}
		if r = w.submit(transfer.Submission{Dataset: "/d", To: "D"}); r.Count.Files != 53 {
			w.t.Errorf("submitted later: %+v", r)
		}
	})
}

// All open requests count, however many there are.
func TestPendingCountsAll(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		w.dataset("/e", 3, "B")
		for range 1100 {
			_, err := w.Submit(w.ctx, "alice", transfer.Submission{Dataset: "/d", To: "C"})
			w.must(err)
		}
		w.submit(transfer.Submission{Dataset: "/d", To: "D"})
		w.submit(transfer.Submission{Dataset: "/e", To: "D"})
		w.site("B", false, -1)
		all, err := w.Read.Pending(w.ctx)
		w.must(err)
		if len(all) != 2 || all[0].Dest != "C" || all[0].Requests != 1100 || all[0].Count.Files != 0 || all[1].Dest != "D" ||
			all[1].Requests != 2 ||
			all[1].Count != (transfer.Counts{Files: 5, Queued: 2, NoSource: 3}) {
			w.t.Errorf("%+v", all)
		}
	})
}

// Sums of sizes remain valid numbers, even for huge requests.
func TestHugeSums(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		var r transfer.Request
		for range 3 {
			r = w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		}
		w.exec("UPDATE file SET size = ?", math.MaxInt64/2)
		w.exec("UPDATE item SET size = ?", math.MaxInt64/2)
		w.exec("UPDATE request SET bytes_n = ?", math.MaxInt64-1)
		if d := w.lease("C", 1); len(d) != 1 {
			w.t.Errorf("%+v", d)
		}
		w.exec("UPDATE site SET free = ?", int64(1000))
		if len(w.waiting("C", 10)) != 0 {
			w.t.Error("there is no room")
		}
		w.exec("UPDATE lease SET size = 1000")
		w.exec("UPDATE item SET size = 1000")
		w.exec("UPDATE request SET bytes_n = 2000 WHERE id = ?", r.ID)
		w.exec("UPDATE request SET bytes_n = 2000")
	})
}

// The bad files counted by one edit are not lost when another edit adds its own.
func TestMissesOfManyEdits(t *testing.T) {
	var m circuitBreaker
	m.add(map[string]badRun{"A": {n: 3}})
	m.add(map[string]badRun{"A": {n: 4}, "B": {n: 1}})
	if got := m.bad; got["A"] != 7 || got["B"] != 1 {
		t.Errorf("%v", got)
	}
	m.add(map[string]badRun{"A": {n: 2, since: true}, "B": {since: true}})
	if got := m.bad; got["A"] != 2 || len(got) != 1 {
		t.Errorf("after a good one: %v", got)
	}
}

// A replica that was marked bad once is tried again when no other source is left.
func TestOldVerdictsAreAskedAgain(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		first := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 2})
		for _, l := range w.lease("C", 10) {
			w.report(failure(l, transfer.SourceBad, "404"))
		}
		if first = w.get(first.ID); first.Status != transfer.Failed {
			w.t.Fatalf("%+v", first)
		}
		again := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 2})
		leases := w.lease("C", 10)
		if len(leases) != 2 {
			w.t.Fatalf("not asked: %+v", w.get(again.ID))
		}
		w.report(success(leases[0]), failure(leases[1], transfer.SourceBad, "404 still"))
		if again = w.get(again.ID); again.Status != transfer.Partial || again.Count.Attempts != 2 {
			w.t.Errorf("%+v", again)
		}
		if p := w.item(leases[1].Item); !strings.Contains(p.Reason, "404 still") {
			w.t.Errorf("%+v", p)
		}
		last := w.submit(transfer.Submission{Dataset: "/d", To: "D"})
		if n := len(w.lease("D", 10)); n != 2 {
			w.t.Errorf("%d files of %+v", n, last)
		}
	})
}

// A source that sends the same wrong bytes twice is bad, also if it provides no checksum; bytes
// that are wrong in a different way each time are damaged in transit.
func TestSameWrongBytesTwice(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A", "B")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 50})
		wrong := func(adler string) (source string) {
			l := w.lease("C", 1)
			if len(l) != 1 {
				w.t.Fatalf("%+v", w.all(r.ID))
			}
			o := failure(l[0], transfer.Checksum, "what arrived has adler32 "+adler)
			o.Adler = adler
			w.report(o)
			w.pass(10 * time.Minute)
			return l[0].Source.Site
		}
		from := map[string]int{}
		for _, a := range []string{"0000aaaa", "0000bbbb", "0000cccc", "0000dddd"} {
			from[wrong(a)]++
		}
		if from["A"] != 2 || from["B"] != 2 || w.badness("/d/f0000000", "A") != "" {
			w.t.Errorf("%v, %q", from, w.badness("/d/f0000000", "A"))
		}
		for range 2 {
			wrong("0000eeee")
			wrong("0000eeee")
		}
		if w.badness("/d/f0000000", "A") == "" || w.badness("/d/f0000000", "B") == "" {
			w.t.Error("neither copy is known to be spoiled")
		}
		if r = w.get(r.ID); r.Status != transfer.Failed || !strings.Contains(w.all(r.ID)[0].Reason, "is corrupt") {
			w.t.Errorf("%+v %+v", r, w.all(r.ID))
		}
	})
}
