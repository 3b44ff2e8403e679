// Package htcondor starts workers as jobs of HTCondor: one cluster of jobs for each submission.
// HTCondor's own file transfer carries program and files, so nothing needs to be installed or
// shared. The states of the jobs are read from their event log.
package htcondor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
	"weir/loadtest/cluster/batch"
)

// A System submits to the pool that condor_submit on PATH submits to.
type System struct{}

// New returns the system.
func New() *System { return &System{} }

const system = "HTCondor"

// Name implements batch.System.
func (*System) Name() string { return system }

// A job is one cluster of HTCondor jobs.
type job struct {
	*batch.Ledger
	sub *batch.Submission

	mu       sync.Mutex // guards the fields below
	log      userLog
	removing bool // by us
}

func newJob(sub *batch.Submission) *job {
	j := &job{Ledger: batch.NewLedger(sub.Count), sub: sub, log: userLog{path: logFile(sub.Dir())}}
	j.log.since = sub.Begin
	return j
}

func logFile(dir string) string { return filepath.Join(dir, "events.log") }

// Submit implements batch.System. Work.Options are lines of the submit description.
func (*System) Submit(ctx context.Context, w batch.Work) (batch.Job, error) {
	if err := checkOptions(w.Options); err != nil {
		return nil, err
	}
	sub, err := batch.Begin(system, &w)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.Dir, "job.sub")
	text, err := describe(&w, sub)
	for i := 0; err == nil && i < w.Count; i++ {
		err = os.MkdirAll(sub.Out(i), 0o755)
	}
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o644)); err != nil {
		return nil, fail(sub, err)
	}
	j := newJob(sub)
	// The log may have another submission's events, of a run that is resumed.
	j.log.skip()
	// Ctrl-C must not leave it open whether there are jobs: it does not end the submission.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	cluster, err := j.submit(bounded, file)
	if err == nil {
		sub.IDs = []string{cluster}
		err = sub.Write()
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, j.Remove(clearing))
	}
	return j, nil
}

// submit submits the description in file, once: if a response does not show whether HTCondor has
// the jobs, the queue is checked before they are submitted again.
func (j *job) submit(ctx context.Context, file string) (cluster string, err error) {
	err = batch.Retry(ctx, system, func() error {
		said, err := batch.Run(ctx, nil, "condor_submit", "-terse", file)
		if err == nil {
			cluster, err = clusterOf(said)
		}
		return err
	}, func() (bool, error) {
		has, err := j.queue(ctx)
		if err == nil && len(has) > 0 {
			cluster = strconv.Itoa(has[0].cluster)
		}
		return len(has) > 0, err
	})
	return cluster, err
}

// fail ends a submission that never reached HTCondor.
func fail(sub *batch.Submission, err error) error {
	sub.Over = true
	return errors.Join(err, sub.Write())
}

// clusterRange matches the first and the last job in the output of condor_submit -terse.
var clusterRange = regexp.MustCompile(`(?m)^(\d+)\.\d+ - (\d+)\.\d+\s*$`)

// clusterOf finds the number of the cluster in the output of condor_submit -terse: "12.0 - 12.199".
func clusterOf(said string) (string, error) {
	found := clusterRange.FindStringSubmatch(said)
	if found == nil || found[1] != found[2] {
		return "", fmt.Errorf("no cluster number in the output of condor_submit: %q", batch.Words(said, nil))
	}
	return found[1], nil
}

// Find implements batch.System.
func (*System) Find(ctx context.Context, dir string) (batch.Job, error) {
	sub, err := batch.ReadSubmission(dir, system)
	if err != nil {
		return nil, err
	}
	if len(sub.IDs) > 0 {
		if n, err := strconv.ParseUint(sub.IDs[0], 10, 31); err != nil || n == 0 {
			return nil, fmt.Errorf("%s: this is not what weir has written: no cluster is called %q", dir, sub.IDs[0])
		}
	}
	j := newJob(sub)
	if len(sub.IDs) == 0 && !sub.Over { // killed while it was submitting
		inQueue, err := j.queue(ctx)
		if err != nil {
			return nil, err
		}
		for _, q := range inQueue {
			if sub.IDs = []string{strconv.Itoa(q.cluster)}; q.cluster <= 0 {
				return nil, fmt.Errorf("condor_q reports on a cluster %d", q.cluster)
			}
		}
		if err := sub.Write(); err != nil {
			return nil, err
		}
	}
	if _, err := j.read(); err != nil {
		return nil, err
	}
	if len(sub.IDs) == 0 || sub.Over {
		for i := range sub.Count {
			j.Note(batch.Change{Worker: i, State: batch.Removed, Exit: -1})
		}
	}
	return j, nil
}

