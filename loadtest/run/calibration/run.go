package calibration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/engine"
	"weir/loadtest/results"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/all"
)

// A Config configures a comparison.
type Config struct {
	Options
	Version string // of weir
	Console run.Console
	run.Interrupts
}

// A calibrator takes the steps of both sides in turns.
type calibrator struct {
	Config
	sides  [3]*side        // weir's clients, the program's, weir's slowed to the program's rate
	made   []workload.File // that are read
	given  Given
	asks   storage.Reporter // nil: the servers have no statistics
	asked  []string         // the servers
	loaded bool
}

// Run takes the steps of both sides in turns, and compares them. It writes calibration.json and
// calibration.txt into the folder dir, beside the run directories of the sides, whose names have
// the order of the sides in the Result.
func Run(conf Config) (r *Result, dir string, sides []string, err error) {
	own, program, err := conf.plans()
	if err == nil {
		err = room(program)
	}
	if err != nil {
		return nil, "", nil, err
	}
	defer conf.setEnvironment(own)()
	conf.Dir = run.NewDir(conf.Dir, "calibrate-"+own.Name, time.Now())
	conf.Console.Say("%s: weir and %s take turns, %d rounds with %s clients, about %v; Ctrl-C finishes early and still "+
		"compares\nmeasuring into %s\n", say.Plain(conf.Target), conf.Client, conf.Rounds, conf.Clients, planned(own.Steps), conf.Dir)
	c := &calibrator{Config: conf}
	c.given.Program, c.given.Release = c.Client, c.release(c.Stop)
	err = c.measure(own, program)
	if !c.loaded {
		return nil, "", nil, errors.Join(err, c.discard())
	}
	if errors.Is(err, run.ErrInterrupted) || errors.Is(context.Cause(c.Stop), run.ErrStopped) {
		err = nil // as requested; a note reports it
	}
	r, concluded := c.conclude()
	err = run.NoSpace(c.Dir, errors.Join(err, concluded), "free space there, or measure into a folder on another file system with --out")
	return r, c.Dir, []string{c.sides[0].dir, c.sides[1].dir}, err
}

// discard removes the directories of sides that measured nothing.
func (c *calibrator) discard() (err error) {
	for _, s := range slices.Backward(c.sides[:]) {
		if s != nil {
			err = errors.Join(err, results.Discard(filepath.Clean(s.dir), s.made))
		}
	}
	return err
}

// line returns the text of err in one line that a terminal can show.
func (c *calibrator) line(err error) string { return say.Plain(c.Console.Secrets.Text(err.Error())) }

// room checks that this process may have as many files open as all clients need.
func room(p *scenario.Plan) error {
	soft, _, err := monitor.RaiseOpenFiles()
	if err != nil {
		return err
	}
	driver := storage.DriverNamed(all.Drivers(), p.Driver)
	if need := p.MostClients()*driver.ClientFiles(0) + run.SpareFiles; uint64(need) > soft {
		return &run.UsageError{Err: fmt.Errorf("%d clients need %d open files, and this process may have %d: use fewer, "+
			"or raise the limit (ulimit -n)", p.MostClients(), need, soft)}
	}
	return nil
}

// measure fills both run directories. The files and folders of the two sides on the target are
// removed, whichever step fails.
func (c *calibrator) measure(own, program *scenario.Plan) (err error) {
	ctx := c.Stop
	again := *own
	for i, x := range []struct {
		name string
		plan *scenario.Plan
	}{{"weir", own}, {c.Client, program}, {"weir-slowed", &again}} {
		if c.sides[i], err = newSide(ctx, filepath.Join(c.Dir, x.name), x.name, c.Version, x.plan); err != nil {
			return errors.Join(err, c.close())
		}
	}
	defer func() { err = errors.Join(err, c.clean(), c.close()) }()
	if err := c.prepare(); err != nil {
		if c.Finish.Err() != nil {
			return fmt.Errorf("%w before the load began: nothing was measured", run.ErrInterrupted)
		}
		return err
	}
	for _, s := range c.sides {
		if err := s.begin(); err != nil {
			return err
		}
	}
	c.listen(ctx)
	c.look(c.Finish)
	return c.rounds(ctx)
}

// rounds takes all steps: A B C, then C B A, and so on.
func (c *calibrator) rounds(ctx context.Context) error {
	steps := c.sides[0].plan.Steps
	advance, done := c.Console.Working("")
	defer done()
	each := len(steps) / c.Rounds
	for i, step := range steps {
		order := []int{0, 1, 2}
		if (i/each+i%each)%2 == 1 {
			slices.Reverse(order)
		}
		if _, known := c.slowDown(2, step.Clients); !known {
			order = append(slices.DeleteFunc(order, func(k int) bool { return k == 2 }), 2)
		}
		speeds := ""
		for n, k := range order {
			advance("weir and "+c.Client+" take turns, steps held", len(order)*i+n, len(order)*len(steps))
			if c.Finish.Err() != nil {
				c.given.Interrupted = true
				return run.ErrInterrupted
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
			speeds += ", " + c.sides[k].text()
		}
		c.Console.Say("round %d of %d, %s%s\n", i/each+1, c.Rounds, say.Plural(step.Clients, "client"), speeds)
	}
	return nil
}

// slowDown returns the pause after each file that makes weir's clients as slow as the program was;
// false if it is not known yet, or if there is no pause.
func (c *calibrator) slowDown(k, clients int) (time.Duration, bool) {
	if k < 2 {
		return 0, true
	}
	own, program := c.sides[0].rates[clients], c.sides[1].rates[clients]
	if own <= 0 || program <= 0 || program >= own {
		return 0, false
	}
	// A client's turn takes clients/rate seconds; without a pause all of that is the time of the
	// file.
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
	config.Plan, config.Files, config.Finish = &plan, c.made, c.Finish.Done()
	config.Why = c.Ending
	if writes := workload.Writes(plan.Work); writes {
		if err := c.folders(config); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.cleanSide(s)) }()
	}
	before := c.read(ctx)
	watch, err := monitor.Start(ctx, plan.Hosts, monitor.Options{Target: plan.Target, Others: plan.Others, Children: true}, s)
	if err != nil {
		return err
	}
	watch.SetStep(step.Number)
	s.now = Step{Number: step.Number, Clients: step.Clients}
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

// conclude makes the reports of all sides and compares them.
func (c *calibrator) conclude() (*Result, error) {
	var runs [3]*results.Run
	var unwritten error
	for i, s := range c.sides {
		if s.last.IsZero() {
			continue // never used
		}
		result, err := run.Analyze(s.dir, c.Console)
		if result.Findings == nil {
			return nil, fmt.Errorf("report of %s: %w", s.dir, err)
		}
		unwritten = errors.Join(unwritten, err)
		for _, check := range result.Findings.Validity.Checks {
			if check.Status == analysis.Fail {
				c.given.Doubts = append(c.given.Doubts,
					fact.New("calibration.check_failed", "side", s.name, "check", check.Name, "detail", check.Detail))
			}
		}
		if runs[i], err = results.Open(s.dir); err != nil {
			return nil, err
		}
	}
	r, err := Of(runs[0], runs[1], runs[2], c.given)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(unwritten, results.WriteFile(c.Dir, "calibration.json", r.WriteJSON),
		results.WriteFile(c.Dir, "calibration.txt", func(w io.Writer) error { return r.WriteText(w, 0) }))
}

func (c *calibrator) close() error {
	var errs []error
	for _, s := range slices.Backward(c.sides[:]) {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
