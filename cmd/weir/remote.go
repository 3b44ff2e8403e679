package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"weir/batch"
	systems "weir/batch/all"
	"weir/cluster"
	"weir/internal/say"
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
	state  string
	dir    string // of what is submitted
	plan   *scenario.Plan
	door   *cluster.Door
	system batch.System
	job    batch.Job
	found  bool            // it is that of a run that was killed
	files  []workload.File // that its workers work on
	tell   func(measure.Event) error
	ending context.Context // for what is done at the end

	follow  context.CancelFunc
	over    chan struct{} // closed when the job is no longer followed
	mu      sync.Mutex
	workers map[string]cluster.WorkerState // by name
	jobs    map[int]batch.Change           // the last of each
	came    map[string]bool                // ids of jobs whose workers came
	failed  error
}

// muster submits the workers of a run, or finds those of one that was killed.
func (r *session) muster(ctx context.Context, dir string) (t *troop, err error) {
	on := r.plan.On
	if on.Batch == "" {
		return nil, nil
	}
	t = &troop{on: on, dir: filepath.Join(dir, batchDir), ending: r.in.leave, over: make(chan struct{}), follow: func() {},
		tell: r.told, workers: map[string]cluster.WorkerState{}, jobs: map[int]batch.Change{}, came: map[string]bool{}}
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
		if err := t.find(ctx); err != nil {
			return t, err
		}
	}
	bags, err := pack(r.plan, filepath.Join(t.state, "files"), false)
	if err != nil {
		return t, err
	}
	t.plan = bags.plan
	if t.door, err = cluster.OpenDoor(cluster.DoorOptions{Address: on.Address, State: t.state}); err != nil {
		return t, err
	}
	if t.job == nil {
		if err := t.submit(ctx, r.plan, bags.files); err != nil {
			return t, err
		}
	}
	t.watch()
	r.live.crewed(t.summary)
	return t, nil
}

// submit submits as many workers as the plan wants.
func (t *troop) submit(ctx context.Context, p *scenario.Plan, files []string) error {
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
	t.job, err = t.system.Submit(ctx, batch.Work{
		Name: p.Name, Dir: t.dir, Program: self[0], Args: []string{"worker", "--pass", filepath.Base(pass)}, Files: append(files, pass),
		Count: p.On.Workers, Options: p.On.Submit, Hosts: p.On.Hosts,
	})
	if err != nil {
		return fmt.Errorf("submit to %s: %w", t.system.Name(), err)
	}
	return t.tell(measure.Event{Time: time.Now().UTC(), Kind: "run", Text: fmt.Sprintf("%s submitted to %s", say.Plural(p.On.Workers, "worker"), t.system.Name())})
}

// find looks for the workers of a run that was killed. If none of them is left, or
// the files are not known that they work on, the run begins anew with others.
func (t *troop) find(ctx context.Context) error {
	job, err := t.system.Find(ctx, t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(t.state)
	}
	if err != nil {
		return fmt.Errorf("the workers of this run: %w", err)
	}
	if n := job.Counts().Left(); n > 0 && t.known() {
		t.job, t.found = job, true
		return t.tell(measure.Event{Time: time.Now().UTC(), Kind: "run", Text: fmt.Sprintf("%s of this run are still with %s", say.Plural(n, "worker"), t.system.Name())})
	}
	return errors.Join(job.Remove(ctx), os.RemoveAll(t.state))
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
	system, err := systemOf(run.Plan.On)
	if err != nil {
		return err
	}
	job, err := system.Find(ctx, filepath.Join(run.Dir, batchDir))
	if err == nil {
		err = job.Remove(ctx)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the workers of %s: %w", run.Dir, err)
	}
	state, err := stateDir(run.About.Run)
	if err != nil {
		return err
	}
	return os.RemoveAll(state)
}

// watch follows what becomes of the jobs.
func (t *troop) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	t.follow = cancel
	go func() {
		defer close(t.over)
		if err := t.job.Follow(ctx, t.changed); err != nil && ctx.Err() == nil {
			t.note(fmt.Errorf("%s: %w", t.system.Name(), err))
		}
	}()
}

func (t *troop) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = errors.Join(t.failed, err)
}

