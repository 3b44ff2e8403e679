package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/batch"
	"weir/cluster"
	"weir/measure"
)

// A roster is what is known of workers: of the controller, by their names, and
// of the batch system, by the jobs in which they are.
type roster struct {
	mu      *sync.Mutex
	workers map[string]cluster.WorkerState
	jobs    map[string]*job
	want    int // submitted last
	awaited int // of these: that may still come
}

// A job is a worker as the batch system knows it.
type job struct {
	batch.Change
	came  bool // its worker has been there
	awake bool // it is awaited no more
}

func newRoster() roster {
	return roster{mu: new(sync.Mutex), workers: map[string]cluster.WorkerState{}, jobs: map[string]*job{}}
}

// submitted notes that workers are about to come.
func (r *roster) submitted(count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want, r.awaited = count, count
	clear(r.jobs)
}

// of returns what is known of a job.
func (r *roster) of(id string) *job {
	if r.jobs[id] == nil {
		r.jobs[id] = &job{}
	}
	return r.jobs[id]
}

// count keeps how many are awaited: those that have not come, and that nothing
// keeps from coming.
func (r *roster) count(j *job) {
	gone := j.came || j.State == batch.Held || j.State.Over()
	switch {
	case gone && !j.awake:
		r.awaited--
	case !gone && j.awake:
		r.awaited++
	}
	j.awake = gone
}

// heard hears what the controller says of a worker.
func (r *roster) heard(w cluster.WorkerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[w.Name] = w
	if w.Job != "" && !r.of(w.Job).came {
		j := r.of(w.Job)
		j.came = true
		r.count(j)
	}
}

// running tells whether a worker that has been there has not ended.
func (r *roster) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		if j.came && j.State == batch.Running {
			return true
		}
	}
	return false
}

// coming is how many workers may still come.
func (r *roster) coming() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.awaited, 0)
}

// note takes what the batch system says of a job, and returns whether that is new
// and its worker has never been there.
func (r *roster) note(c batch.Change) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.of(cmp.Or(c.JobID, fmt.Sprint(c.Worker)))
	news := !j.came && (j.State != c.State || j.Reason != c.Reason)
	j.Change = c
	r.count(j)
	return news
}

// changed hears what the batch system says of a worker. Those that will not
// start without help, and those that failed before they came, are told.
func (t *troop) changed(c batch.Change) {
	news := t.note(c)
	state := map[batch.State]string{batch.Held: measure.Held, batch.Failed: measure.Failed}[c.State]
	if state == "" || !news {
		return
	}
	text := fmt.Sprintf("job %s %s", c.JobID, map[string]string{measure.Held: "is held", measure.Failed: "failed before its worker came"}[state])
	if c.Host != "" {
		text += " on " + c.Host
	}
	_ = t.report(c, state, text) // a directory that cannot be written to ends the run by itself
}

// report tells what became of a job.
func (t *troop) report(c batch.Change, state, text string) error {
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return t.tell(measure.Event{Time: time.Now().UTC(), Kind: measure.WorkerEvent, Text: line(text),
		Worker: &measure.Worker{Name: "job " + c.JobID, State: state, Host: c.Host, Job: c.JobID}})
}

// missed tells of each job whose worker was never there.
func (t *troop) missed() error {
	if t.on.JobPerClient {
		return nil // steps tell how many there were
	}
	t.mu.Lock()
	var never []batch.Change
	for _, j := range t.jobs {
		if !j.came && (j.State == batch.Queued || j.State == batch.Running) {
			never = append(never, j.Change)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(never, func(a, b batch.Change) int { return cmp.Compare(a.Worker, b.Worker) })
	var err error
	for _, c := range never {
		err = errors.Join(err, t.report(c, measure.Absent, fmt.Sprintf("job %s was not there: it is %s", c.JobID, c.State)))
	}
	return err
}

// summary says how many workers are there, and what is known of the others.
func (t *troop) summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	there, lost := 0, 0
	for _, w := range t.workers {
		switch w.State {
		case cluster.Waiting, cluster.Working:
			there++
		case cluster.Lost:
			lost++
		}
	}
	states := map[batch.State]int{}
	for _, j := range t.jobs {
		if !j.came {
			states[j.State]++
		}
	}
	text := fmt.Sprintf("workers: %d of %d there", there, t.want)
	for _, x := range []struct {
		n    int
		what string
	}{{states[batch.Running], "starting"}, {states[batch.Queued], "queued"}, {states[batch.Held], "held"}, {states[batch.Failed] + states[batch.Removed], "failed"}, {lost, "lost"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}
