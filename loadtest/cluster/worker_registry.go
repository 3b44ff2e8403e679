package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/internal/say"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/measure"
)

// A workerRegistry holds the controller's states of workers, by their names, and the batch system's
// states, by their jobs.
type workerRegistry struct {
	mu      sync.Mutex
	workers map[string]WorkerState
	jobs    map[string]*workerJob
	want    int // number of workers that were submitted last
	awaited int // number of these workers that may still come
}

// A workerJob is the batch system's state of a worker.
type workerJob struct {
	batch.Change
	came    bool // its worker has connected
	counted bool // it is not awaited any more
}

func newWorkerRegistry() workerRegistry {
	return workerRegistry{workers: map[string]WorkerState{}, jobs: map[string]*workerJob{}}
}

// submitted notes that count workers were submitted.
func (r *workerRegistry) submitted(count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want, r.awaited = count, count
	clear(r.jobs)
}

// of returns the state of a job.
func (r *workerRegistry) of(id string) *workerJob {
	if r.jobs[id] == nil {
		r.jobs[id] = &workerJob{}
	}
	return r.jobs[id]
}

// count updates the number of awaited workers, which have not connected and whose job is neither
// held nor over.
func (r *workerRegistry) count(j *workerJob) {
	gone := j.came || j.State == batch.Held || j.State.Over()
	switch {
	case gone && !j.counted:
		r.awaited--
	case !gone && j.counted:
		r.awaited++
	}
	j.counted = gone
}

// update stores the state of a worker that the controller reports.
func (r *workerRegistry) update(w WorkerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[w.Name] = w
	if w.Job != "" && !r.of(w.Job).came {
		j := r.of(w.Job)
		j.came = true
		r.count(j)
	}
}

// running reports whether a worker that has connected has not ended.
func (r *workerRegistry) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		if j.came && j.State == batch.Running {
			return true
		}
	}
	return false
}

// coming returns the number of workers that may still connect.
func (r *workerRegistry) coming() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.awaited, 0)
}

// note records the batch system's state of a job, and returns whether it is new and its worker has
// never connected.
func (r *workerRegistry) note(c batch.Change) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.of(cmp.Or(c.JobID, fmt.Sprint(c.Worker)))
	news := !j.came && (j.State != c.State || j.Reason != c.Reason)
	j.Change = c
	r.count(j)
	return news
}

// changed records the batch system's state of a worker. It reports jobs that are held, and jobs
// that failed before their workers connected.
func (w *RemoteWorkers) changed(c batch.Change) {
	news := w.note(c)
	state := map[batch.State]string{batch.Held: measure.Held, batch.Failed: measure.Failed}[c.State]
	if state == "" || !news {
		return
	}
	text := fmt.Sprintf("job %s %s", c.JobID, map[string]string{measure.Held: "is held",
		measure.Failed: "failed before its worker connected"}[state])
	if c.Host != "" {
		text += " on " + c.Host
	}
	_ = w.report(c, state, text) // an unwritable directory ends the run anyway
}

// report writes the outcome of a job as an event.
func (w *RemoteWorkers) report(c batch.Change, state, text string) error {
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return w.WriteEvent(measure.Event{Time: time.Now().UTC(), Kind: measure.EventWorker, Text: say.Plain(text),
		Worker: &measure.Worker{Name: "job " + c.JobID, State: state, Host: c.Host, Job: c.JobID}})
}

// reportMissing reports each job whose worker never connected.
func (w *RemoteWorkers) reportMissing() error {
	if w.Plan.On.JobPerClient {
		return nil // steps report the number of jobs
	}
	w.mu.Lock()
	var never []batch.Change
	for _, j := range w.jobs {
		if !j.came && (j.State == batch.Queued || j.State == batch.Running) {
			never = append(never, j.Change)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(never, func(a, b batch.Change) int { return cmp.Compare(a.Worker, b.Worker) })
	var err error
	for _, c := range never {
		err = errors.Join(err, w.report(c, measure.Absent, fmt.Sprintf("job %s never connected: it is %s", c.JobID, c.State)))
	}
	return err
}

// Summary returns the number of connected workers, and the states of the other workers.
func (w *RemoteWorkers) Summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, lost := 0, 0
	for _, s := range w.workers {
		switch s.State {
		case Waiting, Working:
			there++
		case Lost:
			lost++
		}
	}
	states := map[batch.State]int{}
	for _, j := range w.jobs {
		if !j.came {
			states[j.State]++
		}
	}
	text := fmt.Sprintf("workers: %d of %d connected", there, w.want)
	for _, x := range []struct {
		n    int
		what string
	}{{states[batch.Running], "starting"}, {states[batch.Queued], "queued"}, {states[batch.Held], "held"},
		{states[batch.Failed] + states[batch.Removed], "failed"}, {lost, "lost"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}
