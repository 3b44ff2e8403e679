package queue

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/db"
	"weir/lab/dbtest"
	"weir/transfer"
)

// A bad source uses up no try: the file continues from another source.
func TestOtherSources(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A", "B", "D")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 1})
		var asked []string
		for range 3 {
			l := w.lease("C", 1)[0]
			asked = append(asked, l.Source.Site)
			w.report(failure(l, transfer.SourceBad, "it has 7 bytes"))
		}
		if slices.Sort(asked); !slices.Equal(asked, []string{"A", "B", "D"}) {
			w.t.Errorf("%v", asked)
		}
		one := w.all(r.ID)[0]
		if r = w.get(r.ID); r.Status != transfer.Failed || one.Reason != "A: it has 7 bytes; B: it has 7 bytes; D: it has 7 bytes" {
			w.t.Errorf("%+v %+v", r, one)
		}
	})
}

// Files whose mover was ended in an orderly way are ready again at once, without any other effect,
// but only a limited number of times.
func TestLeft(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 1})
		for range pauseFactor {
			if one := w.all(r.ID)[0]; one.Tries != 0 || one.State != transfer.Queued || !one.NotBefore.IsZero() {
				w.t.Errorf("%+v", one)
			}
			w.report(failure(w.lease("C", 1)[0], transfer.MoverStopped, "the agent of site C was ended"))
		}
		if r = w.get(r.ID); r.Status != transfer.Failed {
			w.t.Errorf("%+v", r)
		}
	})
}

// A source whose files are all missing may not be mounted: its other replicas are not marked as
// bad, and it is reported, until it delivers a good file.
func TestASourceIsDoubted(t *testing.T) {
	each(t, Options{}, func(w *world) {
		const more = 10
		w.dataset("/d", brokenAfter+more, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		if doubts := w.BrokenSources(); len(doubts) > 0 {
			w.t.Errorf("%v", doubts)
		}
		for range brokenAfter + more {
			w.report(failure(w.lease("C", 1)[0], transfer.SourceBad, "A does not have the file"))
		}
		doubts := w.BrokenSources()
		if r = w.get(r.ID); r.Count.Failed != brokenAfter || r.Count.Queued != more || !strings.Contains(doubts["A"], "30 files") {
			w.t.Errorf("%+v, %v", r.Count, doubts)
		}
		w.pass(2 * time.Minute)
		w.report(success(w.lease("C", 1)[0]))
		if doubts := w.BrokenSources(); len(doubts) > 0 {
			w.t.Errorf("it has given a good one: %v", doubts)
		}
		for range more - 1 {
			w.report(success(w.lease("C", 1)[0]))
		}
		if r = w.get(r.ID); r.Status != transfer.Partial || r.Count.Done != more {
			w.t.Errorf("%+v", r)
		}
	})
}

// Of the available sources, the source with the fewest failures is offered first.
func TestOrderOfSources(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A", "B")
		w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		w.report(failure(w.lease("C", 1)[0], transfer.Transient, "connection reset"))
		if c := w.waiting("C", 1); len(c) != 0 {
			w.t.Errorf("it does not rest: %+v", c)
		}
		w.pass(10 * time.Second)
		c := w.waiting("C", 1)
		if len(c) != 1 || len(c[0].Replicas) != 2 || c[0].Replicas[0].Site != "B" || c[0].Failures["A"] != 1 {
			w.t.Errorf("%+v", c)
		}
		if c := w.waiting("C", 1, "B"); len(c) != 1 || len(c[0].Replicas) != 1 || c[0].Replicas[0].Site != "A" {
			w.t.Errorf("%+v", c)
		}
	})
}

