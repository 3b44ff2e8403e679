package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/results"
	"weir/run/campaign"
	"weir/scenario"
)

// plansDir is the folder of a campaign with the plan of each variant.
const plansDir = "plans"

// Rest is the pause between two runs, in which a service closes what it had
// open. Services in memory need none.
const Rest = time.Second

// maxFailed is how many runs may fail one after the other.
const maxFailed = 3

// A CampaignConfig says how the runs of a campaign are done.
type CampaignConfig struct {
	Config // of each run, but for Plan, Series and Report; Dir is the campaign's folder
	// Judge shows the result of a run. It is also called for runs of a resumed
	// campaign that are complete already, with again set.
	Judge func(number int, result Result, again bool)
	// Conclude shows the results of all runs. failed says that a run has failed.
	Conclude func(c *campaign.Campaign, left int, failed bool) error
}

// A campaigner does the runs of a campaign.
type campaigner struct {
	CampaignConfig
	*campaign.Campaign
	plans    map[string]*scenario.Plan // by variant
	done     map[int]bool              // by number: complete already
	failed   bool                      // any run
	inARow   int                       // runs that failed
	begun    time.Time
	measured int           // runs of this session
	extra    time.Duration // what they took beyond their plans: files, rests, analysis
}

// Campaign does all runs of the campaign p, in a folder of its own. plans has
// the plan of each variant.
func Campaign(c CampaignConfig, p *campaign.Campaign, plans map[string]*scenario.Plan) (err error) {
	r := &campaigner{CampaignConfig: c, Campaign: p, plans: plans, done: map[int]bool{}}
	if err := r.create(); err != nil {
		return err
	}
	unlock, err := lockFolder(r.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for variant, plan := range plans {
		if err := results.WriteFile(filepath.Join(r.Dir, plansDir), variant+".json", plan.WriteJSON); err != nil {
			return err
		}
	}
	if err := campaign.Write(r.Dir, r.Campaign); err != nil {
		return err
	}
	return r.run()
}

// create makes the campaign's folder, which must be new or empty.
func (r *campaigner) create() error {
	if campaign.Is(r.Dir) {
		return fmt.Errorf("%s holds a campaign already: weir run --resume %s goes on with it; or name another folder: %w", r.Dir, r.Dir, fs.ErrExist)
	}
	entries, err := os.ReadDir(r.Dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty (it has %q): name an empty or new folder: %w", r.Dir, entries[0].Name(), fs.ErrExist)
	}
	return os.MkdirAll(filepath.Join(r.Dir, plansDir), 0o755)
}

// run does all runs that are not done yet, and concludes.
func (r *campaigner) run() error {
	r.Console.Say("%s, seed %d\nmeasuring into %s\n", CampaignText(r.Campaign, r.plans, r.left()), r.Seed, r.Dir)
	if n := len(r.Runs) - r.left(); n > 0 {
		r.Console.Say("%d of %d runs are done already\n", n, len(r.Runs))
	}
	r.Console.Say("\n")
	r.begun = time.Now()
	ran := 0
	for i := range r.Runs {
		run := &r.Runs[i]
		if r.done[run.Number] {
			continue
		}
		if ran > 0 && !strings.HasPrefix(r.plans[run.Variant].Target, "simulated:") {
			pause.For(r.Finish, Rest)
		}
		if r.Finish.Err() != nil {
			break
		}
		if err := r.one(run); err != nil {
			return err
		}
		ran++
	}
	if left := r.left(); left > 0 {
		r.Console.Warn("weir: %d of %d runs are not done; weir run --resume %s goes on with them\n", left, len(r.Runs), r.Dir)
	}
	return r.Conclude(r.Campaign, r.left(), r.failed)
}

// one does one run. Its error ends the campaign.
func (r *campaigner) one(run *campaign.Run) error {
	r.Console.Say("run %d of %d: %s\n", run.Number, len(r.Runs), r.about(run))
	plan := *r.plans[run.Variant]
	plan.Seed = campaign.SeedOf(r.Seed, run.Block)
	c := r.Config
	c.Plan, c.Dir, c.Series = &plan, filepath.Join(r.Dir, run.Dir), r.around(run)
	c.Report = func(result Result) error {
		r.Judge(run.Number, result, false)
		return nil
	}
	err := Run(c)
	if err == nil {
		r.measured++
		r.extra += time.Since(r.begun) - c.Series.Spent - plan.Time()
		return r.note(run, c.Dir)
	}
	if r.Finish.Err() != nil { // it was asked for
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
	case r.inARow == maxFailed:
		return errors.Join(fmt.Errorf("%d runs in a row failed; weir run --resume %s tries them again; the last: %w", r.inARow, r.Dir, failure), err)
	}
	r.Console.Say("weir: %s\n", r.Console.line(failure))
	return err
}

// around returns what comes before and after a run: the time of what comes is
// that of the plans, and what runs took beyond theirs so far.
func (r *campaigner) around(run *campaign.Run) Series {
	of := Series{Dir: r.Dir, Number: run.Number, All: len(r.Runs), Spent: time.Since(r.begun)}
	more := Rest
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

// note writes down that a run was measured, to its end or until an interrupt.
func (r *campaigner) note(run *campaign.Run, dir string) (err error) {
	r.inARow = 0
	if r.done[run.Number], err = complete(dir); err != nil || run.Error == "" {
		return err
	}
	run.Error = ""
	return campaign.Write(r.Dir, r.Campaign)
}

// left returns how many runs are not done.
func (r *campaigner) left() int {
	n := 0
	for _, run := range r.Runs {
		if !r.done[run.Number] {
			n++
		}
	}
	return n
}

// about names a run by its levels, or by its repetition where there are none.
func (r *campaigner) about(run *campaign.Run) string {
	block := fmt.Sprintf("block %d of %d", run.Block, r.Repeat)
	if len(r.Factors) == 0 {
		return strings.Replace(block, "block", "repetition", 1)
	}
	var levels []string
	for _, f := range r.Factors {
		levels = append(levels, run.Levels[f.Key])
	}
	return say.Plain(strings.Join(levels, ", ")) + ", " + block
}

// CampaignText says how many runs a campaign has and how long the next ones, of
// the given number, take.
func CampaignText(c *campaign.Campaign, plans map[string]*scenario.Plan, runs int) string {
	var sum time.Duration
	about := "about"
	for _, p := range plans {
		sum += p.Time()
		if p.Jobs() > 0 {
			about = "at most"
		}
	}
	mean := sum / time.Duration(max(len(plans), 1))
	total := (mean*time.Duration(runs) + Rest*time.Duration(max(runs-1, 0))).Round(time.Second)
	return fmt.Sprintf("%s: a campaign of %s, %s each: %s, %s %v",
		c.Name, say.Plural(len(plans), "variant"), say.Plural(c.Repeat, "time"), say.Plural(runs, "run"), about, unit.Duration(total))
}
