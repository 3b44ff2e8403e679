package workload

import (
	"math"
	"strings"
	"time"

	"weir/internal/unit"
)

// Bounds of a job, which only typing mistakes go beyond.
const (
	maxEvents  = 1_000_000_000
	maxEvent   = unit.Size(1 << 40)
	maxRequest = unit.Size(512 << 20) // what fits in one answer of every protocol
	maxCompute = 366 * 24 * time.Hour
)

func checkJob(w Work, say sayer) {
	j := w.Job
	switch {
	case w.Kind != JobWork && j != nil:
		say("job", "is for kind job: kind %s has no use for it", w.Kind)
		return
	case w.Kind != JobWork && w.Kind != CommandJobWork:
		return
	case w.KeepOpen:
		say("keep_open", "a job opens its file and closes it: leave it out")
	}
	if w.Kind == CommandJobWork {
		checkCommandJob(w, say)
		return
	}
	if j == nil {
		say("job", "what does a job do? Such as {events: 3000, event_size: 40KiB, page: 8KiB, compute: 1ms}")
		return
	}
	checkEvents(j, say)
	checkAccess(w, say)
	if w.Part != nil {
		say("part", "a job reads pages: use job.event_size and job.page")
	}
	if err := j.Compute.check(); err != nil {
		say("job.compute", "%v", err)
	} else if j.Compute.most() > maxCompute {
		say("job.compute", "more than a year for each event")
	}
	if j.Burn && j.Compute.most() <= 0 {
		say("job.burn", "there is nothing to compute: give job.compute, too")
	}
}

// checkCommandJob refuses what only the program itself could know.
func checkCommandJob(w Work, say sayer) {
	for key, given := range map[string]bool{"part": w.Part != nil, "chunk": w.Chunk != 0, "in_flight": w.InFlight != 0} {
		if given {
			say(key, "the program of a command-job reads in its own way: leave it out")
		}
	}
}

// checkEvents checks what a job reads.
func checkEvents(j *Job, say sayer) {
	if j.Events < 1 || j.Events > maxEvents {
		say("job.events", "%d: a job goes through 1 to %d events", j.Events, maxEvents)
	}
	if j.Event < 1 || j.Event > maxEvent {
		say("job.event_size", "%v: an event has 1B to %v", j.Event, maxEvent)
	} else if j.Events >= 1 && j.Events <= maxEvents && int64(j.Events) > math.MaxInt64/4/int64(j.Event) {
		say("job.events", "%d events of %v: no file is as large", j.Events, j.Event)
	}
	switch {
	case j.Page < 1 || j.Page > maxRequest:
		say("job.page", "%v: a request asks for 1B to %v", j.Page, maxRequest)
	case j.Event > 0 && j.Page > j.Event:
		say("job.page", "%v is more than an event (%v): use %v or less; to ask for several events at once, use job.read_ahead", j.Page, j.Event, j.Event)
	case j.Event > 0 && j.Event <= maxEvent && j.pages() > maxEvents:
		say("job.page", "%v: an event of %v would be %d pages: use at most %d", j.Page, j.Event, j.pages(), maxEvents)
	}
	for key, share := range map[string]unit.Fraction{"job.skim": j.Skim, "job.slim": j.Slim} {
		if !(share > 0 && share <= 1) {
			say(key, "%v: use a share above 0%%, and at most 100%%", float64(share))
		}
	}
	if j.Vector < 0 || j.Vector > MaxParts {
		say("job.vector", "%d: use 2 to %d pages in one request, or leave it out", j.Vector, MaxParts)
	}
	switch {
	case j.Ahead == 0:
	case j.Ahead < 0 || j.Ahead > maxRequest:
		say("job.read_ahead", "%v: use up to %v, or 0 for none", j.Ahead, maxRequest)
	case j.Ahead < j.Page:
		say("job.read_ahead", "%v is less than a page (%v): use %v or more, or 0 for none", j.Ahead, j.Page, j.Page)
	}
}

// checkAccess checks what belongs to one of the ways to get at events.
func checkAccess(w Work, say sayer) {
	j := w.Job
	switch j.Access {
	case Staged:
		if j.Copy < 0 {
			say("job.copy_timeout", "cannot be negative: use 0 for none")
		}
		if strings.ContainsRune(j.Scratch, 0) {
			say("job.scratch", "%q is no path", j.Scratch)
		}
		return
	case Direct:
	default:
		say("job.access", "unknown access %q: use %s or %s", j.Access, Direct, Staged)
		return
	}
	for key, given := range map[string]bool{"job.scratch": j.Scratch != "", "job.copy_timeout": j.Copy != 0} {
		if given {
			say(key, "is for the copies of access: staged; leave it out")
		}
	}
	if w.Chunk != 0 {
		say("chunk", "is for the copies of staged jobs; what other jobs ask for at once is job.page")
	}
	if w.InFlight != 0 {
		say("in_flight", "is for the copies of staged jobs; for other jobs, use job.read_ahead")
	}
}
