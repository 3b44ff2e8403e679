package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/analysis"
	"weir/calibration"
	"weir/engine"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/monitor"
	"weir/results"
	"weir/scenario"
	"weir/storage"
	"weir/workload"
)

// A calibrator takes the steps of both sides in turns.
type calibrator struct {
	streams
	flags  calibrateFlags
	in     interrupts
	dir    string
	sides  [3]*side // weir's own clients, the program's, and weir's again, as slow as the program
	files  []workload.File
	given  calibration.Given
	asks   storage.Reporter // nil: the servers do not tell about themselves
	asked  []string         // the servers
	loaded bool
}

// calibrate is weir calibrate, from the plans to the verdict.
func calibrate(in interrupts, target string, f calibrateFlags, s streams) (err error) {
	own, program, err := f.plans(target)
	if err != nil {
		return err
	}
	if err := room(own); err != nil {
		return err
	}
	defer setEnv(f.environment(own))()
	c := &calibrator{streams: s, flags: f, in: in, dir: outDir(f.out, "calibrate-"+own.Name, time.Now())}
	c.given.Program, c.given.Release = f.client, f.release(in.stop)
	c.say("%s: weir and %s take turns, %d rounds with %s clients, about %v; Ctrl-C finishes early and still compares\nmeasuring into %s\n",
		line(target), f.client, f.rounds, f.clients, spent(own.Steps), c.dir)
	err = c.measure(own, program)
	if !c.loaded {
		return err
	}
	if errors.Is(err, errFinishing) || errors.Is(context.Cause(in.stop), errStopped) {
		err = nil // what was asked for; a note tells it
	}
	return errors.Join(err, c.conclude())
}

// room checks that this process may have as many files open as all clients need.
func room(p *scenario.Plan) error {
	soft, _, err := monitor.RaiseOpenFiles()
	if err != nil {
		return err
	}
	if need := p.MostClients()*filesPerClient("command", 0) + spareFiles; uint64(need) > soft { //nolint:gosec // both small
		return exit{exitUsage, fmt.Errorf("%d clients need %d open files, and this process may have %d: use fewer, or raise the limit (ulimit -n)", p.MostClients(), need, soft)}
	}
	return nil
}

// setEnv sets variables for the programs that are started; the function that
// it returns puts the old ones back.
func setEnv(env map[string]string) func() {
	old := map[string]string{}
	for name, value := range env {
		if was, ok := os.LookupEnv(name); ok {
			old[name] = was
		}
		_ = os.Setenv(name, value) // fails only for names that are none
	}
	return func() {
		for name := range env {
			if was, ok := old[name]; ok {
				_ = os.Setenv(name, was)
			} else {
				_ = os.Unsetenv(name)
			}
		}
	}
}

// measure does all that fills both run directories. What the two made on the
// target is removed, whatever goes wrong.
func (c *calibrator) measure(own, program *scenario.Plan) (err error) {
	ctx := c.in.stop
	again := *own
	for i, x := range []struct {
		name string
		plan *scenario.Plan
	}{{"weir", own}, {c.flags.client, program}, {"weir-slowed", &again}} {
		if c.sides[i], err = newSide(ctx, filepath.Join(c.dir, x.name), x.name, x.plan); err != nil {
			return errors.Join(err, c.close())
		}
	}
	defer func() { err = errors.Join(err, c.clean(), c.close()) }()
	if err := c.prepare(); err != nil {
		if c.in.finish.Err() != nil {
			return fmt.Errorf("%w before the load began: nothing was measured", errFinishing)
		}
		return err
	}
	for _, s := range c.sides {
		if err := s.begin(); err != nil {
			return err
		}
	}
	c.listen(ctx)
	c.look(c.in.finish)
	return c.rounds(ctx)
}

// rounds takes all steps: A B C, then C B A, and so on.
func (c *calibrator) rounds(ctx context.Context) error {
	steps := c.sides[0].plan.Steps
	w := c.working("")
	defer w.done()
	each := len(steps) / c.flags.rounds
	for i, step := range steps {
		order := []int{0, 1, 2}
		if (i/each+i%each)%2 == 1 {
			slices.Reverse(order)
		}
		if _, known := c.slowDown(2, step.Clients); !known {
			order = append(slices.DeleteFunc(order, func(k int) bool { return k == 2 }), 2)
		}
		told := ""
		for n, k := range order {
			w.advance("weir and "+c.flags.client+" take turns, steps held", len(order)*i+n, len(order)*len(steps))
			if c.in.finish.Err() != nil {
				c.given.Interrupted = true
				return errFinishing
			}
			pause, ok := c.slowDown(k, step.Clients)
			if !ok {
				continue // the program is as fast as weir
			}
			c.loaded = true
			if err := c.step(ctx, c.sides[k], step, pause); err != nil {
				return err
			}
			c.sides[k].rates[step.Clients] = c.sides[k].rate()
			told += ", " + c.sides[k].told()
		}
		c.say("round %d of %d, %s%s\n", i/each+1, c.flags.rounds, say.Plural(step.Clients, "client"), told)
	}
	return nil
}

