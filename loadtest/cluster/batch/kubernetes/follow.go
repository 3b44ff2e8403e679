package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
)

const (
	// mostTries is the number of attempts to fetch the outputs of a worker.
	mostTries = 5
	// atOnce is the number of logs that are fetched at once.
	atOnce = 8
	// slow is the time that a pod may take to start before the reason is looked up.
	slow = 5 * time.Second
)

// Follow implements batch.Job.
func (j *job) Follow(ctx context.Context, tell func(batch.Change)) error {
	err := j.FollowAsked(ctx, tell, j.askAndClear, j.over)
	j.asking.Lock()
	defer j.asking.Unlock()
	if err == nil {
		err = j.failed
	}
	return err
}

// askAndClear updates the states, and deletes the objects of the submission when all workers are
// over.
func (j *job) askAndClear(ctx context.Context) error {
	if err := j.poll(ctx); err != nil || j.Counts().Left() > 0 {
		return err
	}
	j.asking.Lock()
	defer j.asking.Unlock()
	return j.clear(context.WithoutCancel(ctx))
}

// over reports whether all workers are over and all objects are deleted, and then closes the
// ledger.
func (j *job) over() bool {
	j.asking.Lock()
	defer j.asking.Unlock()
	if j.Counts().Left() > 0 || !j.sub.Over {
		return false
	}
	j.End()
	return true
}

// poll requests the Job and all pods, notes changes, and fetches the outputs of workers.
func (j *job) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	j.asking.Lock()
	defer j.asking.Unlock()
	if j.sub.Over {
		return nil
	}
	said, err := batch.Run(ctx, nil, j.kubectl("get", "jobs,pods", "--selector="+label+"="+j.sub.Tag, "-o", "json")...)
	if err != nil {
		return err
	}
	owner, pods, err := parse(said)
	if err != nil {
		return err
	}
	var ended sync.WaitGroup
	places := make(chan struct{}, atOnce)
	var changes sync.Mutex // guards tries and failed meanwhile
	unclear := false
	for n := range j.sub.Count {
		if j.Last(n).State.Over() {
			continue
		}
		pod := pods[n]
		c := j.change(n, owner, pod)
		c.Worker, c.JobID = n, j.id(n)
		if pod != nil {
			j.seen[n] = true
		}
		if c.State == batch.Queued && c.Reason == "" {
			unclear = unclear || pod == nil || time.Since(pod.Metadata.CreationTimestamp) > slow
			c.Reason = cmp.Or(j.warning(pod), c.Reason)
		}
		if pod == nil || pod.ended() == nil || !c.State.Over() {
			j.Note(c)
			continue
		}
		ended.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			err := j.fetch(ctx, n, pod.Metadata.Name)
			changes.Lock()
			defer changes.Unlock()
			if j.tries[n]++; err != nil && !complete(err) && j.tries[n] < mostTries {
				return
			}
			if err != nil && c.State == batch.Ended { // a killed worker may have left nothing
				j.failed = errors.Join(j.failed, fmt.Errorf("worker %d: %w", n, err))
			}
			j.noteEnd(n, c, pod)
		})
	}
	ended.Wait()
	if unclear && time.Since(j.looked) > slow {
		j.looked = time.Now()
		j.reasons = j.warnings(ctx)
	}
	return nil
}

// noteEnd notes the end of a worker, and before it the start if that was too short to be observed.
func (j *job) noteEnd(n int, c batch.Change, pod *object) {
	if t := pod.ended(); j.Last(n).State == batch.Queued && !t.StartedAt.IsZero() {
		j.Note(batch.Change{Time: t.StartedAt, Worker: n, State: batch.Running, Host: c.Host, JobID: c.JobID})
	}
	if said, err := os.ReadFile(filepath.Join(j.sub.Out(n), "stderr")); err == nil && c.State == batch.Failed && len(said) > 0 {
		c.Reason += ": " + batch.Words(string(said[max(0, len(said)-4096):]), nil)
	}
	j.Note(c)
}

// fetch reads the outputs of a worker from the log of its pod.
func (j *job) fetch(ctx context.Context, n int, pod string) error {
	log, err := batch.Run(ctx, nil, j.kubectl("logs", pod, "--container=weir")...)
	if err != nil {
		return err
	}
	return readOutputs([]byte(log), j.sub.Out(n))
}

// complete reports whether an error of fetch means that no more outputs can come.
func complete(err error) bool {
	return errors.Is(err, errNotWhole) || strings.Contains(err.Error(), "(BadRequest)") || strings.Contains(err.Error(), "(NotFound)")
}

// warnings returns the latest warning of each object of the submission.
func (j *job) warnings(ctx context.Context) map[string]string {
	said, err := batch.Run(ctx, nil, j.kubectl("get", "events", "--field-selector=type=Warning", "-o", "json")...)
	if err != nil {
		return nil // some users may not list events
	}
	return latest(said, j.sub.Tag)
}

// warning returns the latest warning on a worker that has no pod, or whose pod does not start.
func (j *job) warning(pod *object) string {
	if pod != nil {
		return j.reasons[pod.Metadata.Name]
	}
	return j.reasons[j.sub.Tag]
}

// latest reads the warnings in a list of events: by the name of the object, which is a Job or one
// of its pods.
func latest(said, tag string) map[string]string {
	var list struct {
		Items []struct {
			InvolvedObject           struct{ Name string }
			Reason, Message          string
			LastTimestamp, EventTime time.Time
		}
	}
	if json.Unmarshal([]byte(said), &list) != nil {
		return nil
	}
	reasons, at := map[string]string{}, map[string]time.Time{}
	for i := range list.Items {
		e := &list.Items[i]
		name, when := e.InvolvedObject.Name, e.LastTimestamp
		if when.IsZero() {
			when = e.EventTime
		}
		if (name == tag || strings.HasPrefix(name, tag+"-")) && !when.Before(at[name]) {
			reasons[name], at[name] = because(e.Reason, e.Message), when
		}
	}
	return reasons
}
