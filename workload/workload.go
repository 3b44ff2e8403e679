// Package workload says what one virtual client does next: an endless stream
// of tasks that follows from the plan's seed and the client's number alone.
//
// It makes storage.Ops and knows neither protocols nor clocks; the engine
// runs the tasks.
package workload

import (
	"math/rand/v2"
	"time"

	"weir/storage"
)

// A Task is what a client does between two pauses: its operations, one after
// the other, in one session.
type Task struct {
	Ops    []storage.Op  // reused from task to task
	Think  time.Duration // pause after the task
	Verify bool          // payloads of this task are checked
}

// A Workload is one client's source of tasks.
type Workload interface {
	// Next fills t with the next task, reusing its memory. It is a pure
	// function of r's state and of the tasks before.
	Next(r *rand.Rand, t *Task)
}