// A site that is down does not block other files, and its files fail in the end.
func TestSiteDown(t *testing.T) {
	each(t, Options{Patience: time.Hour}, func(w *world) {
		w.dataset("/a", 3, "A")
		w.dataset("/b", 2, "B")
		first := w.submit(transfer.Submission{Dataset: "/a", To: "C", Priority: 10})
		second := w.submit(transfer.Submission{Dataset: "/b", To: "C", Priority: -10})
		w.down("A", "switched off")
		leases := w.lease("C", 5)
		if len(leases) != 2 || leases[0].Request != second.ID {
			w.t.Fatalf("%+v", leases)
		}
		r := w.get(first.ID)
		one := w.all(first.ID)[0]
		if r.Count.NoSource != 3 || r.Count.Queued != 0 || one.State != transfer.NoSource ||
			!strings.Contains(one.Reason, "A cannot be reached since 2026-11-22 12:00:00 UTC (switched off)") {
			w.t.Errorf("%+v %+v", r, one)
		}
		if items, _, err := w.Read.Items(w.ctx, first.ID, transfer.NoSource, 0, 10); err != nil || len(items) != 3 {
			w.t.Errorf("%v %+v", err, items)
		}
		// One of them appears at another site.
		w.register("/a", 1, 2, "D")
		w.pass(time.Second)
		l := w.lease("C", 5)
		if len(l) != 1 || l[0].Name != "/a/f0000001" || l[0].Source.Site != "D" {
			w.t.Fatalf("%+v", l)
		}
		w.report(success(l[0]))
		if r := w.get(first.ID); r.Status != transfer.Running || r.Count.NoSource != 2 {
			w.t.Errorf("%+v", r)
		}
		w.pass(time.Hour)
		if r := w.get(first.ID); r.Status != transfer.Partial || r.Count.Failed != 2 ||
			!strings.Contains(w.all(first.ID)[0].Reason, "A cannot be reached since") {
			w.t.Errorf("%+v %+v", r, w.all(first.ID))
		}
	})
}

func TestSiteComesBack(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/a", 3, "A")
		r := w.submit(transfer.Submission{Dataset: "/a", To: "C"})
		w.down("A", "")
		w.pass(time.Hour)
		if l := w.lease("C", 5); len(l) != 0 {
			w.t.Errorf("%+v", l)
		}
		w.site("A", true, -1)
		for _, l := range w.lease("C", 5) {
			w.report(success(l))
		}
		if r = w.get(r.ID); r.Status != transfer.Completed {
			w.t.Errorf("%+v", r)
		}
	})
}

// The Retry-After of a server is observed.
func TestThrottled(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 1})
		o := failure(w.lease("C", 1)[0], transfer.Throttled, "slow down")
		o.After = 10 * time.Minute
		w.report(o)
		one := w.item(o.Item)
		if one.State != transfer.Queued || one.NotBefore.Sub(start) < 10*time.Minute || one.NotBefore.Sub(start) > 12*time.Minute ||
			one.Reason != "slow down" {
			w.t.Errorf("%+v", one)
		}
		w.pass(9 * time.Minute)
		if l := w.lease("C", 1); len(l) != 0 {
			w.t.Errorf("%+v", l)
		}
		w.pass(3 * time.Minute)
		if l := w.lease("C", 1); len(l) != 1 {
			w.t.Errorf("%+v", l)
		}
	})
}

// A site that does not respond for a while, for example when its agent is restarted, uses up no
// tries.
func TestAway(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Tries: 1})
		for range 10 {
			w.report(failure(w.lease("C", 1)[0], transfer.Unreachable, "connection refused"))
			w.pass(2 * time.Minute)
		}
		w.report(success(w.lease("C", 1)[0]))
		if got := w.get(r.ID); got.Status != transfer.Completed || got.Count.Attempts != 11 {
			w.t.Errorf("%+v", got)
		}
	})
}