// slowDown returns the pause after each file that makes weir's clients as slow
// as the program was; false if it is not known yet, or if there is none.
func (c *calibrator) slowDown(k, clients int) (time.Duration, bool) {
	if k < 2 {
		return 0, true
	}
	own, program := c.sides[0].rates[clients], c.sides[1].rates[clients]
	if own <= 0 || program <= 0 || program >= own {
		return 0, false
	}
	// A client's turn takes clients/rate seconds; without a pause all of that is the file's.
	return time.Duration(float64(clients) * (1/program - 1/own) * float64(time.Second)), true
}

// step has one side do one step, watched.
func (c *calibrator) step(ctx context.Context, s *side, step scenario.Step, pause time.Duration) (err error) {
	config := s.config
	plan := *s.plan
	plan.Steps = []scenario.Step{step}
	if s.pause = pause; pause > 0 { // drawn, or all clients would come at the same time
		plan.Work.Think = workload.Span{Uniform: []unit.Duration{0, unit.Duration(2 * pause)}}
	}
	config.Plan, config.Files, config.Finish = &plan, c.files, c.in.finish.Done()
	config.Why = c.in.ending
	if writes := workload.Writes(plan.Work); writes {
		if err := c.folders(config); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.cleanSide(s)) }()
	}
	before := c.read(ctx)
	watch, err := monitor.Start(ctx, plan.Hosts, monitor.Options{Target: plan.Target, Children: true}, s)
	if err != nil {
		return err
	}
	watch.SetStep(step.Number)
	s.now = tally{}
	config.Sink = s
	if err := s.idle(s.step); err != nil {
		return errors.Join(err, watch.Stop())
	}
	s.step = step.Number
	err = engine.Run(ctx, config)
	err = errors.Join(err, watch.Stop())
	after, asked := c.settled(ctx, before)
	for name, now := range after {
		if sample, ok := now.Sample(before[name]); ok {
			withoutUs(sample.Service, asked)
			sample.Host, sample.Role, sample.Step = name, "server", step.Number
			err = errors.Join(err, s.Sample(sample))
		}
	}
	return err
}

// conclude makes the reports of both runs and says how they compare.
func (c *calibrator) conclude() error {
	var runs [3]*results.Run
	for i, s := range c.sides {
		if s.last.IsZero() {
			continue // never used
		}
		found, err := analyze(s.dir, c.streams)
		if err != nil {
			return fmt.Errorf("report of %s: %w", s.dir, err)
		}
		for _, check := range found.Validity.Checks {
			if check.Status == analysis.Fail {
				c.given.Doubts = append(c.given.Doubts, fmt.Sprintf("%s, %s: %s", s.name, check.Name, check.Detail))
			}
		}
		if runs[i], err = results.Open(s.dir); err != nil {
			return err
		}
	}
	r, err := calibration.Of(runs[0], runs[1], runs[2], c.given)
	if err != nil {
		return err
	}
	err = errors.Join(results.WriteFile(c.dir, "calibration.json", r.WriteJSON),
		results.WriteFile(c.dir, "calibration.txt", func(w io.Writer) error { return r.WriteText(w, 0) }))
	switch {
	case err != nil:
		return err
	case c.flags.json:
		err = r.WriteJSON(c.out)
	default:
		err = r.WriteText(c.out, width(c.out))
		_, werr := fmt.Fprintf(c.out, "\ndirectory  %s\nreports    %s, %s\n", c.dir,
			filepath.Join(c.sides[0].dir, results.ReportFile), filepath.Join(c.sides[1].dir, results.ReportFile))
		err = errors.Join(err, werr)
	}
	err = ignoreUnread(err)
	if err == nil && !r.Valid {
		return exit{code: exitInvalid}
	}
	return err
}

func (c *calibrator) close() error {
	var errs []error
	for _, s := range slices.Backward(c.sides[:]) {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