// mine returns the expression that is true of our jobs only.
func (j *job) mine() string {
	expression := fmt.Sprintf("%s == %q", tagAttribute, j.sub.Tag)
	if len(j.sub.IDs) > 0 {
		expression = "ClusterId == " + j.sub.IDs[0] + " && " + expression
	}
	return expression
}

const tagAttribute = "WeirSubmission"

// inQueue is a job that is in HTCondor's queue.
type inQueue struct {
	cluster, proc, status int
	held                  string // the reason, "" if it is not
}

// Values of JobStatus.
const (
	idleStatus = 1
	heldStatus = 5
)

// queue returns the jobs of the submission that HTCondor still has.
func (j *job) queue(ctx context.Context) (all []inQueue, err error) {
	said, err := batch.Ask(ctx, system, "condor_q", "-constraint", j.mine(), "-af", "ClusterId", "ProcId", "JobStatus", "HoldReason")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(said) {
		var q inQueue
		if n, _ := fmt.Sscan(line, &q.cluster, &q.proc, &q.status); n == 3 {
			if reason := strings.Join(strings.Fields(line)[3:], " "); reason != "undefined" {
				q.held = batch.Words(reason, nil)
			}
			all = append(all, q)
		} else if strings.TrimSpace(line) != "" {
			return nil, fmt.Errorf("unexpected output of condor_q: %q", batch.Words(line, nil))
		}
	}
	return all, nil
}

// why returns the reason why a job is queued: the free room in the pool, or that no machine
// satisfies the job's requirements.
func (j *job) why(ctx context.Context, worker int) string {
	said, err := batch.Run(ctx, nil, "condor_status", "-af", "Cpus", "State")
	if err != nil {
		return batch.Words(err.Error(), nil)
	}
	all, free := room(said)
	pool := fmt.Sprintf("the pool has room for %s of one processor, %d of it free", say.Plural(all, "job"), free)
	switch {
	case all == 0:
		return "the pool has no machines that run jobs"
	case free == 0:
		return fmt.Sprintf("the pool has room for %s of one processor, and all of it is taken, %d by this run", say.Plural(all, "job"),
			j.Counts().Running)
	}
	said, err = batch.Run(ctx, nil, "condor_q", "-better-analyze", j.Last(worker).JobID)
	if err != nil {
		return pool
	}
	if m := analyzed(said); m.machines > 0 && m.refused == m.machines {
		return fmt.Sprintf("none of the pool's %s is what the job asks for; condor_q -better-analyze %s tells more",
			say.Plural(m.machines, "machine"), j.Last(worker).JobID)
	}
	return pool
}

// room sums the processors of all slots, and of the free slots, from lines such as "49 Unclaimed".
// Parts of a slot are slots of their own, whose processors the slot then does not have.
func room(said string) (all, free int) {
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || n > 1<<20 {
			continue
		}
		if all += n; words[1] == "Unclaimed" {
			free += n
		}
	}
	return all, free
}

// analysis is the number of machines, and the number of machines that a job's requirements refuse.
type analysis struct{ machines, refused int }

// analyzed reads the summary of condor_q -better-analyze:
//
//	004.000:  Run analysis summary ignoring user priority.  Of 1 machines,
//	      1 are rejected by your job's requirements
func analyzed(said string) (a analysis) {
	for line := range strings.Lines(said) {
		if _, of, ok := strings.Cut(line, "Of "); ok && strings.Contains(line, "analysis summary") {
			a.machines, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(of), " machines,"))
		}
		if n, ok := strings.CutSuffix(strings.TrimSpace(line), " are rejected by your job's requirements"); ok {
			a.refused, _ = strconv.Atoi(n)
		}
	}
	return a
}