// Bytes on their way to a site are reserved there.
func TestSpace(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 5, "A") // of 1000 to 1004 bytes
		w.site("C", true, 2500)
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		l := w.lease("C", 10)
		if len(l) != 2 {
			w.t.Fatalf("%+v", l)
		}
		one := w.all(r.ID)[4]
		if one.State != transfer.Queued || one.Reason != "C has 2500 bytes free, of which 2001 bytes are promised to files on their way, "+
			"and this one needs 1004 bytes" {
			w.t.Errorf("%+v", one)
		}
		// Two looks at the same time do not promise the same space twice.
		w.pass(time.Minute)
		_, _, err := w.Renew(w.ctx, []transfer.Progress{{Item: l[0].Item, Epoch: 1, Moved: 900}})
		w.must(err)
		w.pass(time.Minute)
		c := w.waiting("C", 1)
		twice := []Choice{{Item: c[0].ID, Source: "A"}, {Item: c[0].ID + 1, Source: "A"}}
		if l, err := w.Take(w.ctx, twice); err != nil || len(l) != 1 {
			w.t.Errorf("%v %+v", err, l)
		}
		// The mover reports that it is full: nothing begins there for a while.
		w.site("C", true, -1)
		w.report(failure(l[0], transfer.DestFull, "no space left on device"))
		if c := w.waiting("C", 10); len(c) != 0 {
			w.t.Errorf("%+v", c)
		}
		if one := w.all(r.ID)[4]; !strings.Contains(one.Reason, "C is full (no space left on device); it is tried again at") {
			w.t.Errorf("%+v", one)
		}
		w.pass(2 * time.Minute)
		if c := w.waiting("C", 10); len(c) == 0 {
			w.t.Error("it is held for ever")
		}
	})
}

// Two requests for the same file transfer it once.
func TestTwins(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 1, "A")
		one := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		two := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		other := w.submit(transfer.Submission{Dataset: "/d", To: "D"})
		both := w.lease("C", 10)
		if len(both) != 1 || len(w.lease("D", 10)) != 1 {
			w.t.Fatalf("%+v", both)
		}
		waits := w.all(two.ID)[0]
		if both[0].Request != one.ID || waits.Reason != "request 1 brings the same file now" {
			w.t.Errorf("%+v %+v", both, waits)
		}
		// Take does not lease it either.
		w.pass(6 * time.Second)
		if l, err := w.Take(w.ctx, []Choice{{Item: waits.ID, Source: "A"}}); err != nil || len(l) != 0 {
			w.t.Errorf("%v %+v", err, l)
		}
		w.report(success(both[0]))
		w.pass(6 * time.Second)
		look := w.lease("C", 10)
		if len(look) != 1 || look[0].Mode != transfer.Check {
			w.t.Fatalf("%+v", look)
		}
		w.report(success(look[0]))
		if two = w.get(two.ID); two.Status != transfer.Completed || two.Count.Skipped != 1 || two.Count.Attempts != 1 {
			w.t.Errorf("%+v", two)
		}
		if other = w.get(other.ID); other.Status != transfer.Running {
			w.t.Errorf("%+v", other)
		}
	})
}

// A file that is at the destination according to the catalog is checked there, even if the
// destination is full. If it is lost or damaged it is transferred, if any other site has it.
func TestThereAlready(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A", "C")
		w.dataset("/only", 1, "C")
		w.site("C", true, 0)
		both := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		only := w.submit(transfer.Submission{Dataset: "/only", To: "C"})
		looks := w.lease("C", 10)
		if len(looks) != 3 || looks[0].Mode != transfer.Check || looks[2].Mode != transfer.Check {
			w.t.Fatalf("%+v", looks)
		}
		w.report(success(looks[0]), failure(looks[1], transfer.SourceBad, "it is gone"), failure(looks[2], transfer.SourceBad, "it is gone"))
		if got := w.get(only.ID); got.Status != transfer.Failed || !strings.Contains(w.all(only.ID)[0].Reason, "it is gone") {
			w.t.Errorf("%+v %+v", got, w.all(only.ID))
		}
		w.site("C", true, 1<<40)
		w.pass(time.Hour)
		l := w.lease("C", 10)
		if len(l) != 1 || l[0].Mode != transfer.Pull || l[0].Source.Site != "A" {
			w.t.Fatalf("%+v", l)
		}
		w.report(success(l[0]))
		if got := w.get(both.ID); got.Status != transfer.Completed || got.Count.Skipped != 1 || got.Count.Done != 1 {
			w.t.Errorf("%+v", got)
		}
	})
}

