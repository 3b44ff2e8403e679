package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/lock"
	"weir/internal/pause"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/storage/all"
)

const (
	plansDir    = "plans"     // folder of a campaign with the plan of each variant
	pauseAfter  = time.Second // between runs: a service closes its files; 0 for services in memory
	maxFailures = 3           // of runs in a row
)

// A CampaignConfig configures the runs of a campaign.
type CampaignConfig struct {
	Config // of each run, without Plan, Series and Report; Dir is the campaign's folder
	// Judge shows the result of a run. It is also called for runs of a resumed
	// campaign that are complete already, with again set.
	Judge func(number int, result Result, again bool)
	// Conclude shows the results of all runs. failed is true if a run has failed.
	Conclude func(c *campaign.Campaign, left int, failed bool) error
}

// Plans has the plan of each variant of a campaign.
type Plans map[string]*scenario.Plan

// PlanCampaign plans all runs of the scenarios.
func PlanCampaign(scenarios []*scenario.Scenario) (*campaign.Planned, Plans, error) {
	p, err := campaign.Plan(scenarios)
	if err != nil {
		return nil, nil, usage(err)
	}
	plans := Plans{}
	for _, v := range p.Variants() {
		if plans[v], err = p.Scenarios[v].Plan(all.Drivers()); err != nil {
			return nil, nil, usage(err)
		}
		if err := plans[v].Anywhere(); err != nil { // it may be resumed from another folder
			return nil, nil, err
		}
	}
	return p, plans, nil
}

// A campaigner does the runs of a campaign.
type campaigner struct {
	CampaignConfig
	*campaign.Campaign
	plans    Plans
	done     map[int]bool // by number: complete already
	failed   bool         // any run
	inARow   int          // runs that failed
	begun    time.Time
	measured int           // runs of this session
	extra    time.Duration // time of these runs beyond their plans: files, pauses, analysis
}

// Campaign does all runs of the campaign p in a new folder.
func Campaign(c CampaignConfig, p *campaign.Campaign, plans Plans) error {
	r := &campaigner{CampaignConfig: c, Campaign: p, plans: plans, done: map[int]bool{}}
	if campaign.Is(r.Dir) {
		return fmt.Errorf("%s holds a campaign already: weir run --resume %s continues it; or name another folder: %w", r.Dir, r.Dir, fs.ErrExist)
	}
	entries, err := os.ReadDir(r.Dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty (it has %q): name an empty or new folder: %w", r.Dir, entries[0].Name(), fs.ErrExist)
	}
	made := results.Missing(filepath.Clean(r.Dir))
	if err := os.MkdirAll(filepath.Join(r.Dir, plansDir), 0o755); err != nil {
		return err
	}
	return locked(r.Dir, func() error {
		for variant, plan := range plans {
			if err := results.WriteFile(filepath.Join(r.Dir, plansDir), variant+".json", plan.WriteJSON); err != nil {
				return err
			}
		}
		if err := campaign.Write(r.Dir, r.Campaign); err != nil {
			return err
		}
		err := r.run()
		if err != nil && !r.anyRun() {
			err = errors.Join(err, r.discard(made))
		}
		return err
	})
}

// anyRun reports whether a run has left a folder.
func (r *campaigner) anyRun() bool {
	return slices.ContainsFunc(r.Runs, func(run campaign.Run) bool {
		_, err := os.Lstat(filepath.Join(r.Dir, run.Dir))
		return err == nil
	})
}

// discard removes the folder of a campaign without runs, and its parents up to top, which the
// campaign made, if they are empty.
func (r *campaigner) discard(top string) error {
	err := os.Remove(filepath.Join(r.Dir, campaign.File))
	for variant := range r.plans {
		err = errors.Join(err, os.Remove(filepath.Join(r.Dir, plansDir, variant+".json")))
	}
	err = errors.Join(err, os.Remove(filepath.Join(r.Dir, plansDir)))
	results.RemoveEmpty(filepath.Clean(r.Dir), top)
	return err
}

