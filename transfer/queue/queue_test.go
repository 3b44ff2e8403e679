package queue

import (
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/catalog"
)

// each runs a test in a world of sites A to D, all up, on both databases.
func each(t *testing.T, o Options, f func(w *world)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		w := newWorld(t, open(), o)
		for _, s := range []string{"A", "B", "C", "D"} {
			w.site(s, true, -1)
		}
		f(w)
		w.audit()
	})
}

func TestCompleted(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 5, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		if r.Status != transfer.Running || r.Count.Queued != 5 || r.Asked.Files != 5 || r.Count.Bytes != r.Asked.Bytes {
			w.t.Fatalf("%+v", r)
		}
		leases := w.lease("C", 10)
		if len(leases) != 5 || leases[0].Epoch != 1 || leases[0].Source.Path != "d/f0000000" || leases[0].Dest.Site != "C" {
			w.t.Fatalf("%+v", leases)
		}
		w.audit()
		for i, l := range leases {
			c := w.report(success(l))
			if ended := c[0].Ended != ""; c[0].State != transfer.Done || ended != (i == 4) {
				w.t.Errorf("%d: %+v", i, c)
			}
			w.audit()
		}
		r = w.get(r.ID)
		if r.Status != transfer.Completed || r.Count.Done != 5 || r.Count.DoneBytes != 5010 || r.Count.Attempts != 5 {
			w.t.Errorf("%+v", r)
		}
		again := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		for _, l := range w.lease("C", 10) {
			if l.Mode != transfer.Check || l.Source.Site != l.Dest.Site || l.Source.Path != l.Dest.Path {
				w.t.Errorf("%+v", l)
			}
			w.report(success(l))
		}
		again = w.get(again.ID)
		if again.Status != transfer.Completed || again.Count.Skipped != 5 || again.Count.DoneBytes != 5010 {
			w.t.Errorf("the same once more: %+v", again)
		}
		m, err := w.Manifest(w.ctx, r.ID)
		w.must(err)
		if len(m.Items) != 5 || len(m.Digest) != 64 || m.Items[4].Name != "/d/f0000004" {
			w.t.Errorf("%+v", m)
		}
		f, err := w.Read.Find(w.ctx, r.ID, "/d/f0000003")
		w.must(err)
		if f.ID != m.Items[3].ID {
			w.t.Errorf("%+v", f)
		}
	})
}

func TestPartial(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 3, "A", "B")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 2})
		for range 2 { // each source once
			leases := w.lease("C", 10)
			for _, l := range leases {
				if l.Name == "/d/f0000001" {
					w.report(failure(l, transfer.SourceBad, "no such file at "+l.Source.Site))
				} else {
					w.report(success(l))
				}
			}
		}
		r = w.get(r.ID)
		if r.Status != transfer.Partial || r.Count.Done != 2 || r.Count.Failed != 1 {
			w.t.Fatalf("%+v", r)
		}
		items, next, err := w.Read.Items(w.ctx, r.ID, transfer.FileFailed, 0, 10)
		w.must(err)
		if next != 0 || len(items) != 1 || items[0].Reason != "A: no such file at A; B: no such file at B" {
			w.t.Errorf("%+v", items)
		}
		if w.badness("/d/f0000001", "A") == "" || w.badness("/d/f0000000", "A") != "" {
			w.t.Error("the bad replica is not known to be bad")
		}
		// Another request tries each of them once more, as no other source is left.
		other := w.submit(transfer.Submission{Dataset: "/d", To: "D", Files: []string{"/d/f0000001"}})
		for range 2 {
			for _, l := range w.lease("D", 10) {
				w.report(failure(l, transfer.SourceBad, "no such file at "+l.Source.Site))
			}
		}
		other = w.get(other.ID)
		if other.Status != transfer.Failed || !strings.Contains(w.all(other.ID)[0].Reason, "no such file at B") {
			w.t.Errorf("%+v %+v", other, w.all(other.ID))
		}
		// It is found again, and only this file is retried.
		r, err = w.Retry(w.ctx, r.ID, "alice", "disk is back")
		w.must(err)
		if r.Status != transfer.Running || r.Count.Queued != 1 || r.Count.Done != 2 {
			w.t.Errorf("%+v", r)
		}
		l := w.lease("C", 10)
		if len(l) != 1 || l[0].Epoch != 3 {
			w.t.Fatalf("%+v", l)
		}
		w.report(success(l[0]))
		if r = w.get(r.ID); r.Status != transfer.Completed || w.badness("/d/f0000001", l[0].Source.Site) != "" {
			w.t.Errorf("%+v", r)
		}
	})
}

