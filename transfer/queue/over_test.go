package queue

import (
	"testing"
	"time"

	"weir/transfer"
)

// The temporaries of ended files are over, except those temporaries that a Retry may need.
func TestOver(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 4, "A")
		w.submit(transfer.Submission{Dataset: "/d", To: "C", Approve: true})
		w.work()
		leases := w.lease("C", 3)
		w.report(success(leases[0]), transfer.Outcome{Item: leases[1].Item, Epoch: leases[1].Epoch, Fault: transfer.Permanent, Reason: "no"})
		var parts []transfer.LeaseID
		for _, l := range leases {
			parts = append(parts, transfer.LeaseID{Item: l.Item, Epoch: l.Epoch})
		}
		parts = append(parts, transfer.LeaseID{Item: 12345, Epoch: 1})
		over, err := w.Over(w.ctx, parts)
		w.must(err)
		if len(over) != 1 || over[0] != parts[0] {
			t.Errorf("%v of %v", over, parts)
		}
		w.mu.Lock()
		w.now = w.now.Add(25 * time.Hour)
		w.mu.Unlock()
		over, err = w.Over(w.ctx, parts)
		w.must(err)
		if len(over) != 2 {
			t.Errorf("a day later: %v of %v", over, parts)
		}
	})
}