// ResumeCampaign does the runs of the campaign in c.Dir that are missing, failed or incomplete.
// target is the target of the runs if their plans lack its secrets, or "".
func ResumeCampaign(c CampaignConfig, target string) error {
	planned, err := campaign.Read(c.Dir)
	if err != nil {
		return err
	}
	r := &campaigner{CampaignConfig: c, Campaign: planned, plans: Plans{}, done: map[int]bool{}}
	return locked(r.Dir, func() error {
		for _, v := range r.Variants() {
			if !filepath.IsLocal(v) || filepath.Base(v) != v {
				return fmt.Errorf("%s: variant %q is not a file name", filepath.Join(r.Dir, campaign.File), v)
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
			if err := r.recover(&r.Runs[i], target); err != nil {
				return err
			}
		}
		return r.run()
	})
}

// locked calls do while no other process can work on the campaign in dir. The kernel releases the
// lock when the process ends. Without support for such locks in the file system there is no lock.
func locked(dir string, do func() error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if errors.Is(lock.Alone(f), lock.ErrTaken) {
		return errors.Join(fmt.Errorf("%s: another weir works on this campaign at this moment", dir), f.Close())
	}
	return errors.Join(do(), lock.Close(f))
}

// run does all runs that are not done yet, and concludes.
func (r *campaigner) run() error {
	r.Console.Say("%s, seed %d\nmeasuring into %s\n", campaignText(r.Campaign, r.plans, r.left()), r.Seed, r.Dir)
	if n := len(r.Runs) - r.left(); n > 0 {
		r.Console.Say("%d of %d runs are done already\n", n, len(r.Runs))
	}
	r.Console.Say("\n")
	r.begun = time.Now()
	began := false
	for i := range r.Runs {
		run := &r.Runs[i]
		if r.done[run.Number] {
			continue
		}
		if began && !strings.HasPrefix(r.plans[run.Variant].Target, "simulated:") {
			pause.For(r.Finish, pauseAfter)
		}
		if r.Finish.Err() != nil {
			break
		}
		if err := r.one(run); err != nil {
			return err
		}
		began = true
	}
	left := r.left()
	if left > 0 {
		r.Console.Warn("weir: %d of %d runs are not done; weir run --resume %s continues with them\n", left, len(r.Runs), r.Dir)
	}
	return r.Conclude(r.Campaign, left, r.failed)
}

// one does one run. Its error ends the campaign.
func (r *campaigner) one(run *campaign.Run) error {
	r.Console.Say("run %d of %d: %s\n", run.Number, len(r.Runs), r.about(run))
	plan := *r.plans[run.Variant]
	plan.Seed = campaign.SeedOf(r.Seed, run.Block)
	c := r.Config
	c.Plan, c.Dir, c.Series = &plan, filepath.Join(r.Dir, run.Dir), r.series(run)
	c.Report = func(result Result) error {
		r.Judge(run.Number, result, false)
		return nil
	}
	err := Run(c)
	if err == nil {
		r.measured++
		r.extra += time.Since(r.begun) - c.Series.Spent - plan.Time()
		r.inARow = 0
		if r.done[run.Number], err = complete(c.Dir); err != nil || run.Error == "" {
			return err
		}
		run.Error = ""
		return campaign.Write(r.Dir, r.Campaign)
	}
	if r.Finish.Err() != nil { // as requested
		r.Console.Say("run %d of %d: %s\n", run.Number, len(r.Runs), r.Console.line(err))
		return nil
	}
	r.inARow++
	r.failed = true
	run.Error = r.Console.line(err)
	failure := fmt.Errorf("run %d of %d (%s) failed: %w", run.Number, len(r.Runs), r.about(run), err)
	err = campaign.Write(r.Dir, r.Campaign)
	switch {
	case len(r.done) == 0 && r.inARow == 1:
		return errors.Join(failure, err)
	case r.inARow == maxFailures:
		return errors.Join(fmt.Errorf("%d runs in a row failed; weir run --resume %s repeats them; the last: %w", r.inARow, r.Dir, failure), err)
	}
	r.Console.Say("weir: %s\n", r.Console.line(failure))
	return err
}

// series returns the times before and after a run: the times of the plans, and for each run the
// mean of the time that the runs so far took beyond their plans.
func (r *campaigner) series(run *campaign.Run) Series {
	of := Series{Dir: r.Dir, Number: run.Number, All: len(r.Runs), Spent: time.Since(r.begun)}
	more := pauseAfter
	if r.measured > 0 {
		more = max(r.extra/time.Duration(r.measured), 0)
	}
	for i := range r.Runs {
		if next := &r.Runs[i]; next.Number > run.Number && !r.done[next.Number] {
			of.Ahead += r.plans[next.Variant].Time() + more
		}
	}
	return of
}

// left returns the number of runs that are not done.
func (r *campaigner) left() (n int) {
	for _, run := range r.Runs {
		if !r.done[run.Number] {
			n++
		}
	}
	return n
}

// about describes a run by its levels, or by its repetition if there are no levels.
func (r *campaigner) about(run *campaign.Run) string {
	block := fmt.Sprintf("%d of %d", run.Block, r.Repeat)
	if len(r.Factors) == 0 {
		return "repetition " + block
	}
	var levels []string
	for _, f := range r.Factors {
		levels = append(levels, run.Levels[f.Key])
	}
	return say.Plain(strings.Join(levels, ", ")) + ", block " + block
}

// recover finds out whether a run is done, and sets an incomplete run aside.
func (r *campaigner) recover(run *campaign.Run, target string) error {
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
	result, err := Analyze(dir, r.Console) // it may have been killed before
	if err == nil {
		r.Judge(run.Number, result, true)
	}
	return err
}

// complete reports whether the steps of the run in dir, or a stop rule of its plan,
// ended it.
func complete(dir string) (bool, error) {
	run, err := results.Open(dir)
	if err != nil {
		return false, err
	}
	end, err := run.Ending()
	return end != nil && !end.Outcome.Worse(measure.StoppedByRule), err
}

// tidy removes the files of an interrupted run from its target. The files of the built-in server do
// not exist any more.
func (r *campaigner) tidy(dir, target string, plan *scenario.Plan) error {
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

// setAside renames the folder of an incomplete run, so that its measurements are kept.
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

// campaignText describes a campaign, with the time of the given number of runs.
func campaignText(c *campaign.Campaign, plans Plans, runs int) string {
	var sum time.Duration
	about := "about"
	for _, p := range plans {
		sum += p.Time()
		if p.Jobs() > 0 {
			about = "at most"
		}
	}
	mean := sum / time.Duration(max(len(plans), 1))
	total := (mean*time.Duration(runs) + pauseAfter*time.Duration(max(runs-1, 0))).Round(time.Second)
	return fmt.Sprintf("%s: a campaign of %s, %s each: %s, %s %v",
		c.Name, say.Plural(len(plans), "variant"), say.Plural(c.Repeat, "time"), say.Plural(runs, "run"), about, unit.Duration(total))
}

// Time returns the duration of the runs of a campaign, with the pauses between them.
func (p Plans) Time(of *campaign.Planned) (all time.Duration) {
	for i := range of.Runs {
		all += p[of.Runs[i].Variant].Time() + pauseAfter
	}
	return all
}

// WritePlanned writes the plan of a campaign: its runs with the time at which each begins, and the
// plan of its first variant.
func WritePlanned(w io.Writer, p *campaign.Planned, plans Plans) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d\n\n", campaignText(&p.Campaign, plans, len(p.Runs)), p.Seed)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	cells := []string{"run", "block", "variant"}
	for _, f := range p.Factors {
		cells = append(cells, say.Plain(f.Key))
	}
	_, _ = fmt.Fprintln(t, strings.Join(append(cells, "from", "time"), "\t"))
	var from time.Duration
	for i := range p.Runs {
		r := &p.Runs[i]
		cells := []string{fmt.Sprint(r.Number), fmt.Sprint(r.Block), r.Variant}
		for _, f := range p.Factors {
			cells = append(cells, say.Plain(r.Levels[f.Key]))
		}
		each := plans[r.Variant].Time()
		cells = append(cells, unit.Duration(from.Round(time.Second)).String(), unit.Duration(each).String())
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
		from += each + pauseAfter
	}
	_ = t.Flush() // a Builder takes all
	first := p.Variants()[0]
	fmt.Fprintf(&b, "\nVariant %s", first)
	if len(p.Factors) > 0 {
		b.WriteString(", from which the others differ by their levels")
	}
	if _, err := io.WriteString(w, b.String()+":\n\n"); err != nil {
		return err
	}
	return plans[first].WriteText(w)
}
