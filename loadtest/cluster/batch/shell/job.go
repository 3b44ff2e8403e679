package shell

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"weir/loadtest/cluster/batch"
)

// A job is a submission of shells. Its goroutines end when its workers have.
type job struct {
	*batch.Ledger
	system *System
	sub    *batch.Submission
	found  bool          // another process started the workers
	over   chan struct{} // closed when all workers have ended and all outputs are fetched

	mu       sync.Mutex // guards the fields below
	failed   error      // outputs that could not be fetched
	ending   bool
	stopping chan struct{} // closed when workers are to end

	wait sync.WaitGroup
}

func newJob(s *System, sub *batch.Submission) *job {
	j := &job{Ledger: batch.NewLedger(sub.Count), system: s, sub: sub, over: make(chan struct{}), stopping: make(chan struct{})}
	for i := range sub.Count {
		j.Note(batch.Change{Time: sub.Begin, Worker: i, State: batch.Queued, Host: sub.Hosts[i%len(sub.Hosts)], JobID: j.id(i)})
	}
	return j
}

// id returns the name of a worker in the system.
func (j *job) id(worker int) string {
	if j.system.id != nil {
		return j.system.id(worker)
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".-_@:", r)) {
			return r
		}
		return '_' // it goes into a command line
	}, j.sub.Hosts[worker%len(j.sub.Hosts)])
	return name + "/" + strconv.Itoa(worker)
}

// Follow implements batch.Job.
func (j *job) Follow(ctx context.Context, tell func(batch.Change)) error {
	if err := j.Ledger.Follow(ctx, tell); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// end closes the job when all its goroutines have ended.
func (j *job) end() {
	j.wait.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.found && j.failed == nil && !slices.Contains(slices.Collect(maps.Values(j.sub.Places)), "") {
		j.sub.Over = true // fetching the outputs removed them from the machines
		j.failed = j.sub.Write()
	}
	close(j.over)
	j.End()
}

// quit makes all workers end.
func (j *job) quit() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ending {
		j.ending = true
		close(j.stopping)
	}
}

func (j *job) quitting() bool {
	select {
	case <-j.stopping:
		return true
	default:
		return false
	}
}

// Remove implements batch.Job.
func (j *job) Remove(ctx context.Context) error {
	j.quit()
	select {
	case <-j.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.sub.Over {
		return nil
	}
	return j.clear(ctx)
}

// clear removes the folders on the machines, and marks the submission as over.
func (j *job) clear(ctx context.Context) error {
	hosts := machines(j.sub)
	errs := make([]error, len(hosts))
	var wait sync.WaitGroup
	for i, h := range hosts {
		wait.Go(func() {
			err := batch.Retry(ctx, j.system.name, func() error { return j.ask(ctx, h, sweepLine(j.sub.Tag), nil, io.Discard) }, nil)
			if place, tried := j.sub.Places[h]; place != "" || !tried { // else it was never reached: there is nothing
				errs[i] = err
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	j.sub.Over = true
	return j.sub.Write()
}

// workers returns the workers of a machine.
func (j *job) workers(host string) (all []int) {
	for i := range j.sub.Count {
		if j.sub.Hosts[i%len(j.sub.Hosts)] == host {
			all = append(all, i)
		}
	}
	return all
}

// lost records that all workers of a machine have failed to start.
func (j *job) lost(host string, err error) {
	j.sub.Places[host] = ""
	for _, i := range j.workers(host) {
		j.Note(batch.Change{Worker: i, State: batch.Failed, Host: host, Reason: err.Error(), Exit: -1})
	}
}
