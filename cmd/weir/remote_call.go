package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/batch"
	"weir/internal/say"
	"weir/measure"
	"weir/results"
	"weir/scenario"
)

// A call is a submission of workers. Where each client is a job there is one for
// each step, else one for the run.
type call struct {
	job   batch.Job
	stop  context.CancelFunc // of following
	over  chan struct{}      // closed when it is no longer followed
	ended error              // then: why not all was followed, or brought back
}

// follow begins to follow a submission; changed hears what becomes of its workers.
func follow(job batch.Job, system string, changed func(batch.Change)) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{job: job, stop: cancel, over: make(chan struct{})}
	go func() {
		defer close(c.over)
		if err := job.Follow(ctx, changed); err != nil && ctx.Err() == nil {
			c.ended = fmt.Errorf("%s: %w", system, err)
		}
	}()
	return c
}

// longestRemoval is for how long removing workers may take.
const longestRemoval = 5 * time.Minute

// end removes what is left of a submission, also when all else was interrupted. lost
// says what of its workers was not followed, or not brought back: the run has its result
// all the same.
func (c *call) end(ending context.Context) (lost, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ending), longestRemoval)
	defer cancel()
	err = c.job.Remove(ctx)
	select {
	case <-c.over:
	case <-time.After(patience):
	}
	c.stop()
	<-c.over
	return c.ended, err
}

// endCalls ends the submissions that there are, and warns of what was lost.
func (t *troop) endCalls() error {
	var all error
	for _, c := range t.calls {
		lost, err := c.end(t.ending)
		if lost != nil {
			err = errors.Join(err, t.tell(measure.Event{Time: time.Now().UTC(), Kind: "warning", Text: line(lost.Error())}))
		}
		all = errors.Join(all, err)
	}
	t.calls = nil
	return all
}

// submit submits so many workers from the folder dir.
func (t *troop) submit(ctx context.Context, dir string, count int) error {
	self, err := selfCommand()
	if err != nil {
		return err
	}
	pass := filepath.Join(t.state, "pass.json")
	if err := os.Remove(pass); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.door.Pass().Write(pass); err != nil {
		return err
	}
	t.submitted(count)
	job, err := t.system.Submit(ctx, batch.Work{
		Name: t.name, Dir: dir, Program: self[0], Args: []string{"worker", "--pass", filepath.Base(pass)}, Files: append(t.bags[:len(t.bags):len(t.bags)], pass),
		Count: count, Options: t.on.Submit, Hosts: t.on.Hosts,
	})
	if err != nil {
		return fmt.Errorf("submit to %s: %w", t.system.Name(), err)
	}
	t.calls = append(t.calls, follow(job, t.system.Name(), t.changed))
	return t.tell(measure.Event{Time: time.Now().UTC(), Kind: "run", Text: fmt.Sprintf("%s submitted to %s", say.Plural(count, "worker"), t.system.Name())})
}

// call submits the clients of a step, each a job of its own. What is left of the
// step before is removed.
func (t *troop) call(ctx context.Context, step scenario.Step) error {
	if err := t.endCalls(); err != nil {
		return err
	}
	return t.submit(ctx, filepath.Join(t.dir, fmt.Sprintf("step-%d", step.Number)), step.Clients)
}

// callDirs are the folders of the submissions that a run has made.
func callDirs(dir string) []string {
	steps, err := filepath.Glob(filepath.Join(escaped(dir), "step-*"))
	if err != nil {
		return []string{dir}
	}
	return append(steps, dir)
}

// find looks for the workers of a run that was killed. If none of them is left, or
// the files are not known that they work on, the run begins anew with others.
func (t *troop) find(ctx context.Context, run *results.Run) error {
	var gone, live []batch.Job
	left, all := 0, 0
	for _, dir := range callDirs(t.dir) {
		job, err := t.system.Find(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the workers of this run: %w", err)
		}
		n := job.Counts()
		if n.Left() == 0 || !t.known() {
			gone = append(gone, job)
			continue
		}
		left, all, live = left+n.Left(), all+n.All(), append(live, job)
	}
	t.submitted(all)
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if w := e.Worker; w != nil && w.State == measure.Came {
			t.came++
			if w.Job != "" {
				t.of(w.Job).came = true // nobody else hears of them yet; Follow tells of all from the first on
			}
		}
	}
	for _, job := range live {
		t.calls = append(t.calls, follow(job, t.system.Name(), t.changed))
	}
	for _, job := range gone {
		if err := job.Remove(ctx); err != nil {
			return err
		}
	}
	if t.found = left > 0; !t.found {
		return os.RemoveAll(t.state)
	}
	return t.tell(measure.Event{Time: time.Now().UTC(), Kind: "run", Text: fmt.Sprintf("%s of this run are still with %s", say.Plural(left, "worker"), t.system.Name())})
}

// left is how many jobs are not over.
func (t *troop) left() (n int) {
	for _, c := range t.calls {
		n += c.job.Counts().Left()
	}
	return n
}

// absent says what the batch system says of workers that are not there.
func (t *troop) absent() (all []string) {
	for _, c := range t.calls {
		all = append(all, c.job.Counts().Away...)
	}
	return all
}
