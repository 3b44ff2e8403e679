package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"weir/internal/durable"
	"weir/internal/say"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// StateDir returns the private folder of a run, through which a new controller finds the workers of
// a killed controller.
func StateDir(run string) (string, error) {
	if run == "" || run != filepath.Base(run) || run[0] == '.' {
		return "", fmt.Errorf("invalid run name %q", run)
	}
	return durable.StateDir("runs", run)
}

// RemoteOptions configure the workers of a run on other machines.
type RemoteOptions struct {
	Plan       *scenario.Plan
	System     batch.System
	Dir        string // run directory; submissions are kept below it
	State      string // private folder of the run, see StateDir
	WriteEvent func(measure.Event) error
	// Shutdown bounds the time that Close waits for workers to end.
	Shutdown context.Context
}

// RemoteWorkers are the workers of a run on other machines. They are submitted to a batch system and connect to a
// Server of this process. Find or Start is called first, Control once, and Close last.
type RemoteWorkers struct {
	RemoteOptions
	Files []workload.File // of a killed run, after Find
	Found bool            // Find has found workers of a killed run

	bundle      Bundle
	joined      int // workers of the killed run that had connected
	server      *Server
	submissions []*submission // with one job per client, the last belongs to the current step
	workerRegistry
}

// NewRemoteWorkers returns workers that are not started yet.
func NewRemoteWorkers(o RemoteOptions) *RemoteWorkers {
	return &RemoteWorkers{RemoteOptions: o, workerRegistry: newWorkerRegistry()}
}

// Start opens the server for workers and submits them, unless Find has found them, or each client is a job of its
// own.
func (w *RemoteWorkers) Start(ctx context.Context) (err error) {
	on := w.Plan.On
	if w.bundle, err = newBundle(w.Plan, filepath.Join(w.State, "files")); err != nil {
		return err
	}
	if w.server, err = NewServer(ServerOptions{Address: on.Address, State: w.State, Came: w.joined}); err != nil {
		return err
	}
	if len(w.submissions) > 0 || on.JobPerClient {
		return nil
	}
	return w.submit(ctx, submissionsDir(w.Dir), on.Workers)
}

// Find looks for the workers of a killed run whose events are given. If no workers are left, or the
// files that they use are not known, the run starts new workers.
func (w *RemoteWorkers) Find(ctx context.Context, events iter.Seq2[*measure.Event, error]) error {
	var over, alive []batch.Job
	left, all := 0, 0
	for _, dir := range submissionDirs(w.Dir) {
		job, err := w.System.Find(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the workers of this run: %w", err)
		}
		n := job.Counts()
		if n.Left() == 0 || len(w.Plan.Links) > 0 || !w.readFiles() { // the old links are gone
			over = append(over, job)
			continue
		}
		left, all, alive = left+n.Left(), all+n.All(), append(alive, job)
	}
	w.submitted(all)
	for e, err := range events {
		if err != nil {
			return err
		}
		if about := e.Worker; about != nil && about.State == measure.Came {
			w.joined++
			if about.Job != "" {
				w.of(about.Job).came = true // no lock: nothing is followed yet, and Follow reports all changes from the first on
			}
		}
	}
	for _, job := range alive {
		w.submissions = append(w.submissions, follow(job, w.System.Name(), w.changed))
	}
	for _, job := range over {
		if err := job.Remove(ctx); err != nil {
			return err
		}
	}
	if w.Found = left > 0; !w.Found {
		return os.RemoveAll(w.State)
	}
	return w.writeEvent(measure.EventRun, fmt.Sprintf("%s of this run are still with %s", say.Plural(left, "worker"), w.System.Name()))
}

// filesFile is the file of the private folder that lists the files of the run.
const filesFile = "files.json"

// KeepFiles records the files that workers use: a controller that is started after a kill need not
// make or list them again.
func (w *RemoteWorkers) KeepFiles(files []workload.File) error {
	b, err := json.Marshal(files)
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(w.State, filesFile), b, 0o600)
}

// readFiles reads the files that KeepFiles of a killed controller recorded. It returns false if
// there is no such record.
func (w *RemoteWorkers) readFiles() bool {
	b, err := os.ReadFile(filepath.Join(w.State, filesFile))
	return err == nil && json.Unmarshal(b, &w.Files) == nil
}

// Control drives the run c with the workers. It completes o from the plan and the submissions.
func (w *RemoteWorkers) Control(ctx context.Context, c engine.Config, o WorkerOptions) error {
	on := w.Plan.On
	c.Plan = w.bundle.Plan
	o.Want, o.Wait, o.JobPerClient = on.Workers, time.Duration(on.Wait), on.JobPerClient
	o.Absent, o.Worker, o.Call, o.Coming, o.Left = w.absent, w.update, w.submitStep, w.coming, w.left
	return errors.Join(w.server.Control(ctx, c, o), w.reportMissing())
}

// Pids returns the processes of this machine that are workers.
func (w *RemoteWorkers) Pids() []int { return w.server.Pids() }

// Close waits a little for workers to end, removes the remaining workers, and removes the secrets
// of the run.
func (w *RemoteWorkers) Close() error {
	w.waitEnded()
	err := w.endSubmissions()
	if w.server != nil {
		err = errors.Join(err, w.server.Close())
	}
	return errors.Join(err, os.RemoveAll(w.State))
}

// shutdownTimeout is the time that workers may take to end after the run.
const shutdownTimeout = 10 * time.Second

// waitEnded waits until the workers that have connected have ended.
func (w *RemoteWorkers) waitEnded() {
	late := time.NewTimer(shutdownTimeout)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for w.running() {
		select {
		case <-tick.C:
		case <-late.C:
			return
		case <-w.Shutdown.Done():
			return
		}
	}
}

// RemoveWorkers removes the remaining workers of a killed run, whose directory is dir, from the
// batch system.
func RemoveWorkers(ctx context.Context, system batch.System, dir string) error {
	for _, dir := range submissionDirs(dir) {
		job, err := system.Find(ctx, dir)
		if err == nil {
			err = job.Remove(ctx)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
