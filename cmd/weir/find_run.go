package main

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
	"weir/scenario"
	"weir/search"
)

// A finder is the pilot of a search: after each step it reads the run directory,
// waits until the servers are as calm as before, and asks package search for
// the next one.
type finder struct {
	limits scenario.Find
	spent  time.Duration // by parts of the search before this one
	dir    string
	out    *results.Writer
	live   *live
	finish context.Context
	*watcher

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

// runFind searches as plan says.
func runFind(in interrupts, plan *scenario.Plan, f findFlags, s streams) error {
	dir := outDir(f.out, plan.Name, time.Now())
	f.page.show(dir)
	r := newSession(in, plan, f.runFlags, s)
	r.find = newFinder(plan.Find, dir)
	return r.run(dir, func() error { return r.found(dir) })
}

// resumeFind goes on with a search.
func resumeFind(in interrupts, f findFlags, changed func(string) bool, s streams) error {
	dir := f.resume
	return resumeSession(in, dir, f.runFlags, s, func(r *session) error {
		if r.plan.Find == nil {
			return exit{exitUsage, fmt.Errorf("%s: this was no search: go on with weir run --resume", dir)}
		}
		if r.plan.Work.Keep {
			return exit{exitUsage, errKept}
		}
		if err := f.limits(r.plan, changed); err != nil {
			return err
		}
		p := r.resumed.progress
		r.find = newFinder(r.plan.Find, dir)
		r.find.spent, r.find.number, r.find.first = p.Spent, p.Last, p.Last
		d, err := r.find.decide(r.resumed.run)
		if err != nil {
			return err
		}
		if d.End != "" {
			return exit{exitUsage, fmt.Errorf("%s: the search is over: %s (--time, --within or --max can make it go on)", dir, d.Why)}
		}
		return r.run(dir, func() error { return r.found(dir) })
	})
}

func newFinder(l *scenario.Find, dir string) *finder {
	return &finder{limits: *l, dir: dir, watcher: newWatcher(), around: time.Duration(l.Ramp + l.Settle + l.Cool)}
}

// pilot makes the finder ready to steer r.
func (f *finder) pilot(r *session) engine.Pilot {
	f.out, f.live, f.finish, f.begin = r.out, r.live, r.in.finish, time.Now()
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

// Next implements engine.Pilot.
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
	f.live.knows(d.Optimum)
	text := d.Why
	if d.End == "" {
		text = fmt.Sprintf("next %d clients, held for %v: %s", d.Clients, unit.Duration(d.Hold), d.Why)
	}
	e := measure.Event{Time: time.Now().UTC(), Kind: "search", Step: f.number, Text: text}
	f.live.streams(e)
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
	steps, err := stepsOf(run, func(n int) bool { return n > f.first && n <= f.ended })
	if err != nil {
		return search.Decision{}, err
	}
	l := search.Limits{
		Min: f.limits.Min, Max: f.limits.Max, Within: float64(f.limits.Within),
		Hold: time.Duration(f.limits.Hold), Longest: time.Duration(f.limits.Longest), Around: f.around,
	}
	return l.Next(steps, f.left()), nil
}

// found says what the search has found, also one that was interrupted. What the
// optimum is, the findings say.
func (r *session) found(dir string) error {
	found, err := analyze(dir, r.streams)
	if err != nil {
		return err
	}
	return show(dir, found, r.flags.json, r.streams, "search         "+r.find.ending())
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
