package htcondor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/internal/say"
	"weir/loadtest/cluster/batch"
)

const (
	// readEvery is the interval at which the log is checked, which costs a stat.
	readEvery = 300 * time.Millisecond
	// askEvery is the interval of requests to HTCondor while jobs are queued and nothing happens.
	askEvery = 30 * time.Second
	// removing is the interval at which the remaining jobs are listed while HTCondor removes jobs.
	removing = 500 * time.Millisecond
	// lagging is the time that the log may be behind the queue.
	lagging = 15 * time.Second
	// leaving is the time without a job leaving after which the jobs are cleared from HTCondor's
	// queue without waiting for their machines.
	leaving = 40 * time.Second
)

// Follow implements batch.Job.
func (j *job) Follow(ctx context.Context, tell func(batch.Change)) error {
	return j.FollowWatched(ctx, tell, j.watch)
}

// watch reads the log until all workers are over, or ctx is.
func (j *job) watch(ctx context.Context) error {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	quiet := time.Now()
	for asked := time.Now().Add(5*time.Second - askEvery); ; {
		news, err := j.read()
		if err != nil || j.over() {
			return err
		}
		if news {
			quiet = time.Now()
		}
		if time.Since(asked) > askEvery && time.Since(quiet) > 2*time.Second {
			j.ask(ctx)
			asked = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// over reports whether all workers are over, and ends the ledger if they are.
func (j *job) over() bool {
	if j.Counts().Left() > 0 {
		return false
	}
	j.End()
	return true
}

// read notes the new events in the log.
func (j *job) read() (news bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	events, err := j.log.next()
	for i := range events {
		c, ok := events[i].change()
		if events[i].Code == evicted && j.removing {
			continue // jobs that run are evicted, then removed
		}
		if !ok || len(j.sub.IDs) == 0 || strconv.Itoa(events[i].Cluster) != j.sub.IDs[0] {
			continue
		}
		j.Note(c)
		news = true
	}
	return news, err
}

// ask requests from HTCondor the reasons why jobs are queued, and checks that it still has the jobs
// whose end is not in the log. A failed request is ignored.
func (j *job) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	has, err := j.queue(ctx)
	if err != nil {
		return
	}
	idle := map[int]bool{}
	for _, q := range has {
		idle[q.proc] = q.status == idleStatus
		// the log does not record that a job submitted on hold is held
		if q.status == heldStatus && q.proc < j.sub.Count && j.Last(q.proc).State == batch.Queued {
			j.Note(batch.Change{Worker: q.proc, State: batch.Held, Reason: q.held, Exit: -1})
		}
	}
	why, known := "", false
	for i := range j.sub.Count {
		last := j.Last(i)
		waits, there := idle[i]
		switch {
		case !there && !last.State.Over() && time.Since(last.Time) > lagging:
			j.forgotten(i)
		case waits && last.State == batch.Queued:
			if !known {
				why, known = j.why(ctx, i), true
			}
			if why != "" {
				j.Note(batch.Change{Worker: i, State: batch.Queued, Reason: why, Exit: -1})
			}
		}
	}
}

// forgotten notes a worker that has left the queue without an event in the log.
func (j *job) forgotten(i int) {
	if _, err := j.read(); err == nil && !j.Last(i).State.Over() {
		j.Note(batch.Change{Worker: i, State: batch.Failed, Exit: -1, Reason: "HTCondor does not have this job any more, " +
			"and its log does not contain its outcome"})
	}
}

// Remove implements batch.Job.
func (j *job) Remove(ctx context.Context) error {
	if j.sub.Over {
		return nil
	}
	j.mu.Lock()
	j.removing = true
	j.mu.Unlock()
	var asked, fewer time.Time // when HTCondor was last asked to remove jobs, and when it last had fewer jobs
	forced := false
	for before := 0; ; {
		has, err := j.queue(ctx)
		if err != nil {
			return err
		}
		if len(has) == 0 {
			return errors.Join(j.settle(ctx), j.finish())
		}
		if len(has) < before || before == 0 {
			fewer = time.Now()
		}
		before = len(has)
		switch quiet := time.Since(fewer); {
		case asked.IsZero() || quiet > leaving/2 && time.Since(asked) > leaving/2 && !forced:
			_, _ = batch.Run(ctx, nil, "condor_rm", "-constraint", j.mine())
			asked = time.Now()
		case quiet > leaving && !forced:
			_, _ = batch.Run(ctx, nil, "condor_rm", "-forcex", "-constraint", j.mine())
			forced = true
		case quiet > leaving+20*time.Second:
			return fmt.Errorf("HTCondor does not let go of %s of cluster %s", say.Plural(before, "job"), strings.Join(j.sub.IDs, ", "))
		}
		// An error of condor_rm may mean that there is nothing left: the next request shows it.
		select {
		case <-time.After(removing):
		case <-ctx.Done():
			return fmt.Errorf("HTCondor was told to remove cluster %s, and still has %s of it: %w", strings.Join(j.sub.IDs, ", "),
				say.Plural(before, "job"), ctx.Err())
		}
	}
}

// settle waits until the log contains the end of all jobs that left HTCondor's queue.
func (j *job) settle(ctx context.Context) error {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for until := time.Now().Add(lagging); ; {
		if _, err := j.read(); err != nil {
			return err
		}
		if j.over() {
			return nil
		}
		if time.Now().After(until) || len(j.sub.IDs) == 0 {
			for i := range j.sub.Count {
				j.Note(batch.Change{Worker: i, State: batch.Removed, Exit: -1})
			}
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finish marks the submission as over.
func (j *job) finish() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sub.Over = true
	return j.sub.Write()
}
