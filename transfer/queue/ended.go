package queue

import (
	"time"

	"weir/transfer"
)

// Ended holds the attempts, files and requests that a transaction has ended, for counters.
type Ended struct {
	Attempts []EndedAttempt
	Files    map[FileEnd]int64
	Requests map[transfer.Status]int64 // by final status
}

// An EndedAttempt is an attempt that was not late, with the activity of its request.
type EndedAttempt struct {
	transfer.Attempt
	Activity string
	Waited   time.Duration // of the first attempt at a file: time since its request began; otherwise less than 0
}

// A FileEnd is a final state of files.
type FileEnd struct {
	Dest, Activity string
	State          transfer.State
}

// whatEnded returns the attempts, files and requests that the committed edit has ended.
func (e *edit) whatEnded() Ended {
	end := Ended{Files: map[FileEnd]int64{}, Requests: map[transfer.Status]int64{}}
	for _, a := range e.attempts {
		if a.Late {
			continue
		}
		one := EndedAttempt{Attempt: a, Waited: -1}
		if r := e.requests[requestOf(a.Item)]; r != nil {
			if one.Activity = r.Share; a.Epoch == 1 {
				one.Waited = max(0, a.Begin.Sub(r.Began))
			}
		}
		end.Attempts = append(end.Attempts, one)
	}
	count := func(f *file) {
		if s := f.state.shown(); s.Final() {
			r := e.requests[f.request]
			end.Files[FileEnd{r.To, r.Share, s}]++
		}
	}
	for id, f := range e.files {
		if f.state != e.was[id].state {
			count(f)
		}
	}
	for _, f := range e.added {
		count(f)
	}
	for id, r := range e.requests {
		if r.Status.Ended() && !e.ended[id] {
			end.Requests[r.Status]++
		}
	}
	return end
}