func TestOldEpochs(t *testing.T) {
	each(t, Options{Lease: time.Minute, Grace: 2 * time.Minute}, func(w *world) {
		w.dataset("/d", 1, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		first := w.lease("C", 1)[0]
		missing, _ := w.pass(90 * time.Second)
		if len(missing) != 1 || missing[0].Epoch != 1 || missing[0].Dest.Path != "d/f0000000" {
			w.t.Fatalf("%+v", missing)
		}
		if one := w.item(first.Item); one.State != transfer.Leased || !strings.Contains(one.Reason, "no report of") {
			w.t.Errorf("%+v", one)
		}
		if _, changes := w.pass(2 * time.Minute); len(changes) != 1 || changes[0].State != transfer.Queued {
			w.t.Fatalf("%+v", changes)
		}
		w.pass(time.Minute)
		second := w.lease("C", 1)[0]
		if second.Epoch != 2 {
			w.t.Fatalf("%+v", second)
		}
		if c := w.report(success(first), success(first)); !c[0].Stale || c[0].State != transfer.Leased {
			w.t.Errorf("%+v", c)
		}
		w.audit()
		if _, gone, err := w.Renew(w.ctx, []transfer.Progress{{Item: first.Item, Epoch: 1},
			{Item: first.Item, Epoch: 2, Moved: 500}}); err != nil || len(gone) != 1 || gone[0].Epoch != 1 {
			w.t.Errorf("%v %v", gone, err)
		}
		w.report(success(second), success(second), failure(second, transfer.Permanent, "no"))
		r = w.get(r.ID)
		attempts, err := w.Read.Attempts(w.ctx, first.Item)
		w.must(err)
		if r.Status != transfer.Completed || r.Count.Attempts != 2 || len(attempts) != 4 {
			w.t.Errorf("%+v %+v", r, attempts)
		}
	})
}

// Reports of an agent are accepted only for its own copies: reports about other copies, running or
// ended, have no effect.
func TestReportsOfOthers(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		first := w.lease("C", 1)[0]
		for _, from := range []string{"A", "B", "nobody"} {
			if c, err := w.Report(w.ctx, from, []transfer.Outcome{success(first)}); err != nil || !c[0].Stale || c[0].State != transfer.Leased {
				w.t.Errorf("%s: %+v, %v", from, c, err)
			}
		}
		c, err := w.Report(w.ctx, "C", []transfer.Outcome{failure(first, transfer.Transient, "no")})
		if err != nil || c[0].Stale {
			w.t.Errorf("%+v, %v", c, err)
		}
		if _, err := w.Report(w.ctx, "B", []transfer.Outcome{success(first)}); err != nil {
			w.t.Error(err)
		}
		attempts, err := w.Read.Attempts(w.ctx, first.Item)
		if r = w.get(r.ID); err != nil || r.Status.Ended() || len(attempts) != 1 {
			w.t.Errorf("%+v %+v, %v", r, attempts, err)
		}
		w.audit()
	})
}

// A replica under another path is found there again, and stays a source there.
func TestCheckKeepsPath(t *testing.T) {
	each(t, Options{}, func(w *world) {
		mapped := func(yield func(catalog.Entry, error) bool) {
			for e, err := range entries("/d", 0, 2) {
				e.Path = "incoming" + e.Name
				if !yield(e, err) {
					return
				}
			}
		}
		_, err := w.store.Register(w.ctx, "/d", "A", "test", mapped)
		w.must(err)
		r := w.submit(transfer.Submission{Dataset: "/d", To: "A"})
		for _, l := range w.lease("A", 10) {
			if l.Mode != transfer.Check || l.Source.Path != "incoming"+l.Name {
				w.t.Fatalf("%+v", l)
			}
			w.report(success(l))
		}
		if r = w.get(r.ID); r.Count.Skipped != 2 {
			w.t.Fatalf("%+v", r)
		}
		w.submit(transfer.Submission{Dataset: "/d", To: "B"})
		for _, l := range w.lease("B", 10) {
			if l.Source.Path != "incoming"+l.Name {
				w.t.Errorf("the check forgot the path: %+v", l.Source)
			}
		}
	})
}

// Files that were registered without a checksum keep the first checksum that was computed, for
// later requests and for running requests.
func TestChecksumsAreLearned(t *testing.T) {
	each(t, Options{}, func(w *world) {
		bare := func(yield func(catalog.Entry, error) bool) {
			for e, err := range entries("/d", 0, 2) {
				e.Adler = ""
				if !yield(e, err) {
					return
				}
			}
		}
		_, err := w.store.Register(w.ctx, "/d", "A", "test", bare)
		w.must(err)
		w.submit(transfer.Submission{Dataset: "/d", To: "B"})
		other := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		read := func(l transfer.Lease, adler string) transfer.Outcome {
			o := success(l)
			o.Adler = adler
			return o
		}
		first, second := w.lease("B", 2), w.lease("C", 2)
		if len(first) != 2 || len(second) != 2 || first[0].Adler != "" {
			w.t.Fatalf("%+v, %+v", first, second)
		}
		w.report(read(first[0], "0000aaaa"))
		w.report(read(first[1], "0000bbbb"), read(second[1], "0000cccc"))
		w.report(read(second[0], "0000aaaa"))
		all := w.all(other.ID)
		if all[0].State != transfer.Done || all[1].State == transfer.Done || all[1].Fault != transfer.Checksum {
			w.t.Errorf("read at the same time: %+v", all)
		}
		files, err := w.store.Files(w.ctx, "/d", "", 0)
		w.must(err)
		for i, want := range []string{"0000aaaa", "0000bbbb"} {
			if f := files[i]; f.Adler != want || f.By != "request 1" {
				w.t.Errorf("%+v, want %s", f.File, want)
			}
		}
		again := w.submit(transfer.Submission{Dataset: "/d", To: "B"})
		for _, l := range w.lease("B", 10) {
			if l.Adler == "" {
				w.t.Errorf("the checksum was forgotten: %+v", l)
			}
			w.report(success(l))
		}
		if again = w.get(again.ID); again.Status != transfer.Completed || again.Count.Skipped != 2 {
			w.t.Errorf("%+v", again)
		}
	})
}