// A cancellation reaches the mover; a file that still arrives is done.
func TestCancel(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 4, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		l := w.lease("C", 3)
		r, err := w.Cancel(w.ctx, r.ID, "bob", "wrong dataset")
		w.must(err)
		if r.Status != transfer.Running || r.Count.Cancelled != 1 || r.Count.Leased != 3 || r.Reason != "wrong dataset" || r.Decided != "bob" {
			w.t.Errorf("%+v", r)
		}
		_, gone, err := w.Renew(w.ctx, []transfer.Progress{{Item: l[0].Item, Epoch: 1}})
		w.must(err)
		if len(gone) != 1 {
			w.t.Errorf("%v", gone)
		}
		w.report(failure(l[0], transfer.RequestCancelled, "cancelled"), success(l[1]))
		if r = w.get(r.ID); r.Status != transfer.Running || r.Count.Done != 1 || r.Count.Cancelled != 2 {
			w.t.Errorf("%+v", r)
		}
		w.pass(2 * time.Minute)
		if r = w.get(r.ID); r.Status != transfer.Cancelled || r.Count.Cancelled != 3 || r.Count.Done != 1 {
			w.t.Errorf("%+v", r)
		}
		if _, err := w.Cancel(w.ctx, r.ID, "bob", ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it is cancelled") {
			w.t.Error(err)
		}
		r, err = w.Retry(w.ctx, r.ID, "bob", "")
		w.must(err)
		if r.Count.Queued != 3 || r.Count.Done != 1 {
			w.t.Errorf("%+v", r)
		}
	})
}

// A file that Work has not dropped yet is not begun either.
func TestCancelMany(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.first = 1
		w.dataset("/d", 6, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		seen := w.waiting("C", 6)
		r, err := w.Cancel(w.ctx, r.ID, "bob", "")
		w.must(err)
		if l, err := w.Take(w.ctx, []Choice{{Item: seen[5].ID, Source: "A"}}); err != nil || len(l) != 0 || len(w.waiting("C", 6)) != 0 ||
			r.Count.Cancelled != 1 {
			w.t.Errorf("%v %+v %+v", err, l, r)
		}
		w.work()
		if r = w.get(r.ID); r.Status != transfer.Cancelled || r.Count.Cancelled != 6 {
			w.t.Errorf("%+v", r)
		}
		r, err = w.Retry(w.ctx, r.ID, "bob", "")
		w.must(err)
		l := w.lease("C", 6)
		if len(l) != 1 {
			w.t.Fatalf("%+v", l)
		}
		w.report(success(l[0]))
		if r = w.get(r.ID); r.Status != transfer.Running || r.Count.Cancelled != 5 {
			w.t.Errorf("it ended before all went again: %+v", r)
		}
		w.work()
		if r = w.get(r.ID); r.Count.Queued != 5 || r.Count.Done != 1 {
			w.t.Errorf("%+v", r)
		}
	})
}

