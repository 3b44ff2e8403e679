package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/lock"
	"weir/measure"
	"weir/results"
	"weir/results/campaign"
	"weir/scenario"
)

// resumeCampaign goes on with the campaign in dir: with the runs that are
// missing, failed or not finished.
func resumeCampaign(in interrupts, dir string, f runFlags, s streams) (err error) {
	c, err := campaign.Read(dir)
	if err != nil {
		return err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	r := newCampaigner(in, dir, c, map[string]*scenario.Plan{}, f, s)
	for _, v := range c.Variants() {
		if !filepath.IsLocal(v) || filepath.Base(v) != v {
			return fmt.Errorf("%s: variant %q is no name of a file", filepath.Join(dir, campaign.File), v)
		}
		if r.plans[v], err = scenario.ReadPlan(filepath.Join(dir, plansDir, v+".json")); err != nil {
			return err
		}
	}
	f.page.show(dir)
	for i := range c.Runs {
		if err := r.look(&c.Runs[i]); err != nil {
			return err
		}
	}
	return r.run()
}

// look finds out whether a run is done, and makes room for one that is not.
func (r *campaigner) look(run *campaign.Run) error {
	dir := filepath.Join(r.dir, run.Dir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ended, err := whole(dir)
	if errors.Is(err, fs.ErrNotExist) { // it never began
		return r.setAside(dir)
	}
	if err != nil {
		return err
	}
	if err := r.tidy(dir, r.plans[run.Variant]); err != nil {
		r.tell("weir: %s: %s (weir clean tries again)\n", dir, line(err.Error()))
	}
	if !ended || run.Error != "" {
		return r.setAside(dir)
	}
	r.done[run.Number] = true
	again, err := analyze(dir, r.streams) // it may have been killed before it did
	if err != nil {
		return err
	}
	_ = r.weigh(again) // keeps what counts
	return nil
}

// whole says whether the run in dir went on until its steps, or a stop of its
// plan, ended it.
func whole(dir string) (bool, error) {
	run, err := results.Open(dir)
	if err != nil {
		return false, err
	}
	end, err := run.Ending()
	return end != nil && !end.Outcome.Worse(measure.StoppedByRule), err
}

// tidy removes what a run has left on its target, as it would have done itself
// at its end. The built-in server and what was in it is gone.
func (r *campaigner) tidy(dir string, plan *scenario.Plan) (err error) {
	if plan.Target == scenario.BuiltIn || keep(plan) {
		return nil
	}
	m, err := results.OpenManifest(dir)
	if err != nil {
		return err
	}
	left, err := leftovers(m)
	if err = errors.Join(err, m.Close()); err != nil || len(left) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(r.in.cleaning(), longestSweep)
	defer cancel()
	one, err := cleanRun(ctx, dir, r.streams)
	return errors.Join(err, tellCleaned(r.err, []cleaned{one}, false))
}

// setAside renames the folder of an unfinished run, so that nothing that was
// measured is lost and another run can have its name.
func (r *campaigner) setAside(dir string) error {
	to := dir + ".unfinished"
	for i := 2; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprintf("%s.unfinished-%d", dir, i)
	}
	r.say("%s is not finished: it is kept as %s\n", dir, to)
	return os.Rename(dir, to)
}

// lockFolder makes sure that one process at a time works on the campaign in
// dir: the kernel gives the lock back when that ends, however it ends. Where
// the file system knows no such locks there is none.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if errors.Is(lock.Alone(f), lock.ErrTaken) {
		return nil, errors.Join(fmt.Errorf("%s: another weir works on this campaign at this moment", dir), f.Close())
	}
	return f.Close, nil
}
