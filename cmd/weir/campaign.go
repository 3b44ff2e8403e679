package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/analysis"
	"weir/internal/pause"
	"weir/results"
	"weir/results/campaign"
	"weir/scenario"
	"weir/storage/all"
)

// plansDir is the folder of a campaign with the plan of each variant.
const plansDir = "plans"

// rest is the pause between two runs, so that a service closes what it had
// open. Services in memory need none.
const rest = time.Second

// mostInARow is how many runs may fail one after the other.
const mostInARow = 3

// A campaigner carries out the runs of a campaign.
type campaigner struct {
	streams
	in    interrupts
	flags runFlags
	dir   string
	*campaign.Campaign
	plans  map[string]*scenario.Plan // by variant
	done   map[int]bool              // by number: whole already
	worst  int                       // exit code
	failed int                       // runs, in a row
	begun  time.Time
	ran    int           // runs of this session that were measured
	extra  time.Duration // what they took beyond their plans: files, rests, analysis
}

func newCampaigner(in interrupts, dir string, c *campaign.Campaign, plans map[string]*scenario.Plan, f runFlags, s streams) *campaigner {
	return &campaigner{streams: s, in: in, flags: f, dir: dir, Campaign: c, plans: plans, done: map[int]bool{}}
}

// isCampaign says whether scenarios ask for more than one run.
func isCampaign(scenarios []*scenario.Scenario) bool {
	sc := scenarios[0]
	return len(scenarios) > 1 || sc.Repeat*sc.Matrix.Variants() > 1 || len(sc.Matrix) > 0
}

// planCampaign plans all runs of the scenarios.
func planCampaign(scenarios []*scenario.Scenario) (*campaign.Planned, map[string]*scenario.Plan, error) {
	p, err := campaign.Plan(scenarios)
	if err != nil {
		return nil, nil, exit{exitUsage, err}
	}
	plans := map[string]*scenario.Plan{}
	for _, v := range p.Variants() {
		plan, err := p.Scenarios[v].Plan(all.Drivers())
		if err != nil {
			return nil, nil, exit{exitUsage, err}
		}
		if err := plan.Anywhere(); err != nil { // it may be resumed from another folder
			return nil, nil, err
		}
		plans[v] = plan
	}
	return p, plans, nil
}