func TestDecisions(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		submit := func(s transfer.Submission) transfer.Request {
			s.Dataset, s.To = "/d", "C"
			r, err := w.Submit(w.ctx, "alice", s)
			w.must(err)
			return r
		}
		one, two, three := submit(transfer.Submission{Key: "k"}), submit(transfer.Submission{Expires: start.Add(time.Hour)}),
			submit(transfer.Submission{})
		if same := submit(transfer.Submission{Key: "k", Comment: "once more"}); same.ID != one.ID {
			w.t.Errorf("%+v", same)
		}
		if r, err := w.Submit(w.ctx, "bob", transfer.Submission{Key: "k", Dataset: "/d", To: "C"}); err != nil || r.ID == one.ID {
			w.t.Errorf("%v %+v", err, r)
		}
		w.work()
		if l := w.lease("C", 9); one.Status != transfer.Awaiting || len(l) != 0 {
			w.t.Errorf("%+v %+v", one, l)
		}
		one, err := w.Approve(w.ctx, one.ID, "boss", "fine")
		w.must(err)
		w.work()
		if one = w.get(one.ID); one.Status != transfer.Running || one.Decided != "boss" {
			w.t.Errorf("%+v", one)
		}
		if three, err = w.Reject(w.ctx, three.ID, "boss", "no"); err != nil || three.Status != transfer.Rejected || three.Reason != "no" {
			w.t.Errorf("%v %+v", err, three)
		}
		w.pass(2 * time.Hour)
		if two = w.get(two.ID); two.Status != transfer.Expired {
			w.t.Errorf("%+v", two)
		}
		for _, id := range []int64{one.ID, two.ID, three.ID} {
			if _, err := w.Approve(w.ctx, id, "boss", ""); !errors.Is(err, ErrRefused) {
				w.t.Error(err)
			}
			if _, err := w.Retry(w.ctx, id, "boss", ""); !errors.Is(err, ErrRefused) {
				w.t.Error(err)
			}
		}
		if _, err := w.Approve(w.ctx, 99, "boss", ""); !errors.Is(err, ErrNotFound) {
			w.t.Error(err)
		}
		events, err := w.Read.Events(w.ctx, 0, 100)
		w.must(err)
		if len(events) < 7 || events[0].Text != "request 1 by alice: /d to C, awaiting approval" {
			w.t.Errorf("%+v", events)
		}
		open, err := w.Read.List(w.ctx, transfer.Filter{Open: true, By: "alice", Limit: 5})
		if err != nil || len(open) != 1 || open[0].ID != one.ID {
			w.t.Errorf("%v %+v", err, open)
		}
	})
}

func TestWrongSubmissions(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		for _, c := range []struct {
			s    transfer.Submission
			want error
			says string
		}{
			{transfer.Submission{To: "C"}, ErrRefused, "no dataset"},
			{transfer.Submission{Dataset: "/d"}, ErrRefused, "no destination"},
			{transfer.Submission{Dataset: "/x", To: "C"}, ErrNotFound, `there is no dataset "/x"`},
			{transfer.Submission{Dataset: "/d", To: "X"}, ErrNotFound, `there is no site "X"`},
			{transfer.Submission{Dataset: "/d", To: "C", From: []string{"Y"}}, ErrNotFound, `there is no site "Y"`},
			{transfer.Submission{Dataset: "/d", To: "C", From: []string{"C"}}, ErrRefused, "both"},
			{transfer.Submission{Dataset: "/d", To: "C", Block: "no"}, ErrNotFound, `/d has no block "no"`},
			{transfer.Submission{Dataset: "/d", To: "C", Files: []string{"/d/f0000001", "/d/f9"}}, ErrNotFound, `/d has no file "/d/f9"`},
			{transfer.Submission{Dataset: "/d", To: "C", Mode: "carry"}, ErrRefused, "use pull, push or third"},
			{transfer.Submission{Dataset: "/d", To: "C", Priority: 11}, ErrRefused, "-10 to 10"},
			{transfer.Submission{Dataset: "/d", To: "C", Tries: -1}, ErrRefused, "1 to 100"},
			{transfer.Submission{Dataset: "/d", To: "C", Expires: start}, ErrRefused, "expired"},
			{transfer.Submission{Dataset: "/d", To: "C", Comment: "a\x00b"}, ErrRefused, "not text"},
			{transfer.Submission{Dataset: "/d\x00\xff", To: "C"}, ErrRefused, "not text"},
			{transfer.Submission{Dataset: "/d", To: "C", Files: []string{"\xff"}}, ErrRefused, "not text"},
		} {
			if _, err := w.Submit(w.ctx, "alice", c.s); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				w.t.Errorf("%+v: %v", c.s, err)
			}
		}
		none := w.submit(transfer.Submission{Dataset: "/d", To: "C", From: []string{"B"}, Block: "b0"})
		if none.Status != transfer.Failed || w.all(none.ID)[0].Reason != "none of the sites that were asked for has it (B), though others do" {
			w.t.Errorf("%+v %+v", none, w.all(none.ID))
		}
	})
}

