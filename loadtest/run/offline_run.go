package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/cluster"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/results"
	"weir/loadtest/results/merge"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// Names of what travels to and from workers that measure for themselves.
const (
	planFile = "plan.json"
	partDir  = "run"
	partFile = partDir + merge.Ending
)

// An offlineRun is a run whose workers cannot reach this machine: each measures
// its part of the plan by its own clock and brings a run directory back.
type offlineRun struct {
	Config
	parts   string // folder of what is submitted and brought back
	system  batch.System
	job     batch.Job
	changes map[int]batch.Change // the last one of each worker
	// failures are why jobs were held, or failed: the last change of such jobs
	// only says that they were removed.
	failures []error
}

// runOffline has workers measure their parts, and merges what they bring into
// the run directory.
func (r *session) runOffline(system batch.System) (err error) {
	o := &offlineRun{Config: r.Config, parts: r.Dir + ".parts", changes: map[int]batch.Change{}, system: system}
	whole := *r.Plan
	if !Timed(&whole) {
		whole.BeginAt(time.Now().Add(time.Duration(whole.On.Wait)).Truncate(time.Second))
	}
	o.Plan = &whole
	if _, err := whole.Apart(1, whole.On.Workers); err != nil {
		return usage(fmt.Errorf("on.apart: %w", err))
	}
	if _, err := os.Lstat(r.Dir); err == nil {
		return usage(fmt.Errorf("%s is there already: name another folder", r.Dir))
	}
	for _, text := range append(whole.RemoteWarnings(), CredentialWarnings(&whole, whole.Time())...) {
		o.Console.Warn("weir: %s\n", text)
	}
	state, err := cluster.StateDir("apart-" + strings.ToLower(rand.Text()[:13]))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	if err := o.submit(r.Finish, state); err != nil {
		return err
	}
	if err := o.wait(); err != nil {
		return err
	}
	if err := o.merge(); err != nil {
		return err
	}
	linkLatest(r.Dir)
	return r.report()
}

// submit submits the workers.
func (o *offlineRun) submit(ctx context.Context, state string) error {
	bundle, err := cluster.NewBundle(o.Plan, state, true)
	if err != nil {
		return err
	}
	self, err := cluster.SelfCommand()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.parts, 0o755); err != nil {
		return err
	}
	file := filepath.Join(state, planFile) // private: the plan has the secrets of its addresses
	text, err := json.Marshal(bundle.Plan)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return err
	}
	on := o.Plan.On
	o.job, err = o.system.Submit(ctx, batch.Work{Name: o.Plan.Name, Dir: o.parts, Program: self[0], Args: []string{"part", planFile},
		Files: append(bundle.Files, file), Brings: []string{partFile}, Count: on.Workers, Options: on.Options(), Hosts: on.Hosts})
	if err != nil {
		return fmt.Errorf("submit to %s: %w", o.system.Name(), err)
	}
	o.Console.Say("%s submitted to %s; they begin at %s by their own clocks and need %v; what they bring is in %s\n",
		say.Plural(on.Workers, "worker"), o.system.Name(),
		o.Plan.Steps[0].Begin.Local().Format(time.TimeOnly), unit.Duration(o.Plan.Time()), o.parts)
	return nil
}

// bringTimeout is how long workers may take to bring their parts when the plan's
// time is over.
const bringTimeout = time.Minute

// wait follows the workers until all that can bring something have. An
// interrupt has them end early.
func (o *offlineRun) wait() error {
	_, done := o.Console.Working("workers measure apart")
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- o.job.Follow(ctx, o.changed) }()
	p := o.Plan
	over := p.Steps[0].Begin.Add(p.Time() + time.Duration(p.GracefulStop) + bringTimeout)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	interrupted := o.Finish.Done()
	var removing sync.WaitGroup
	defer removing.Wait()
	for {
		select {
		case err := <-ended:
			if err != nil { // what was brought is merged all the same
				o.Console.Say("weir: %s: %s\n", o.system.Name(), o.Console.line(err))
				o.failures = append(o.failures, err)
			}
			return o.remove() // what is left of it elsewhere
		case <-interrupted:
			interrupted = nil
			removing.Go(func() { _ = o.remove() }) // removed again at the end, with its error
		case <-tick.C:
			if time.Now().After(over) && o.job.Counts().Running == 0 { // a worker that begins now is too late
				over = over.Add(time.Hour)
				removing.Go(func() { _ = o.remove() }) // as above
			}
		}
	}
}

func (o *offlineRun) remove() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.Leave), time.Minute)
	defer cancel()
	return o.job.Remove(ctx)
}

