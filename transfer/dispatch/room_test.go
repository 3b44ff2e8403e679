package dispatch

import (
	"testing"
	"time"

	"weir/internal/tier"
	"weir/transfer"
)

// However many files wait, however small they are, an agent is given no more of
// them than its slots or, of small ones, a batch: so are the goroutines that it
// has one of for each, and what the coordinator remembers of them.
func TestRoomIsBounded(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	for _, slots := range []int{1, 16, batch, 4096} {
		for _, each := range []float64{0, 1e-6, 1, 1e6} {
			a := &Agent{Register: transfer.Register{Slots: slots}, waiting: true}
			for given := 1; given > 0; {
				if given = a.roomLocked(10 * time.Second); given > 1 {
					given = (given + 1) / 2 // not all at a time
				}
				a.count += given
				a.seconds += float64(given) * each
			}
			if a.count > max(slots, batch) || a.count < slots {
				t.Errorf("an agent of %d slots for files of %g s has %d", slots, each, a.count)
			}
		}
	}
}
