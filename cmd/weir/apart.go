package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/batch"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/results/merge"
	"weir/scenario"
)

// Names of what travels to and from workers that measure for themselves.
const (
	wholeFile = "plan.json"
	partDir   = "run"
	packed    = partDir + merge.Ending
)

// An expedition is a run whose workers cannot reach this machine: each measures
// its part of the plan by its own clock, and brings a run directory back.
type expedition struct {
	streams
	in     interrupts
	plan   *scenario.Plan
	parts  string // folder of what is submitted and brought back
	system batch.System
	job    batch.Job
	told   map[int]batch.Change
	kept   []error // why jobs were held, or failed: what was said last of them is that they were removed
}

// runApart has workers measure apart, and merges into dir what they bring.
func (r *session) runApart(dir string, conclude func() error) (err error) {
	e := &expedition{streams: r.streams, in: r.in, parts: dir + ".parts", told: map[int]batch.Change{}}
	whole := *r.plan
	if !begins(&whole) {
		whole.BeginAt(time.Now().Add(time.Duration(whole.On.Wait)).Truncate(time.Second))
	}
	e.plan = &whole
	if _, err := whole.Apart(1, whole.On.Workers); err != nil {
		return exit{exitUsage, fmt.Errorf("on.apart: %w", err)}
	}
	if e.system, err = systemOf(whole.On); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return exit{exitUsage, fmt.Errorf("%s is there already: name another folder", dir)}
	}
	for _, text := range whole.Doubtful() {
		e.tell("weir: %s\n", text)
	}
	state, err := stateDir("apart-" + strings.ToLower(rand.Text()[:13]))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	if err := e.submit(r.in.finish, state); err != nil {
		return err
	}
	if err := e.wait(); err != nil {
		return err
	}
	if err := e.merge(dir); err != nil {
		return err
	}
	linkLatest(dir)
	return conclude()
}

// submit submits the workers.
func (e *expedition) submit(ctx context.Context, state string) error {
	bags, err := pack(e.plan, state, true)
	if err != nil {
		return err
	}
	self, err := selfCommand()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.parts, 0o755); err != nil {
		return err
	}
	file := filepath.Join(state, wholeFile) // private: the plan has the secrets of its addresses
	text, err := json.Marshal(bags.plan)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return err
	}
	on := e.plan.On
	e.job, err = e.system.Submit(ctx, batch.Work{Name: e.plan.Name, Dir: e.parts, Program: self[0], Args: []string{"part", wholeFile},
		Files: append(bags.files, file), Brings: []string{packed}, Count: on.Workers, Options: on.Submit, Hosts: on.Hosts})
	if err != nil {
		return fmt.Errorf("submit to %s: %w", e.system.Name(), err)
	}
	e.say("%s submitted to %s; they begin at %s by their own clocks and need %v; what they bring is in %s\n", say.Plural(on.Workers, "worker"), e.system.Name(),
		e.plan.Steps[0].Begin.Local().Format(time.TimeOnly), unit.Duration(e.plan.Time()), e.parts)
	return nil
}

// late is for how long workers may bring their parts when the plan's time is up.
const late = time.Minute

// wait follows the workers until all that can bring something have. An
// interrupt has them end early.
func (e *expedition) wait() error {
	defer e.working("workers measure apart").done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.job.Follow(ctx, e.changed) }()
	p := e.plan
	over := p.Steps[0].Begin.Add(p.Time() + time.Duration(p.Drain) + late)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	interrupted := e.in.finish.Done()
	var removing sync.WaitGroup
	defer removing.Wait()
	for {
		select {
		case err := <-ended:
			if err != nil { // what was brought is merged all the same
				e.say("weir: %s: %s\n", e.system.Name(), e.errorLine(err))
				e.kept = append(e.kept, err)
			}
			return e.remove() // what is left of it elsewhere
		case <-interrupted:
			interrupted = nil
			removing.Go(func() { _ = e.remove() }) // the end tells
		case <-look.C:
			if time.Now().After(over) && e.job.Counts().Running == 0 { // whoever begins now is too late
				over = over.Add(time.Hour)
				removing.Go(func() { _ = e.remove() }) // as above
			}
		}
	}
}

func (e *expedition) remove() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.in.leave), time.Minute)
	defer cancel()
	return e.job.Remove(ctx)
}

// changed tells of workers that will bring nothing.
func (e *expedition) changed(c batch.Change) {
	before := e.told[c.Worker]
	e.told[c.Worker] = c
	if before.State == c.State || c.State != batch.Held && c.State != batch.Failed {
		return
	}
	e.kept = append(e.kept, fmt.Errorf("part %d, job %s: %s", c.Worker+1, c.JobID, line(c.Reason)))
	e.say("weir: part %d, job %s, %s: %s\n", c.Worker+1, c.JobID, map[batch.State]string{batch.Held: "is held", batch.Failed: "failed"}[c.State], line(c.Reason))
}

// merge makes a run of the parts that were brought.
func (e *expedition) merge(dir string) error {
	out := filepath.Join(e.parts, "out")
	brought, err := filepath.Glob(filepath.Join(escaped(out), "*", packed))
	if err != nil {
		return err
	}
	if len(brought) == 0 {
		all := []error{fmt.Errorf("none of %s has brought anything", say.Plural(e.plan.On.Workers, "worker"))}
		all = append(all, e.kept[:min(len(e.kept), 5)]...)
		for _, text := range e.job.Counts().Away[:min(len(e.job.Counts().Away), 5)] {
			all = append(all, errors.New(text))
		}
		for i := range e.plan.On.Workers {
			if b, err := os.ReadFile(filepath.Join(out, strconv.Itoa(i), "stderr")); err == nil && len(b) > 0 {
				all = append(all, fmt.Errorf("worker %d said: %s", i+1, batch.Words(string(b), nil)))
				break
			}
		}
		return errors.Join(all...)
	}
	return mergeRuns([]string{out}, dir, e.streams)
}

// partCommand is the life of a worker that measures apart. It is started by weir
// run on another machine.
func partCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use: "part PLAN.json", Short: "One part of a run, measured apart (started by weir run)", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			whole, err := scenario.ReadPlan(args[0])
			if err != nil {
				return exit{exitUsage, err}
			}
			n, err := strconv.Atoi(os.Getenv("WEIR_WORKER"))
			if err != nil {
				return exit{exitUsage, errors.New("WEIR_WORKER does not say which worker this is")}
			}
			plan, err := whole.Apart(n+1, whole.On.Workers)
			if err != nil {
				return exit{exitUsage, err}
			}
			in, release := interruptible(c.Context(), signals.listen(), s.err)
			defer release()
			s.quiet = true
			err = newSession(in, plan, runFlags{}, s).run(partDir, func() error { return nil })
			if _, made := os.Stat(filepath.Join(partDir, wholeFile)); made != nil {
				return err // nothing was measured
			}
			return errors.Join(err, merge.Pack(partDir, packed))
		},
	}
}
