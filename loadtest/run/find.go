package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/run/search"
	"weir/loadtest/scenario"
	"weir/storage/all"
)

// Defaults and limits of the steps of a search.
const (
	SearchDuration  = 8 * time.Second // measurement time
	DefaultCooldown = 2 * time.Second // cool-down
	minCooldown     = 500 * time.Millisecond
	longestDuration = 6  // times the measurement time
	longestCooldown = 15 // times the cool-down
	searchClients   = 10_000
)

// SearchTimes returns the settings of a search's steps with the given measurement time,
// for targets without a scenario.
func SearchTimes(hold time.Duration) []string {
	text := func(key string, d time.Duration) string {
		return fmt.Sprintf("load.%s=%v", key, unit.Duration(d.Round(time.Millisecond)))
	}
	return []string{
		text("ramp", hold/8), text("warmup", hold/4), text("duration", hold), text("cooldown", max(hold/4, minCooldown)),
		text("graceful_stop", 10*time.Second),
	}
}

// SearchLimits are limits of a search. Limits that are 0 stay as they are.
type SearchLimits struct {
	Time     unit.Duration
	Within   unit.Fraction
	Min, Max int
}

// PlanSearch returns the plan of a search.
func PlanSearch(sc *scenario.Scenario, limits SearchLimits) (*scenario.Plan, error) {
	l := sc.Load
	if len(l.Rate) > 0 {
		return nil, usage(errors.New("load.rate: a search varies the number of clients (load.clients): open load has none to find"))
	}
	if l.Jobs > 0 {
		return nil, usage(errors.New("load.jobs: a search measures each load for load.duration: leave jobs out, " +
			"and clients do one job after the other"))
	}
	plan, err := sc.Plan(all.Drivers())
	if err != nil {
		return nil, usage(err)
	}
	cool := l.Cooldown
	if cool == 0 {
		cool = unit.Duration(DefaultCooldown)
	}
	plan.Steps = []scenario.Step{}
	plan.Find = &scenario.Find{
		Min: limits.Min, Ramp: l.Ramp, Warmup: l.Warmup, Duration: l.Duration, Longest: longestDuration * l.Duration, Cooldown: cool,
		Calm: longestCooldown * cool,
	}
	return plan, limits.Apply(plan)
}

// Apply changes the limits of plan and compares them with the largest number of clients on this
// machine.
func (l SearchLimits) Apply(plan *scenario.Plan) error {
	f := plan.Find
	most, why := MostClients(plan)
	if l.Time != 0 {
		f.Time = l.Time
	}
	if l.Within != 0 {
		f.Within = l.Within
	}
	switch {
	case l.Max > most:
		return usage(fmt.Errorf("--max %d: this machine can run %d clients of this target: %s", l.Max, most, why))
	case l.Max > 0:
		f.Max = l.Max
	case f.Max == 0:
		f.Max = max(min(searchClients, most), f.Min)
	}
	return usage(f.Check())
}

// A finder is the step source of a search: after each step it reads the run directory, waits until
// the servers are as idle as before, and calls package search for the next step.
type finder struct {
	limits scenario.Find
	spent  time.Duration // by parts of the search before this part
	dir    string
	out    *results.Writer
	view   View
	finish context.Context
	*quiescence

	begin  time.Time // of this part
	number int       // of the last step
	first  int       // the number before this part's first step
	ended  int       // the last step whose measurement is over
	hold   time.Duration
	asked  time.Time     // when the last step was chosen
	around time.Duration // most time that a step took besides its measurement

	mu  sync.Mutex
	end *search.Decision // nil: the search is not over
}

// ResumeSearch continues the search in c.Dir. limit changes its limits first; target is the same as
// for Resume.
func ResumeSearch(c Config, target string, limit func(*scenario.Plan) error) error {
	return resume(c, target, func(r *session) error {
		if r.Plan.Find == nil {
			return usage(fmt.Errorf("%s is not a search: continue it with weir run --resume", c.Dir))
		}
		if r.Plan.Work.Keep {
			return usage(errKept)
		}
		if err := limit(r.Plan); err != nil {
			return err
		}
		p := r.resumed.progress
		r.find = newFinder(r.Plan.Find, c.Dir)
		r.find.spent, r.find.number, r.find.first = p.Spent, p.Last, p.Last
		d, err := r.find.decide(r.resumed.run)
		if err != nil {
			return err
		}
		if d.End != "" {
			return usage(fmt.Errorf("%s: the search is over: %s (--time, --within or --max can continue it)", c.Dir, d.Why.Text))
		}
		return r.run()
	})
}

func newFinder(l *scenario.Find, dir string) *finder {
	return &finder{limits: *l, dir: dir, quiescence: newQuiescence(), around: time.Duration(l.Ramp + l.Warmup + l.Cooldown)}
}

// steps returns the steps of the search in r.
func (f *finder) steps(r *session) engine.StepSource {
	f.out, f.view, f.finish, f.begin = r.out, r.view, r.Finish, time.Now()
	return f
}

// left returns the remaining time of the search.
func (f *finder) left() time.Duration {
	left := time.Duration(f.limits.Time) - f.spent
	if !f.begin.IsZero() {
		left -= time.Since(f.begin)
	}
	return left
}

// Next implements engine.StepSource.
func (f *finder) Next(ctx context.Context) (none scenario.Step, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.finish, cancel)()
	if f.asked.IsZero() {
		f.learn(ctx, min(learnFor, f.left()/20))
	} else {
		f.ended = f.number
		f.wait(ctx, min(time.Duration(f.limits.Calm-f.limits.Cooldown), f.left()))
		f.around = max(f.around, time.Since(f.asked)-f.hold)
	}
	if ctx.Err() != nil {
		return none, io.EOF // interrupted: the steps so far are the result
	}
	run, err := results.Open(f.dir)
	if err != nil {
		return none, err
	}
	d, err := f.decide(run)
	if err != nil {
		return none, err
	}
	text := d.Why.Text
	if d.End == "" {
		text = fmt.Sprintf("next %d clients, held for %v: %s", d.Clients, unit.Duration(d.Duration), d.Why.Text)
	}
	e := measure.Event{Time: time.Now().UTC(), Kind: measure.EventSearch, Step: f.number, Text: text, Reason: d.Why.Code}
	f.view.Search(e, d.Optimum)
	if err := f.out.Event(e); err != nil {
		return none, err
	}
	if d.End != "" {
		f.mu.Lock()
		f.end = &d
		f.mu.Unlock()
		return none, io.EOF
	}
	f.number++
	f.asked, f.hold = time.Now(), d.Duration
	l := &f.limits
	return scenario.Step{Number: f.number, Clients: d.Clients, Ramp: l.Ramp, Warmup: l.Warmup, Duration: unit.Duration(d.Duration),
		Cooldown: l.Cooldown}, nil
}

// decide returns the decision that follows the steps of run.
func (f *finder) decide(run *results.Run) (search.Decision, error) {
	steps, err := search.StepsOf(run, func(n int) bool { return n > f.first && n <= f.ended })
	if err != nil {
		return search.Decision{}, err
	}
	l := search.Limits{
		Min: f.limits.Min, Max: f.limits.Max, Within: float64(f.limits.Within),
		Duration: time.Duration(f.limits.Duration), Longest: time.Duration(f.limits.Longest), Around: f.around,
	}
	return l.Next(steps, f.left()), nil
}

// ending returns the reason for the end of the search.
func (f *finder) ending() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		return "it was interrupted"
	}
	return f.end.Why.Text
}
