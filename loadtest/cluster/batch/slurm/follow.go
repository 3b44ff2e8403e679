package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/cluster/batch"
)

const (
	// unseen is the time that a task may run without a sign in the folder before it is checked
	// through srun: shared file systems show new files late.
	unseen = 4 * time.Second
	// tryFor is the time for which the transfer of a worker to its node is attempted. Each attempt
	// is a job step, so the pauses between them are longer than the pauses of other requests.
	tryFor   = 5 * time.Minute
	tryEvery = time.Minute
	// mostFreed is the number of times that a worker is released that Slurm could not start: its
	// own limit (max_batch_requeue) is 5.
	mostFreed = 5
	// leaving is the time limit for Slurm to end tasks: its KillWait is 30 s.
	leaving = 2 * time.Minute
)

// Follow implements batch.Job.
func (j *job) Follow(ctx context.Context, tell func(batch.Change)) error {
	err := j.FollowAsked(ctx, tell, j.poll, j.over)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		err = j.failed
	}
	return err
}

// over reports whether all workers are over and all outputs are fetched, and then closes the
// ledger.
func (j *job) over() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Counts().Left() > 0 || j.busy > 0 {
		return false
	}
	j.End()
	return true
}

// poll requests the states of all tasks from Slurm, and notes changes.
func (j *job) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	known := map[int]bool{}
	for k, id := range j.sub.IDs {
		said, err := batch.Run(ctx, nil, "scontrol", "--oneliner", "show", "job", id)
		if err != nil && !strings.Contains(err.Error(), "Invalid job id") { // it ended long ago
			return err
		}
		all := records(said, j.sub.Step)
		for i := range all {
			for _, place := range all[i].Tasks {
				if n := k*j.sub.Step + place; n < j.sub.Count && all[i].Array == id {
					known[n] = true
					j.note(ctx, n, &all[i])
				}
			}
		}
	}
	for n := range j.sub.Count {
		if !known[n] && !j.Last(n).State.Over() && !j.isCarried(n) {
			j.forgotten(n)
		}
	}
	return nil
}

// note records the state of a worker that Slurm reports.
func (j *job) note(ctx context.Context, n int, r *record) {
	c := r.change(time.Now())
	c.Worker, c.JobID = n, j.id(n)
	last := j.Last(n)
	switch {
	case c.State == batch.Held && r.Reason == launchFailed && j.release(ctx, n):
		c.State = batch.Queued
	case c.State == batch.Running && j.isShared(n):
		j.sawSign(n, c.Host)
	case c.State == batch.Running:
		if time.Since(c.Time) < unseen || j.seen(c.Host) {
			return // it may not run yet
		}
		if j.launcher != nil {
			j.carry(n, r.Job)
			return
		}
		c = left(c)
	case c.State == batch.Ended && j.launcher == nil && !j.isShared(n) && !j.hasOutput(n):
		c = left(c)
	case c.State == batch.Ended && j.isCarried(n):
		return // only its allocation has ended
	case c.State == batch.Queued && c.Reason == "Resources":
		if strings.HasPrefix(last.Reason, c.Reason+":") {
			return
		}
		c.Reason = j.room(ctx)
	case c.State == batch.Failed && c.Exit == 125:
		c.Reason = "the node has no folder for temporary files, or does not see " + j.sub.Dir() + " and received nothing"
	case c.State == batch.Failed && c.Exit > 0:
		if said, err := os.ReadFile(filepath.Join(j.sub.Out(n), "stderr")); err == nil {
			c.Reason += ": " + batch.Words(string(said[max(0, len(said)-4096):]), nil)
		}
	}
	if (c.State == batch.Ended || c.State == batch.Failed) && last.State == batch.Queued && !r.Start.IsZero() {
		j.Note(batch.Change{Time: r.Start, Worker: n, State: batch.Running, Host: c.Host}) // too short to be seen
	}
	j.settled(n, c)
}

// left returns the outcome of a worker that a killed run had launched on its node.
func left(c batch.Change) batch.Change {
	c.State, c.Reason, c.Exit = batch.Removed, "it ended with the run that had started it", -1
	return c
}

// settled notes a change, and clears the signs of a worker that is over.
func (j *job) settled(n int, c batch.Change) {
	if c.State.Over() {
		j.clearSigns(n)
	}
	j.Note(c)
}

// clearSigns removes the files that a worker has left as signs for this process only.
func (j *job) clearSigns(n int) {
	for _, sign := range []string{".runs", ".exit"} {
		_ = os.Remove(filepath.Join(j.sub.Out(n), sign))
	}
}

// isShared reports whether a worker has left its sign in the folder that nodes share.
func (j *job) isShared(n int) bool {
	if j.Last(n).State == batch.Running {
		return true
	}
	_, err := os.ReadDir(j.sub.Out(n)) // this makes file systems with caches look again
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(j.sub.Out(n), ".runs"))
	return err == nil
}

func (j *job) hasOutput(n int) bool {
	_, err := os.Stat(filepath.Join(j.sub.Out(n), "stdout"))
	return err == nil
}

func (j *job) isCarried(n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.carried[n]
}

// sawSign records that a worker has left its sign in the folder that its node shares.
func (j *job) sawSign(n int, host string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.carried[n] {
		j.sees[host] = true
	}
}

// seen reports whether a node is known to see the submission's folder: a task on it that has left
// no sign there is still starting.
func (j *job) seen(host string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sees[host]
}

