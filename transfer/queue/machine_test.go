package queue

import (
	"math"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"weir/transfer"
)

// For any report of an attempt, a file is done only if its size and checksum are right, tries are
// bounded, and stopped files are not retried.
func TestSettle(t *testing.T) {
	kinds := append(slices.Clone(faults), "", "", "")
	f := func(kind, tries, pauses, size, spoilt uint8, verified, existed, stopped, unchecked, others bool, after int64, random uint16) bool {
		was := file{size: 100, adler: "0000000a", state: leased, tries: int(tries % 5), pauses: int(pauses % 100), source: "A", epoch: 7}
		o := transfer.Outcome{Fault: kinds[int(kind)%len(kinds)], Size: 100, Adler: "A", Verified: verified, Existed: existed,
			After: time.Duration(after)}
		if size%4 == 0 {
			o.Size = int64(size)
		}
		if spoilt%4 == 0 {
			o.Adler = "b"
		}
		terms := terms{tries: 5, unchecked: unchecked}
		if stopped {
			terms.stopped = "its time ran out"
		}
		now, kept := applyOutcome(was, o, terms, others, start, float64(random)/math.MaxUint16)
		right := o.Fault == "" && o.Size == 100 && o.Adler == "A" && (verified || unchecked)
		switch {
		case (now.state == done || now.state == skipped) != right, right != (kept.Fault == ""), (now.state == skipped) != (right && existed):
			return false
		case now.state == leased || now.epoch != 7 || now.size != 100:
			return false
		case now.state.final() == now.ended.IsZero(), now.state.final() && !now.due.IsZero(), now.state == resting &&
			(now.due.Before(start) || now.due.After(start.Add(36*time.Hour))):
			return false
		case stopped && !now.state.final(), now.tries > 5, !now.state.final() && (now.tries >= 5 || now.pauses >= 5*pauseFactor):
			return false
		case (now.state == failed || now.state == dropped) && now.reason == "", now.state == ready && kept.Fault != transfer.MoverStopped &&
			(kept.Fault != transfer.SourceBad || !others):
			return false
		case !right && !stopped && now.tries+now.pauses != was.tries+was.pauses+1:
			return false
		}
		return true
	}
	if err := quick.Check(f, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		fault  transfer.ErrorClass
		after  time.Duration
		n      int
		random float64
		want   time.Duration
	}{
		{transfer.Transient, 0, 1, 1, 2 * time.Second},
		{transfer.Transient, 0, 2, 0.5, 2 * time.Second},
		{transfer.Transient, 0, 4, 1, 16 * time.Second},
		{transfer.Transient, 0, 1000, 1, 5 * time.Minute},
		{transfer.Unreachable, 0, 100, 1, time.Minute},
		{transfer.Transient, 0, 5, 0, 0},
		{transfer.Throttled, 100 * time.Second, 1, 0, 100 * time.Second},
		{transfer.Throttled, 100 * time.Second, 7, 1, 111 * time.Second},
		{transfer.Throttled, 1000 * time.Hour, 7, 0, 24 * time.Hour},
		{transfer.Throttled, 0, 1, 1, 10 * time.Second},
		{transfer.DestFull, 0, 9, 1, 30 * time.Minute},
		{transfer.LeaseLost, 0, 9, 1, time.Minute},
	} {
		if got := pause(transfer.Outcome{Fault: c.fault, After: c.after}, c.n, c.random); got != c.want {
			t.Errorf("%s, the %d. time: %v, want %v", c.fault, c.n, got, c.want)
		}
	}
}

func TestConclude(t *testing.T) {
	for _, c := range []struct {
		files, there int64
		stop, want   transfer.Status
	}{
		{10, 10, "", transfer.Completed},
		{10, 10, transfer.Cancelled, transfer.Completed},
		{10, 9, "", transfer.Partial},
		{10, 0, "", transfer.Failed},
		{0, 0, "", transfer.Failed},
		{10, 9, transfer.Cancelled, transfer.Cancelled},
		{10, 0, transfer.Expired, transfer.Expired},
	} {
		if got := conclude(c.files, c.there, c.stop); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestTrail(t *testing.T) {
	tr := sourceFailures("").add("B", 1, false).add("A", 1, false).add("B", 1, true).add("", 1, true)
	if tr != "A+,B++!" || !tr.avoids("B") || tr.avoids("A") || tr.counts()["B"] != 2 {
		t.Errorf("%q %v", tr, tr.counts())
	}
	for range 20 {
		tr = tr.add("A", 1, false)
	}
	if tr != "A+++++++++,B++!" {
		t.Errorf("%q", tr)
	}
}

func TestTurns(t *testing.T) {
	count := func(order []int64) map[int64]int {
		m := map[int64]int{}
		for _, id := range order {
			m[id]++
		}
		return m
	}
	fairShare := newFairShare(map[string]float64{"much": 3})
	all := []contender{{1, "much", 0, 1000}, {2, "little", 0, 1000}, {3, "little", 0, 1000}, {4, "little", -1, 1000}}
	if got := count(fairShare.next(all, 400)); got[1] != 300 || got[2] != 50 || got[3] != 50 {
		t.Errorf("%v", got)
	}
	// One at a time leads to the same result: previous files are taken into account.
	got := map[int64]int{}
	for range 400 {
		fairShare.admit(all)
		id := fairShare.next(all, 1)[0]
		got[id]++
		fairShare.pay(all[id-1].share, id, 0)
	}
	if got[1] != 300 || got[2] != 50 || got[3] != 50 {
		t.Errorf("%v", got)
	}
	// A new contender gets its turn, and no credit for the time before.
	all = append(all, contender{5, "new", 0, 1000})
	fairShare.admit(all)
	if got := count(fairShare.next(all, 100)); got[5] < 15 || got[5] > 25 {
		t.Errorf("%v", got)
	}
	if got := fairShare.next([]contender{{1, "", 5, 1}, {2, "", 9, 1}, {3, "", 9, 1}}, 10); !slices.Equal(got, []int64{2, 3, 1}) {
		t.Errorf("%v", got)
	}
}

// TestNobodyWaitsForEver: a request of low priority gets a file now and then while a request of
// high priority always has files, and otherwise higher priorities go first.
func TestNobodyWaitsForEver(t *testing.T) {
	fairShare := newFairShare(nil)
	all := []contender{{1, "", 0, 1e6}, {2, "", 3, 1e6}, {3, "", 3, 1e6}, {4, "other", -10, 1e6}}
	got := map[int64]int{}
	for range 4000 {
		fairShare.admit(all)
		id := fairShare.next(all, 1)[0]
		got[id]++
		fairShare.pay(all[id-1].share, id, 1<<30)
	}
	if got[1] < 4 || got[1] > 12 || got[2] < 900 || got[3] < 900 || got[4] != 2000 {
		t.Errorf("files of each request: %v", got)
	}
}