// runCampaign carries out all runs of the scenarios, in a folder of its own.
func runCampaign(in interrupts, scenarios []*scenario.Scenario, f runFlags, s streams) (err error) {
	p, plans, err := planCampaign(scenarios)
	if err != nil {
		return err
	}
	r := newCampaigner(in, outDir(f.out, p.Name, time.Now()), &p.Campaign, plans, f, s)
	if err := r.create(); err != nil {
		return err
	}
	unlock, err := lockFolder(r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for variant, plan := range plans {
		if err := results.WriteFile(filepath.Join(r.dir, plansDir), variant+".json", plan.WriteJSON); err != nil {
			return err
		}
	}
	if err := campaign.Write(r.dir, r.Campaign); err != nil {
		return err
	}
	linkLatest(r.dir)
	f.page.show(r.dir)
	return r.run()
}

// create makes the campaign's folder, which must be new or empty.
func (r *campaigner) create() error {
	if campaign.Is(r.dir) {
		return fmt.Errorf("%s holds a campaign already: weir run --resume %s goes on with it; or name another folder: %w", r.dir, r.dir, fs.ErrExist)
	}
	entries, err := os.ReadDir(r.dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty (it has %q): name an empty or new folder: %w", r.dir, entries[0].Name(), fs.ErrExist)
	}
	return os.MkdirAll(filepath.Join(r.dir, plansDir), 0o755)
}

// run does all runs that are not done yet, and compares them.
func (r *campaigner) run() error {
	r.begin()
	r.begun = time.Now()
	ran := 0
	for i := range r.Runs {
		run := &r.Runs[i]
		if r.done[run.Number] {
			continue
		}
		if ran > 0 && !strings.HasPrefix(r.plans[run.Variant].Target, "simulated:") {
			pause.For(r.in.finish, rest)
		}
		if r.in.finish.Err() != nil {
			break
		}
		if err := r.one(run); err != nil {
			return err
		}
		ran++
	}
	return r.conclude()
}

// one does one run. Its error ends the campaign.
func (r *campaigner) one(run *campaign.Run) error {
	r.say("run %d of %d: %s\n", run.Number, len(r.Runs), r.about(run))
	plan := *r.plans[run.Variant]
	plan.Seed = campaign.SeedOf(r.Seed, run.Block)
	dir := filepath.Join(r.dir, run.Dir)
	one := newSession(r.in, &plan, r.flags, r.streams)
	one.of = r.around(run)
	err := one.run(dir, func() error { return r.judge(run, dir) })
	var code exit
	switch {
	case err == nil || errors.As(err, &code) && code.err == nil:
		r.ran++
		r.extra += time.Since(r.begun) - one.of.spent - plan.Time()
		return r.measured(run, dir)
	case r.in.finish.Err() != nil: // it was asked for
		r.say("run %d of %d: %s\n", run.Number, len(r.Runs), line(err.Error()))
		return nil
	}
	r.failed++
	r.worse(exitError)
	run.Error = line(err.Error())
	told := fmt.Errorf("run %d of %d (%s) failed: %w", run.Number, len(r.Runs), r.about(run), err)
	err = campaign.Write(r.dir, r.Campaign)
	switch {
	case len(r.done) == 0 && r.failed == 1:
		return errors.Join(told, err)
	case r.failed == mostInARow:
		return errors.Join(fmt.Errorf("%d runs in a row failed; weir run --resume %s tries them again; the last: %w", r.failed, r.dir, told), err)
	}
	r.say("weir: %s\n", line(told.Error()))
	return err
}

// around is what comes before and after a run: the time of what comes is that
// of the plans, and what runs took beyond theirs so far.
func (r *campaigner) around(run *campaign.Run) series {
	of := series{run: run.Number, runs: len(r.Runs), spent: time.Since(r.begun)}
	more := rest
	if r.ran > 0 {
		more = max(r.extra/time.Duration(r.ran), 0)
	}
	for i := range r.Runs {
		if next := &r.Runs[i]; next.Number > run.Number && !r.done[next.Number] {
			of.ahead += r.plans[next.Variant].Time() + more
		}
	}
	return of
}

// measured notes that a run was measured, to its end or until an interrupt.
func (r *campaigner) measured(run *campaign.Run, dir string) (err error) {
	r.failed = 0
	if r.done[run.Number], err = whole(dir); err != nil || run.Error == "" {
		return err
	}
	run.Error = ""
	return campaign.Write(r.dir, r.Campaign)
}

// judge analyses the run in dir and says in a line what it showed.
func (r *campaigner) judge(run *campaign.Run, dir string) error {
	found, err := analyze(dir, r.streams)
	if err != nil {
		return err
	}
	if !r.quiet {
		tell(r.err, "", "run %d of %d: %s: %s", run.Number, len(r.Runs), found.Validity.Status, found.Headline)
		r.say("\n")
	}
	r.stream.tell(streamed{Event: "findings", Run: dir, Findings: found})
	return r.weigh(found)
}

// weigh keeps the worst that a run says of itself.
func (r *campaigner) weigh(found *analysis.Findings) error {
	err := validity(found)
	var code exit
	if errors.As(err, &code) {
		r.worse(code.code)
	}
	return err
}

// worse keeps the worst exit code: an error before an invalid result before
// a threshold that was not met.
func (r *campaigner) worse(code int) {
	rank := map[int]int{exitMissed: 1, exitInvalid: 2, exitError: 3}
	if rank[code] > rank[r.worst] {
		r.worst = code
	}
}

// conclude tells what is done and what is not, and compares.
func (r *campaigner) conclude() error {
	if left := r.left(); left > 0 {
		r.tell("weir: %d of %d runs are not done; weir run --resume %s goes on with them\n", left, len(r.Runs), r.dir)
	}
	if err := r.compare(); err != nil {
		return err
	}
	if r.worst != exitFine {
		return exit{code: r.worst}
	}
	return nil
}

func (r *campaigner) left() int {
	n := 0
	for _, run := range r.Runs {
		if !r.done[run.Number] {
			n++
		}
	}
	return n
}
