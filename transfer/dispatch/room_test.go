package dispatch

import (
	"testing"
	"time"

	"weir/internal/tier"
	"weir/transfer"
)

// An agent is given no more files than its slots or, if the files are small, a batch, regardless of
// the number and the size of the waiting files. This bounds the goroutines of the agent, one for
// each file, and the memory of the coordinator.
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