// changed shows which workers will bring nothing.
func (o *offlineRun) changed(c batch.Change) {
	before := o.changes[c.Worker]
	o.changes[c.Worker] = c
	if before.State == c.State || c.State != batch.Held && c.State != batch.Failed {
		return
	}
	reason := say.Plain(c.Reason)
	o.failures = append(o.failures, fmt.Errorf("part %d, job %s: %s", c.Worker+1, c.JobID, reason))
	o.Console.Say("weir: part %d, job %s, %s: %s\n", c.Worker+1, c.JobID,
		map[batch.State]string{batch.Held: "is held", batch.Failed: "failed"}[c.State], reason)
}

// merge makes a run of the parts that were brought.
func (o *offlineRun) merge() error {
	var brought []string
	out := filepath.Join(o.parts, "out")
	for i := range o.Plan.On.Workers {
		name := filepath.Join(out, strconv.Itoa(i), partFile)
		if _, err := os.Stat(name); err == nil {
			brought = append(brought, name)
		}
	}
	if len(brought) > 0 {
		_, done := o.Console.Working("merging")
		defer done()
		return Merge(o.Dir, brought, o.Version)
	}
	all := []error{fmt.Errorf("none of %s has brought anything", say.Plural(o.Plan.On.Workers, "worker"))}
	all = append(all, o.failures[:min(len(o.failures), 5)]...)
	for _, text := range o.job.Counts().Away[:min(len(o.job.Counts().Away), 5)] {
		all = append(all, errors.New(text))
	}
	for i := range o.Plan.On.Workers {
		if b, err := os.ReadFile(filepath.Join(out, strconv.Itoa(i), "stderr")); err == nil && len(b) > 0 {
			all = append(all, fmt.Errorf("worker %d said: %s", i+1, batch.Words(string(b), nil)))
			break
		}
	}
	return errors.Join(all...)
}

// Part carries out a worker's part of the plan in file, on the machine of the
// worker, and packs its run directory to be brought back. Of c, View and Version
// are used.
func Part(c Config, file string) error {
	whole, err := scenario.ReadPlan(file)
	if err != nil {
		return usage(err)
	}
	n, err := strconv.Atoi(os.Getenv("WEIR_WORKER"))
	if err != nil {
		return usage(errors.New("WEIR_WORKER does not say which worker this is"))
	}
	if c.Plan, err = whole.Apart(n+1, whole.On.Workers); err != nil {
		return usage(err)
	}
	c.Dir = partDir
	err = Run(c)
	if _, made := os.Stat(filepath.Join(partDir, planFile)); made != nil {
		return err // nothing was measured
	}
	return errors.Join(err, merge.Pack(partDir, partFile))
}

// Merge makes the run directory dir of runs that were recorded apart: run
// directories, or packed ones. version is that of this program.
func Merge(dir string, runs []string, version string) (err error) {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil { // two of each run
		return err
	}
	temp, err := os.MkdirTemp("", "weir-merge-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	var dirs []string
	for i, name := range runs {
		if strings.HasSuffix(name, merge.Ending) {
			to := filepath.Join(temp, fmt.Sprint(i+1)+"-"+filepath.Base(filepath.Dir(name))+"-"+filepath.Base(name))
			if err := merge.Unpack(name, to); err != nil {
				return err
			}
			name = to
		}
		dirs = append(dirs, name)
	}
	a, err := About(version, false)
	if err != nil {
		return err
	}
	if err = merge.Runs(dir, dirs, a); err != nil {
		for i, name := range runs { // by the names that the caller knows
			err = errors.New(strings.ReplaceAll(err.Error(), dirs[i], name))
		}
	}
	return err
}

// FindRuns returns the runs that args name: run directories, packed ones, or folders with
// such runs.
func FindRuns(args []string) (all []string, err error) {
	isPart := func(name string) bool { return strings.HasSuffix(name, merge.Ending) || results.IsRun(name) }
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, err
		case isPart(arg):
			all = append(all, arg)
			continue
		case !info.IsDir():
			return nil, usage(fmt.Errorf("%s is neither a run directory nor a packed one (%s)", arg, merge.Ending))
		}
		n := len(all)
		for _, below := range []string{"*", "*/*"} {
			pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(arg)
			found, err := filepath.Glob(filepath.Join(pattern, below))
			if err != nil {
				return nil, err
			}
			slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // 2 before 10
			all = append(all, slices.DeleteFunc(found, func(name string) bool { return !isPart(name) })...)
		}
		if len(all) == n {
			return nil, fmt.Errorf("%s: it has no run directory and no packed run", arg)
		}
	}
	return all, nil
}