// A key belongs to one request: another submission with the same key is refused.
func TestKeys(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		w.dataset("/e", 2, "A")
		first := w.submit(transfer.Submission{Dataset: "/d", To: "C", Key: "k"})
		if again := w.submit(transfer.Submission{Dataset: "/d", To: "C", Key: "k", Comment: "once more"}); again.ID != first.ID {
			w.t.Errorf("%+v", again)
		}
		for _, s := range []transfer.Submission{{Dataset: "/e", To: "C"}, {Dataset: "/d", To: "B"}, {Dataset: "/d", To: "C", Block: "b0"}} {
			s.Key = "k"
			if _, err := w.Submit(w.ctx, "alice", s); !errors.Is(err, ErrRefused) ||
				!strings.Contains(err.Error(), fmt.Sprintf("that of request %d, which asks for /d at C", first.ID)) {
				w.t.Errorf("%+v: %v", s, err)
			}
		}
		one := w.submit(transfer.Submission{Dataset: "/d", To: "C", Key: "one", Files: []string{fileName("/d", 0)}})
		if again := w.submit(transfer.Submission{Dataset: "/d", To: "C", Key: "one",
			Files: []string{fileName("/d", 0), fileName("/d", 0)}}); again.ID != one.ID {
			w.t.Errorf("%+v", again)
		}
		for _, s := range []transfer.Submission{{}, {Files: []string{fileName("/d", 1)}}, {Files: []string{fileName("/d", 0), fileName("/d", 1)}},
			{Files: one.Files, From: []string{"A"}}, {Files: one.Files, Mode: transfer.Pull}, {Files: one.Files, Unchecked: true}} {
			s.Dataset, s.To, s.Key = "/d", "C", "one"
			if _, err := w.Submit(w.ctx, "alice", s); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "use another key") {
				w.t.Errorf("%+v: %v", s, err)
			}
		}
		if other, err := w.Submit(w.ctx, "bob", transfer.Submission{Dataset: "/e", To: "C", Key: "k"}); err != nil || other.ID == first.ID {
			w.t.Errorf("%+v, %v", other, err)
		}
	})
}

// After the database is closed and opened again, in the middle of all operations, the work
// continues.
func TestReopen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, open func() *db.DB) {
		d := open()
		w := newWorld(t, d, Options{})
		for _, s := range []string{"A", "C"} {
			w.site(s, true, -1)
		}
		w.dataset("/d", 10, "A")
		r, err := w.Submit(w.ctx, "alice", transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		w.must(err)
		_, err = w.Work(w.ctx, 4)
		w.must(err)
		l := w.lease("C", 2)
		w.must(d.Close())
		w = newWorld(t, open(), Options{})
		w.audit()
		if held, err := w.Leases(w.ctx); err != nil || len(held) != 2 || !reflect.DeepEqual(held[1], l[1]) {
			t.Errorf("%v %+v", err, held)
		}
		w.report(success(l[0]), success(l[1]))
		w.work()
		for _, l := range w.lease("C", 20) {
			w.report(success(l))
		}
		if r = w.get(r.ID); r.Status != transfer.Completed || r.Count.Done != 10 {
			t.Errorf("%+v", r)
		}
	})
}

// No input of movers or users can prevent the reports of others from being written.
func TestNonsense(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 3, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		l := w.lease("C", 3)
		_, gone, err := w.Renew(w.ctx, []transfer.Progress{{Item: l[0].Item, Epoch: 1, Stage: "\x00\xff", Moved: -5},
			{Item: l[1].Item, Epoch: 1, Moved: math.MaxInt64}, {Item: -7}, {Item: math.MaxInt64}})
		w.must(err)
		if len(gone) != 2 {
			w.t.Errorf("%+v", gone)
		}
		bad := failure(l[0], "\x00", "a\x00b\xff\n"+strings.Repeat("ü", 5000))
		bad.Moved, bad.Size, bad.CPU, bad.After = math.MinInt64, math.MinInt64, math.NaN(), math.MinInt64
		wrong := success(l[1])
		wrong.Adler, wrong.Begin, wrong.End = strings.Repeat("\x00", 1000), time.Time{}, time.Unix(-1, 0)
		w.report(bad, wrong, success(l[2]), transfer.Outcome{}, transfer.Outcome{Item: math.MinInt64},
			transfer.Outcome{Item: math.MaxInt64, Epoch: math.MaxInt64})
		if r = w.get(r.ID); r.Count.Done != 1 || r.Count.Queued != 2 {
			w.t.Errorf("%+v %+v", r, w.all(r.ID))
		}
		if _, err = w.Cancel(w.ctx, r.ID, "\x00", "\xff\x00"); err != nil {
			w.t.Error(err)
		}
	})
}

