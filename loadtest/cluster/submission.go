package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/internal/say"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// submissionsDir returns the folder of a run directory with the submissions and the output of
// workers.
func submissionsDir(run string) string { return filepath.Join(run, "batch") }

// submissionDirs returns the folders of all submissions of a run.
func submissionDirs(run string) []string {
	dir := submissionsDir(run)
	all := []string{}
	if steps, err := fs.Glob(os.DirFS(dir), "step-*"); err == nil {
		for _, step := range steps {
			all = append(all, filepath.Join(dir, step))
		}
	}
	return append(all, dir)
}

// DiscardSubmissions removes the submissions from a run directory whose workers have been removed and
// have written nothing.
func DiscardSubmissions(run string) error {
	written := false
	err := filepath.WalkDir(submissionsDir(run), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == batch.SubmissionFile {
			return err
		}
		info, err := e.Info()
		written = written || err == nil && info.Size() > 0
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || written {
		return err
	}
	return os.RemoveAll(submissionsDir(run))
}

// A submission is a job of the batch system that is followed. With one job per client there is a
// submission for each step, otherwise one submission for the run.
type submission struct {
	job  batch.Job
	stop context.CancelFunc // ends following
	done chan struct{}      // closed when following has ended
	err  error              // valid then: missing changes or outputs
}

// follow begins to follow job. It calls changed with each change.
func follow(job batch.Job, system string, changed func(batch.Change)) *submission {
	ctx, cancel := context.WithCancel(context.Background())
	s := &submission{job: job, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if err := job.Follow(ctx, changed); err != nil && ctx.Err() == nil {
			s.err = fmt.Errorf("%s: %w", system, err)
		}
	}()
	return s
}

// removalTimeout is the time that removing workers may take.
const removalTimeout = 5 * time.Minute

// end removes the rest of the submission, even after an interrupt. lost reports missing changes or
// outputs, which do not affect the result of the run.
func (s *submission) end(ctx context.Context) (lost, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	err = s.job.Remove(ctx)
	select {
	case <-s.done:
	case <-time.After(shutdownTimeout):
	}
	s.stop()
	<-s.done
	return s.err, err
}

// endSubmissions ends all submissions and warns of missing changes and outputs.
func (w *RemoteWorkers) endSubmissions() error {
	var all error
	for _, s := range w.submissions {
		lost, err := s.end(w.Shutdown)
		if lost != nil {
			err = errors.Join(err, w.writeEvent(measure.EventWarning, say.Plain(lost.Error())))
		}
		all = errors.Join(all, err)
	}
	w.submissions = nil
	return all
}

func (w *RemoteWorkers) writeEvent(kind measure.EventKind, text string) error {
	return w.WriteEvent(measure.Event{Time: time.Now().UTC(), Kind: kind, Text: text})
}

// submit submits count workers from the folder dir.
func (w *RemoteWorkers) submit(ctx context.Context, dir string, count int) error {
	self, err := SelfCommand()
	if err != nil {
		return err
	}
	pass := filepath.Join(w.State, "pass.json")
	if err := os.Remove(pass); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.server.Pass().Write(pass); err != nil {
		return err
	}
	w.submitted(count)
	files := w.bundle.Files
	job, err := w.System.Submit(ctx, batch.Work{
		Name: w.Plan.Name, Dir: dir, Program: self[0], Args: []string{"worker", "--pass", filepath.Base(pass)},
		Files: append(files[:len(files):len(files)], pass),
		Count: count, Options: w.Plan.On.Options(), Hosts: w.Plan.On.Hosts,
	})
	if err != nil {
		return fmt.Errorf("submit to %s: %w", w.System.Name(), err)
	}
	w.submissions = append(w.submissions, follow(job, w.System.Name(), w.changed))
	return w.writeEvent(measure.EventRun, fmt.Sprintf("%s submitted to %s", say.Plural(count, "worker"), w.System.Name()))
}

// submitStep submits the clients of a step, each as a job of its own, and removes the submission of
// the step before.
func (w *RemoteWorkers) submitStep(ctx context.Context, step scenario.Step) error {
	if err := w.endSubmissions(); err != nil {
		return err
	}
	return w.submit(ctx, filepath.Join(submissionsDir(w.Dir), fmt.Sprintf("step-%d", step.Number)), step.Clients)
}

// left returns the number of jobs that are not over.
func (w *RemoteWorkers) left() (n int) {
	for _, s := range w.submissions {
		n += s.job.Counts().Left()
	}
	return n
}

// absent returns the batch system's reasons for missing workers.
func (w *RemoteWorkers) absent() (all []string) {
	for _, s := range w.submissions {
		all = append(all, s.job.Counts().Away...)
	}
	return all
}
