package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/queue"
)

// A destination that does not answer is asked again after a while, each time a
// longer one, up to a bound; not for a lease that is over.
func TestAskLater(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{}
		l := &activeLease{Lease: transfer.Lease{Item: 1, Epoch: 1}}
		c.registry.leases = map[int64]*activeLease{1: l}
		var before time.Duration
		for range 12 {
			begin, next := time.Now(), c.lost.more.next()
			c.retryOrphan(t.Context(), l)
			<-next
			took := time.Since(begin)
			if len(c.lost.list) != 1 || took != min(max(2*before, orphanRetry/64), orphanRetry) {
				t.Errorf("asked again after %v, before that after %v", took, before)
			}
			before, c.lost.list = took, nil
		}
		if before != orphanRetry {
			t.Errorf("at last after %v", before)
		}
		delete(c.registry.leases, 1)
		c.retryOrphan(t.Context(), l)
		time.Sleep(time.Minute)
		if len(c.lost.list) > 0 {
			t.Error("a lease that is over is asked for")
		}
	})
}

// A lease that only the database knows counts for its agent while it is looked for, and no more after that.
func TestMissingLeasesAreCounted(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	a := h.robot("A")
	a.register("")
	l := transfer.Lease{Item: 1, Epoch: 1, Mode: transfer.Pull, Source: transfer.End{Site: "B"}, Dest: transfer.End{Site: "A"}}
	h.addMissing([]queue.ExpiredLease{{Lease: l}})
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if active := h.registry.leases[1]; active != nil {
		h.removeLeaseLocked(active)
	}
	if n := h.registry.agents["A"].count; n != 0 {
		t.Errorf("the agent has %d leases", n)
	}
}