// A hundred users at once: no error, and no user waits until the end.
func TestHundred(t *testing.T) {
	each(t, Options{}, func(w *world) {
		const users, files = 100, 5
		for i := range users {
			w.dataset(fmt.Sprintf("/u%03d", i), files, "A")
		}
		var wg sync.WaitGroup
		errs := make(chan error, 4*users)
		for i := range users {
			wg.Go(func() {
				s := transfer.Submission{Dataset: fmt.Sprintf("/u%03d", i), To: "C", Approve: true, Key: "k"}
				one, err := w.Submit(w.ctx, "alice", transfer.Submission{Dataset: s.Dataset, To: "D", Approve: true})
				errs <- err
				_, err = w.Read.Get(w.ctx, one.ID)
				errs <- err
				_, err = w.Submit(w.ctx, fmt.Sprint("user", i), s)
				errs <- err
				_, err = w.Submit(w.ctx, fmt.Sprint("user", i), s) // submitted twice
				errs <- err
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			w.must(err)
		}
		w.work()
		first := map[int64]int{} // when a request got its first file
		for round := 0; round < users*files/10; round++ {
			for _, l := range w.lease("C", 10) {
				if _, ok := first[l.Request]; !ok {
					first[l.Request] = round
				}
				w.report(success(l))
			}
		}
		if len(first) != users {
			w.t.Fatalf("%d requests got a file", len(first))
		}
		for id, round := range first {
			if round >= users/10 {
				w.t.Errorf("request %d waited for %d rounds", id, round)
			}
		}
		if all, err := w.Read.List(w.ctx, transfer.Filter{Status: transfer.Completed, To: "C", Limit: 1000}); err != nil || len(all) != users {
			w.t.Errorf("%v: %d completed", err, len(all))
		}
	})
}

// Priorities come before age, and shares get files in proportion to their weights.
func TestPrecedence(t *testing.T) {
	each(t, Options{Shares: map[string]float64{"big": 3}}, func(w *world) {
		w.dataset("/d", 40, "A")
		w.dataset("/e", 40, "A")
		w.dataset("/f", 40, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "C", Share: "big"})
		late := w.submit(transfer.Submission{Dataset: "/e", To: "C", Share: "big", Priority: 3})
		small := w.submit(transfer.Submission{Dataset: "/f", To: "C", Share: "small"})
		got := map[int64]int{}
		for range 10 {
			for _, l := range w.lease("C", 4) {
				got[l.Request]++
			}
		}
		if got[late.ID] != 30 || got[small.ID] != 10 {
			w.t.Errorf("%v", got)
		}
	})
}

// A report counts if it comes after the lease has expired, while the destination is being checked;
// the result of that check also counts.
func TestReconcile(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		l := w.lease("C", 2)
		if missing, _ := w.pass(2 * time.Minute); len(missing) != 2 {
			w.t.Fatalf("%+v", missing)
		}
		if until, gone, err := w.Renew(w.ctx, []transfer.Progress{{Item: l[0].Item, Epoch: 1, Moved: 10}}); err != nil || len(gone) != 0 ||
			!until.Equal(w.clock().Add(time.Minute)) {
			w.t.Errorf("%v %v %v", until, gone, err)
		}
		if missing, _ := w.pass(time.Second); len(missing) != 1 || missing[0].Item != l[1].Item {
			w.t.Fatalf("%+v", missing)
		}
		found := success(l[1])
		found.Existed = true
		w.report(found, success(l[0]))
		if r = w.get(r.ID); r.Status != transfer.Completed || r.Count.Skipped != 1 || r.Count.Attempts != 2 {
			w.t.Errorf("%+v", r)
		}
	})
}