// launchFailed is Slurm's reason for holding a job that a busy node did not start in time.
const launchFailed = "launch_failed_requeued_held"

// release lets Slurm start a worker again that it could not start, and returns false if that was
// done too often.
func (j *job) release(ctx context.Context, n int) bool {
	j.mu.Lock()
	often := j.freed[n] >= mostFreed
	j.mu.Unlock()
	if often {
		return false
	}
	if _, err := batch.Run(ctx, nil, "scontrol", "release", j.id(n)); err != nil {
		_, transient := batch.TransientAnswer(system, err.Error())
		return transient // the next request repeats it
	}
	j.mu.Lock()
	j.freed[n]++
	j.mu.Unlock()
	return true
}

// A try is the record of the attempts to launch a worker on its node.
type try struct {
	first time.Time // of all attempts
	next  time.Time // earliest time of the next attempt
	count int
	under bool // the launcher works on it
}

// carry makes the launcher start a worker whose node does not see the folder.
func (j *job) carry(n int, number string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.tries[n]
	if t.under || j.launcher == nil || time.Now().Before(t.next) {
		return
	}
	if t.count == 0 {
		t.first = time.Now()
	}
	t.under = true
	j.tries[n], j.carried[n], j.tasks[n] = t, true, number
	j.busy++
	j.launcher.Start(n, func(started bool, err error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.busy--
		j.carried[n] = started
		switch {
		case started && err != nil:
			j.failed = errors.Join(j.failed, err)
			j.Note(batch.Change{Worker: n, State: batch.Failed, Exit: -1, Reason: err.Error()})
		case !started:
			j.tryAgain(n, err)
		}
	})
}

// tryAgain records an attempt to launch a worker that started nothing. The state that Slurm then
// reports for its job decides whether there is another attempt. The caller holds j.mu.
func (j *job) tryAgain(n int, err error) {
	t := j.tries[n]
	t.under, t.count = false, t.count+1
	t.next = time.Now().Add(min(unseen<<min(t.count-1, 8), tryEvery))
	j.tries[n] = t
	if err == nil {
		return
	}
	_, transient := batch.TransientAnswer(system, err.Error())
	if !transient || time.Since(t.first) > tryFor {
		j.Note(batch.Change{Worker: n, State: batch.Failed, Exit: -1, Reason: err.Error()})
	}
}

// forgotten notes a worker that is unknown to Slurm. If the worker could, it has left its exit
// status.
func (j *job) forgotten(n int) {
	c := batch.Change{Worker: n, State: batch.Removed, Exit: -1} // a queued worker leaves nothing
	if j.Last(n).State == batch.Running {
		c.State, c.Reason = batch.Failed, "Slurm does not know this job any more, nor how it ended"
	}
	if said, err := os.ReadFile(filepath.Join(j.sub.Out(n), ".exit")); err == nil {
		if code, err := strconv.Atoi(strings.TrimSpace(string(said))); err == nil {
			c.State, c.Exit, c.Reason = batch.Failed, code, fmt.Sprintf("exit status %d", code)
			if code == 0 {
				c.State, c.Reason = batch.Ended, ""
			}
		}
	}
	j.settled(n, c)
}

// room returns the reason why workers wait for resources.
func (j *job) room(ctx context.Context) string {
	const reason = "Resources: "
	said, err := batch.Run(ctx, nil, "sinfo", "--noheader", "--format=%C")
	var all, taken int
	for line := range strings.Lines(said) { // allocated/idle/other/total
		var a, idle, other, total int
		if n, _ := fmt.Sscanf(line, "%d/%d/%d/%d", &a, &idle, &other, &total); n == 4 {
			all, taken = all+total, taken+a
		}
	}
	if err != nil || all <= 0 {
		return reason + "Slurm waits until what it asks for is free"
	}
	return fmt.Sprintf("%sof %d processors %d are taken; %d workers of this run have theirs", reason, all, taken, j.Counts().Running)
}

// Remove implements batch.Job.
func (j *job) Remove(ctx context.Context) error {
	if j.sub.Over {
		return nil
	}
	if j.launcher != nil {
		j.launcher.Quit()
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	begin, cancelled := time.Now(), time.Time{}
	for {
		said, err := batch.Ask(ctx, system, "squeue", "--noheader", "--name="+j.sub.Tag, "--format=%A")
		if err != nil {
			return err
		}
		if strings.TrimSpace(said) == "" {
			break
		}
		if time.Since(begin) > leaving {
			return fmt.Errorf("job %s is still in Slurm's queue (squeue --name=%s)", strings.Join(j.sub.IDs, ", "), j.sub.Tag)
		}
		if time.Since(cancelled) > 10*time.Second {
			// By name and numbers: a number may be assigned again after Slurm has lost its state.
			_, err = batch.Run(ctx, nil, append([]string{"scancel", "--name=" + j.sub.Tag}, j.sub.IDs...)...)
			cancelled = time.Now()
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return j.finish(ctx)
}

// finish notes the outcomes of the last workers, and marks the submission as over.
func (j *job) finish(ctx context.Context) error {
	err := j.poll(ctx)
	for n := range j.sub.Count {
		j.settled(n, batch.Change{Worker: n, State: batch.Removed, Exit: -1})
	}
	j.over()
	if gone := os.Remove(shared(j.sub)); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	j.sub.Over = true
	return j.sub.Write()
}
