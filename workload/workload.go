// Package workload says what one virtual client does next: an endless stream
// of tasks that follows from the plan's seed and the client's number alone.
//
// It makes storage.Ops and knows neither protocols nor clocks; the engine
// runs the tasks. What a client writes lies in a folder of its own, under
// names that no other client and no other moment of the run uses; what it
// removes or moves is only what its own earlier tasks wrote.
package workload

import (
	"math/rand/v2"
	"time"

	"weir/storage"
)

// A Task is what a client does between two pauses: its operations, one after
// the other, in one session. Its zero value is ready for Next.
type Task struct {
	Ops    []storage.Op  // reused from task to task, their Ranges too
	Think  time.Duration // pause after the task
	Verify bool          // payload of this task is checked: that of a read on its way, its Op carries a Sum; that of a write by who runs the task, afterwards
	Job    *Reading      // the task is a job of kind job: its requests come from here, and Ops[0] is room for one; nil for other kinds
	File   *File         // the file that the task reads, asks for or writes; nil if none. Not to be changed; valid until Next
	Failed bool          // set by who ran the task, before the next Next: a write, mkdir or move that failed will not be removed or moved later
}

// A Workload is one client's source of tasks. It belongs to the client's
// number for the whole run: a client that is stopped and started again goes
// on with the same Workload, otherwise it would write the same names again.
type Workload interface {
	// Next fills t with the next task, reusing its memory. It is a pure
	// function of r's state and of the tasks before. It expects the same t
	// as the time before, with Failed set if it was.
	Next(r *rand.Rand, t *Task)
}
