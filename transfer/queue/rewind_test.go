package queue

import (
	"testing"
	"time"

	"weir/transfer"
)

// A coordinator whose clock was hours ahead is restarted after the clock was corrected: pauses last
// as long as intended, and leases expire when intended.
func TestTheClockWasAhead(t *testing.T) {
	each(t, Options{Lease: time.Minute}, func(w *world) {
		w.dataset("/d", 3, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		w.work()
		leases := w.lease("C", 3)
		w.report(transfer.Outcome{Item: leases[0].Item, Epoch: leases[0].Epoch, Fault: transfer.Transient, Reason: "cut"})
		w.report(success(leases[1]))
		w.now = w.now.Add(-5 * time.Hour)
		again, err := Open(w.ctx, w.db, Options{Now: w.clock, Lease: time.Minute, Grace: time.Second, Rand: func() float64 { return 0.5 }})
		w.must(err)
		w.Queue = again
		w.pass(30 * time.Second)
		if got := w.lease("C", 3); len(got) != 1 || got[0].Item != leases[0].Item {
			t.Errorf("half a minute later: %+v", got)
		}
		w.pass(2 * time.Minute)
		w.pass(time.Minute)
		if state := w.item(leases[2].Item).State; state == transfer.Leased {
			t.Errorf("three minutes later the lease that nobody renews is still %s", state)
		}
	})
}

// When a clock is set, pauses move along.
func TestTheClockIsSet(t *testing.T) {
	each(t, Options{Lease: time.Minute}, func(w *world) {
		w.dataset("/d", 2, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		w.work()
		leases := w.lease("C", 2)
		w.report(transfer.Outcome{Item: leases[0].Item, Epoch: leases[0].Epoch, Fault: transfer.Transient, Reason: "cut"})
		set := func(by time.Duration) {
			w.now = w.now.Add(by)
			w.must(w.Shift(w.ctx, by))
			if missing, _ := w.pass(0); len(missing) > 0 {
				t.Errorf("set by %v: %+v", by, missing)
			}
		}
		set(3 * time.Hour)
		w.pass(10 * time.Second)
		again := w.lease("C", 2)
		if len(again) != 1 || again[0].Item != leases[0].Item {
			t.Fatalf("ten seconds later: %+v", again)
		}
		w.report(transfer.Outcome{Item: again[0].Item, Epoch: again[0].Epoch, Fault: transfer.Transient, Reason: "cut"})
		set(-2 * time.Hour)
		w.pass(30 * time.Second)
		if got := w.lease("C", 2); len(got) != 1 || got[0].Item != leases[0].Item {
			t.Errorf("half a minute later: %+v", got)
		}
	})
}
