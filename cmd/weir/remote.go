package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/batch"
	systems "weir/batch/all"
	"weir/cluster"
	"weir/measure"
	"weir/results"
	"weir/scenario"
	"weir/workload"
)

// systemOf returns the batch system that a scenario names.
func systemOf(on scenario.On) (batch.System, error) {
	system, err := systems.Open(on.Batch)
	if err != nil {
		return nil, exit{exitUsage, fmt.Errorf("on.batch: %w", err)}
	}
	return system, nil
}

// batchDir is the folder of a run directory with what was submitted, and what
// workers said.
const batchDir = "batch"

// stateDir is the private folder of a run: by it a killed controller's workers
// find the one that is started after it.
func stateDir(run string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("where is this user's state kept? %w: set XDG_STATE_HOME", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	if run == "" || run != filepath.Base(run) || run[0] == '.' {
		return "", fmt.Errorf("no run is called %q", run)
	}
	return filepath.Join(base, "weir", "runs", run), nil
}

// A troop is the workers of a run on other machines.
type troop struct {
	on     scenario.On
	name   string
	state  string          // private folder
	dir    string          // of what is submitted
	plan   *scenario.Plan  // as workers know it
	bags   []string        // files that travel with them
	files  []workload.File // that they work on; of a run that was killed
	found  bool            // they are those of a run that was killed
	came   int             // workers that had come to it
	door   *cluster.Door
	system batch.System
	calls  []*call // the last one is that of the step, where each client is a job
	tell   func(measure.Event) error
	ending context.Context // for what is done at the end
	roster
}

// muster submits the workers of a run, or finds those of one that was killed.
func (r *session) muster(ctx context.Context, dir string) (t *troop, err error) {
	on := r.plan.On
	if on.Batch == "" {
		return nil, nil
	}
	t = &troop{on: on, name: r.plan.Name, dir: filepath.Join(dir, batchDir), ending: r.in.leave, tell: r.told, roster: newRoster()}
	if t.system, err = systemOf(on); err != nil {
		return nil, err
	}
	if t.state, err = stateDir(r.out.About().Run); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.dismiss())
		}
	}()
	for _, text := range r.plan.Doubtful() {
		if err := r.warn(text); err != nil {
			return t, err
		}
	}
	if r.resumed != nil {
		if err := t.find(ctx, r.resumed.run); err != nil {
			return t, err
		}
		if err := r.resumed.with(t.found); err != nil {
			return t, err
		}
	}
	bags, err := pack(r.plan, filepath.Join(t.state, "files"), false)
	if err != nil {
		return t, err
	}
	t.plan, t.bags = bags.plan, bags.files
	if t.door, err = cluster.OpenDoor(cluster.DoorOptions{Address: on.Address, State: t.state, Came: t.came}); err != nil {
		return t, err
	}
	if len(t.calls) == 0 && !on.JobPerClient {
		if err := t.submit(ctx, t.dir, on.Workers); err != nil {
			return t, err
		}
	}
	r.live.crewed(t.summary)
	return t, nil
}

// filesFile is the file of the private state with the files that workers work on.
const filesFile = "files.json"

// keep writes down on which files workers work, for a controller that is started
// when this one was killed: they need not be made, or looked for, again.
func (t *troop) keep(files []workload.File) error {
	b, err := json.Marshal(files)
	if err != nil {
		return err
	}
	path := filepath.Join(t.state, filesFile)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// known tells whether the killed controller had come so far that its workers'
// files are known, and reads them.
func (t *troop) known() bool {
	b, err := os.ReadFile(filepath.Join(t.state, filesFile))
	return err == nil && json.Unmarshal(b, &t.files) == nil
}

// forget removes what a run that was killed has left of its workers: in the batch
// system, and of their secrets.
func forget(ctx context.Context, run *results.Run) error {
	if run.Plan.On.Batch == "" {
		return nil
	}
	f, err := results.Follow(run.Dir)
	if err != nil {
		return err
	}
	if !f.Over() {
		return fmt.Errorf("%s still goes on, with its workers: interrupt it first", run.Dir)
	}
	system, err := systemOf(run.Plan.On)
	if err != nil {
		return err
	}
	for _, dir := range callDirs(filepath.Join(run.Dir, batchDir)) {
		job, err := system.Find(ctx, dir)
		if err == nil {
			err = job.Remove(ctx)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the workers of %s: %w", run.Dir, err)
		}
	}
	state, err := stateDir(run.About.Run)
	if err != nil {
		return err
	}
	return os.RemoveAll(state)
}

// control runs the load with the workers.
func (t *troop) control(ctx context.Context, r *session) error {
	c := r.config
	c.Plan = t.plan
	crew := cluster.Crew{Want: t.on.Workers, Wait: time.Duration(t.on.Wait), FilesPerClient: filesPerClient(r.plan.Driver, r.plan.Work.InFlight), Absent: t.absent, Worker: t.heard,
		JobPerClient: t.on.JobPerClient, Call: t.call, Coming: t.coming, Left: t.left, Version: version(), Samples: both{r.out, r.live, nil}}
	if t.found {
		crew.Past = &cluster.Past{Intervals: r.resumed.run.Intervals(), Events: r.resumed.run.Events(), Samples: r.resumed.run.Samples(), Text: "resumed by weir " + version()}
		if r.find == nil { // a search goes on from the steps that are whole
			crew.Past.Broken = r.resumed.broken
		}
	}
	if workload.Writes(r.plan.Work) {
		crew.Manifest = c.Manifest
	}
	return errors.Join(t.door.Control(ctx, c, crew), t.missed())
}

// pids tells which processes of this machine are workers. nil: there are none.
func (t *troop) pids() func() []int {
	if t == nil || t.door == nil {
		return nil
	}
	return t.door.Pids
}

// watchedHosts are the machines that the controller watches. Where the clients are
// on others, this one has none.
func watchedHosts(p *scenario.Plan) []scenario.Host {
	if p.On.Batch == "" || p.On.Batch == "local" {
		return p.Hosts
	}
	hosts := slices.Clone(p.Hosts)
	for i := range hosts {
		h := &hosts[i]
		switch {
		case h.NodeExporter+h.XRootDReport != "":
		case h.Role == "client":
			h.Role = "other"
		case h.Role == "both":
			h.Role = "server"
		}
	}
	return hosts
}

// dismiss ends what is left of the workers, and forgets the run's secrets.
func (t *troop) dismiss() error {
	if t == nil {
		return nil
	}
	t.through()
	err := t.endCalls()
	if t.door != nil {
		err = errors.Join(err, t.door.Close())
	}
	return errors.Join(err, os.RemoveAll(t.state))
}

// patience is for how long workers that are through may take to end.
const patience = 10 * time.Second

// through waits until the workers that were there have ended.
func (t *troop) through() {
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for t.running() {
		select {
		case <-look.C:
		case <-late.C:
			return
		case <-t.ending.Done():
			return
		}
	}
}
