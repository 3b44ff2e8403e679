package run

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
	"weir/run/campaign"
	"weir/scenario"
)

// ResumeCampaign does the runs of the campaign in c.Dir that are missing, failed
// or not complete. target is that of the runs where their plans lack its
// secrets, or "".
func ResumeCampaign(c CampaignConfig, target string) (err error) {
	planned, err := campaign.Read(c.Dir)
	if err != nil {
		return err
	}
	unlock, err := lockFolder(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	r := &campaigner{CampaignConfig: c, Campaign: planned, plans: map[string]*scenario.Plan{}, done: map[int]bool{}}
	for _, v := range r.Variants() {
		if !filepath.IsLocal(v) || filepath.Base(v) != v {
			return fmt.Errorf("%s: variant %q is no name of a file", filepath.Join(r.Dir, campaign.File), v)
		}
		plan, err := scenario.ReadPlan(filepath.Join(r.Dir, plansDir, v+".json"))
		if err != nil {
			return err
		}
		if r.plans[v], err = withSecrets(plan, target); err != nil {
			return usage(fmt.Errorf("--resume %s: variant %s: %w", r.Dir, v, err))
		}
	}
	for i := range r.Runs {
		if err := r.look(&r.Runs[i], target); err != nil {
			return err
		}
	}
	return r.run()
}

// look finds out whether a run is done, and makes room for one that is not.
func (r *campaigner) look(run *campaign.Run, target string) error {
	dir := filepath.Join(r.Dir, run.Dir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ended, err := complete(dir)
	if errors.Is(err, fs.ErrNotExist) { // it never began
		return r.setAside(dir)
	}
	if err != nil {
		return err
	}
	if err := r.tidy(dir, target, r.plans[run.Variant]); err != nil {
		r.Console.Warn("weir: %s: %s (weir clean tries again)\n", dir, r.Console.line(err))
	}
	if !ended || run.Error != "" {
		return r.setAside(dir)
	}
	r.done[run.Number] = true
	result, err := Analyze(dir, r.Console) // it may have been killed before it did
	if err == nil {
		r.Judge(run.Number, result, true)
	}
	return err
}

// complete reports whether the run in dir went on until its steps, or a stop of
// its plan, ended it.
func complete(dir string) (bool, error) {
	run, err := results.Open(dir)
	if err != nil {
		return false, err
	}
	end, err := run.Ending()
	return end != nil && !end.Outcome.Worse(measure.StoppedByRule), err
}

// tidy removes what a run has left on its target, as it would have done itself
// at its end. The built-in server and what was in it no longer exist.
func (r *campaigner) tidy(dir, target string, plan *scenario.Plan) (err error) {
	if plan.Target == scenario.BuiltIn || Keeps(plan) {
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
	ctx, cancel := context.WithTimeout(r.cleaning(), sweepTimeout)
	defer cancel()
	one, err := Clean(ctx, dir, target, r.Console)
	return errors.Join(err, one.WriteText(r.Console.Stderr))
}

// setAside renames the folder of an incomplete run, so that nothing that was
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
	r.Console.Say("%s is not finished: it is kept as %s\n", dir, to)
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