// changed hears what the batch system says of a worker. Those that will not
// start without help, and those that failed before they came, are told.
func (t *troop) changed(c batch.Change) {
	t.mu.Lock()
	before := t.jobs[c.Worker]
	t.jobs[c.Worker] = c
	came := t.came[c.JobID]
	t.mu.Unlock()
	state := map[batch.State]string{batch.Held: measure.Held, batch.Failed: measure.Failed}[c.State]
	if state == "" || came || before.State == c.State && before.Reason == c.Reason {
		return
	}
	text := fmt.Sprintf("job %s %s", c.JobID, map[string]string{measure.Held: "is held", measure.Failed: "failed before its worker came"}[state])
	if c.Host != "" {
		text += " on " + c.Host
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	e := measure.Event{Time: c.Time.UTC(), Kind: measure.WorkerEvent, Text: line(text), Worker: &measure.Worker{Name: "job " + c.JobID, State: state, Host: c.Host, Job: c.JobID}}
	if err := t.tell(e); err != nil {
		t.note(err)
	}
}

// state hears what the controller says of a worker.
func (t *troop) heard(w cluster.WorkerState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers[w.Name] = w
	if w.Job != "" {
		t.came[w.Job] = true
	}
}

// summary says how many workers are there, and what is known of the others.
func (t *troop) summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	there, lost := 0, 0
	for _, w := range t.workers {
		switch w.State {
		case cluster.Waiting, cluster.Working:
			there++
		case cluster.Lost:
			lost++
		}
	}
	states := map[batch.State]int{}
	for _, c := range t.jobs {
		if !t.came[c.JobID] {
			states[c.State]++
		}
	}
	text := fmt.Sprintf("workers: %d of %d there", there, t.want())
	for _, x := range []struct {
		n    int
		what string
	}{{states[batch.Running], "starting"}, {states[batch.Queued], "queued"}, {states[batch.Held], "held"}, {states[batch.Failed] + states[batch.Removed], "failed"}, {lost, "lost"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}

// want is how many workers there are to be.
func (t *troop) want() int { return t.on.Workers }

// absent says what the batch system says of workers that are not there.
func (t *troop) absent() []string { return t.job.Counts().Away }

// control runs the load with the workers.
func (t *troop) control(ctx context.Context, r *session) error {
	c := r.config
	c.Plan = t.plan
	crew := cluster.Crew{Want: t.on.Workers, Wait: time.Duration(t.on.Wait), FilesPerClient: filesPerClient(r.plan.Driver, r.plan.Work.InFlight), Absent: t.absent, Worker: t.heard}
	if t.found {
		crew.Past = &cluster.Past{Intervals: r.resumed.run.Intervals(), Events: r.resumed.run.Events(), Text: "resumed by weir " + version()}
		if r.find == nil { // a search goes on from the steps that are whole
			crew.Past.Broken = r.resumed.broken
		}
	}
	if workload.Writes(r.plan.Work) {
		crew.Manifest = c.Manifest
	}
	return errors.Join(t.door.Control(ctx, c, crew), t.missed())
}

// missed tells of each job whose worker was never there.
func (t *troop) missed() error {
	t.mu.Lock()
	var never []batch.Change
	for _, c := range t.jobs {
		if !t.came[c.JobID] && (c.State == batch.Queued || c.State == batch.Running) {
			never = append(never, c)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(never, func(a, b batch.Change) int { return cmp.Compare(a.Worker, b.Worker) })
	for _, c := range never {
		text := fmt.Sprintf("job %s was not there: it is %s", c.JobID, c.State)
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		e := measure.Event{Time: time.Now().UTC(), Kind: measure.WorkerEvent, Text: line(text), Worker: &measure.Worker{Name: "job " + c.JobID, State: measure.Absent, Host: c.Host, Job: c.JobID}}
		if err := t.tell(e); err != nil {
			return err
		}
	}
	return nil
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

// patience is for how long workers that are through may take to end.
const patience = 10 * time.Second

// through waits until the workers that run have ended.
func (t *troop) through() {
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for t.job.Counts().Running > 0 {
		select {
		case <-look.C:
		case <-t.over:
			return
		case <-late.C:
			return
		case <-t.ending.Done():
			return
		}
	}
}

// dismiss ends what is left of the workers, and forgets the run's secrets.
func (t *troop) dismiss() error {
	if t == nil {
		return nil
	}
	var err error
	if t.job != nil {
		t.through()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ending), time.Minute)
		err = t.job.Remove(ctx)
		cancel()
		select {
		case <-t.over:
		case <-time.After(patience):
		}
		t.follow()
		<-t.over
	}
	if t.door != nil {
		err = errors.Join(err, t.door.Close())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.failed, os.RemoveAll(t.state))
}
