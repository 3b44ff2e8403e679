package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/engine"
	"weir/internal/unit"
	"weir/measure"
	"weir/results"
	"weir/run/search"
	"weir/scenario"
)

// A finder is the pilot of a search: after each step it reads the run directory,
// waits until the servers are as calm as before, and asks package search for
// the next one.
type finder struct {
	limits scenario.Find
	spent  time.Duration // by parts of the search before this one
	dir    string
	out    *results.Writer
	view   View
	finish context.Context
	*quiescence

	begin  time.Time // of this part
	number int       // of the last step
	first  int       // the number before this part's first step
	ended  int       // the last step whose hold is over
	hold   time.Duration
	asked  time.Time     // when the last step was named
	around time.Duration // most that a step took besides its hold

	mu  sync.Mutex
	end *search.Decision // nil: the search is not over
}

// ResumeSearch continues the search in c.Dir. limit changes its limits first;
// target is as for Resume.
func ResumeSearch(c Config, target string, limit func(*scenario.Plan) error) error {
	return resume(c, target, func(r *session) error {
		if r.Plan.Find == nil {
			return usage(fmt.Errorf("%s: this was no search: go on with weir run --resume", c.Dir))
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
			return usage(fmt.Errorf("%s: the search is over: %s (--time, --within or --max can make it go on)", c.Dir, d.Why))
		}
		return r.run()
	})
}

func newFinder(l *scenario.Find, dir string) *finder {
	return &finder{limits: *l, dir: dir, quiescence: newQuiescence(), around: time.Duration(l.Ramp + l.Settle + l.Cool)}
}

// pilot connects the finder with r, whose steps it chooses.
func (f *finder) pilot(r *session) engine.StepSource {
	f.out, f.view, f.finish, f.begin = r.out, r.view, r.Finish, time.Now()
	return f
}

// left is what remains of the search's time.
func (f *finder) left() time.Duration {
	left := time.Duration(f.limits.Time) - f.spent
	if !f.begin.IsZero() {
		left -= time.Since(f.begin)
	}
	return left
}

// Next implements engine.StepSource.
func (f *finder) Next(ctx context.Context) (scenario.Step, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.finish, cancel)()
	if f.asked.IsZero() {
		f.learn(ctx, min(learnFor, f.left()/20))
	} else {
		f.ended = f.number
		f.calm(ctx, min(time.Duration(f.limits.Calm-f.limits.Cool), f.left()))
		f.around = max(f.around, time.Since(f.asked)-f.hold)
	}
	if ctx.Err() != nil {
		return scenario.Step{}, io.EOF // interrupted: what was held is what there is
	}
	run, err := results.Open(f.dir)
	if err != nil {
		return scenario.Step{}, err
	}
	d, err := f.decide(run)
	if err != nil {
		return scenario.Step{}, err
	}
	text := d.Why
	if d.End == "" {
		text = fmt.Sprintf("next %d clients, held for %v: %s", d.Clients, unit.Duration(d.Hold), d.Why)
	}
	e := measure.Event{Time: time.Now().UTC(), Kind: measure.EventSearch, Step: f.number, Text: text}
	f.view.Search(e, d.Optimum)
	if err := f.out.Event(e); err != nil {
		return scenario.Step{}, err
	}
	if d.End != "" {
		f.mu.Lock()
		f.end = &d
		f.mu.Unlock()
		return scenario.Step{}, io.EOF
	}
	f.number++
	f.asked, f.hold = time.Now(), d.Hold
	return scenario.Step{
		Number: f.number, Clients: d.Clients, Ramp: f.limits.Ramp, Settle: f.limits.Settle, Hold: unit.Duration(d.Hold), Cool: f.limits.Cool,
	}, nil
}

// decide asks what comes after the steps that run has.
func (f *finder) decide(run *results.Run) (search.Decision, error) {
	steps, err := search.StepsOf(run, func(n int) bool { return n > f.first && n <= f.ended })
	if err != nil {
		return search.Decision{}, err
	}
	l := search.Limits{
		Min: f.limits.Min, Max: f.limits.Max, Within: float64(f.limits.Within),
		Hold: time.Duration(f.limits.Hold), Longest: time.Duration(f.limits.Longest), Around: f.around,
	}
	return l.Next(steps, f.left()), nil
}

// ending says why the search ended.
func (f *finder) ending() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		return "it was interrupted"
	}
	return f.end.Why
}
