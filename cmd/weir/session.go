package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/analysis"
	"weir/cluster"
	"weir/engine"
	"weir/export"
	"weir/internal/say"
	"weir/measure"
	"weir/monitor"
	"weir/results"
	"weir/scenario"
	"weir/storage"
	"weir/storage/all"
	"weir/workload"
)

// A session is one weir run from its plan to its report.
type session struct {
	streams
	flags   runFlags
	plan    *scenario.Plan
	files   []workload.File // of a list
	drivers []storage.Driver
	in      interrupts
	out     *results.Writer
	live    *live
	config  engine.Config
	loaded  bool // the load has begun
	resumed *resumed
	find    *finder // of weir find
	of      series  // the runs around this one
	links   *links  // nil: the network as it is
	exports *exports
	copies  *copies // of staged jobs
	troop   *troop  // nil: the clients are on this machine
}

func newSession(in interrupts, plan *scenario.Plan, f runFlags, s streams) *session {
	return &session{streams: s, flags: f, plan: plan, drivers: all.Drivers(), in: in}
}

// runScenario is the whole path of the data, from the scenario to the report.
func runScenario(in interrupts, sc *scenario.Scenario, f runFlags, s streams) error {
	plan, err := sc.Plan(all.Drivers())
	if err != nil {
		return exit{exitUsage, err}
	}
	if plan, err = f.apart.of(plan, time.Now()); err != nil {
		return err
	}
	dir := outDir(f.out, plan.Name, time.Now())
	f.page.show(dir)
	return newSession(in, plan, f, s).run(dir, func() error { return conclude(dir, f.json, f.failOn, s) })
}

// run measures what the plan says into dir, which is new or that of the run that
// is resumed. conclude is called when something was measured, and its error is
// the run's: a run that was measured to its end has no other.
func (r *session) run(dir string, conclude func() error) (err error) {
	ctx := r.in.stop
	if err := r.plan.OnlyHere(); err != nil {
		return exit{exitUsage, err}
	}
	if r.plan.On.Apart {
		return r.runApart(dir, conclude)
	}
	processes, err := r.processes()
	if err != nil {
		return err
	}
	if r.links, err = linkUp(ctx, r.plan, processes, r.streams); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.links.close()) }()
	if r.plan.Target == scenario.BuiltIn || r.plan.BuiltIn {
		server, err := startBuiltin(ctx, r.streams, r.plan.Work, r.links.service())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		there := *r.plan
		there.Target, there.BuiltIn = server.URL, true
		r.plan = &there
	}
	r.plan = withAddresses(ctx, r.plan, lookUpAddresses)
	if err := r.readList(); err != nil {
		return err
	}
	if r.exports, err = r.flags.export.open(ctx, export.Written); err != nil {
		return err
	}
	defer func() { r.exports.finish(r.in.finish, r.err, r.quiet) }()
	err = r.measure(ctx, dir, processes)
	if err == nil {
		return conclude()
	}
	if r.loaded { // what was measured until then is worth a look
		if told := conclude(); told != nil && !errors.As(told, new(exit)) {
			err = errors.Join(err, told)
		}
	}
	return err
}

// readList reads the plan's list of files, if it has one.
func (r *session) readList() error {
	if r.plan.Files.List == "" {
		return nil
	}
	list, err := scenario.ReadList(r.plan.Files.List, r.plan.Target)
	if err != nil {
		return exit{exitUsage, err}
	}
	r.files = list.Files
	return nil
}

// measure does all that ends with a complete run directory. What was measured
// is kept, whatever goes wrong.
func (r *session) measure(ctx context.Context, dir string, processes int) (err error) {
	service, err := cluster.OpenService(ctx, r.plan, r.drivers, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	if r.copies, err = openCopies(r.plan); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.copies.Close()) }()
	if err := r.openDir(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.out.Close()) }()
	manifest, err := results.OpenManifest(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manifest.Close()) }()
	r.config = engine.Config{
		Plan: r.plan, Service: service, Folder: runFolder(r.out.About()),
		Manifest: manifest, Scratch: r.copies.path(), Finish: r.in.finish.Done(), Why: r.in.ending,
	}
	to := r.err
	if r.quiet {
		to = io.Discard
	}
	r.live = newLive(r.in.finish, to, r.ahead(), r.of)
	r.live.stream, r.live.dir = r.stream, dir
	if err := r.exports.begin(ctx, dir, sinceResumed(r.resumed != nil), to); err != nil {
		return err
	}
	r.live.start(dir, processes)
	defer r.live.stop()
	if r.troop, err = r.muster(ctx, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.troop.dismiss()) }()
	if err = r.ready(manifest); err == nil {
		err = r.drive(ctx, dir, processes)
	}
	if err != nil && !r.loaded && r.resumed == nil {
		err = errors.Join(err, r.unloaded(err))
	}
	return errors.Join(err, r.clean(manifest))
}

// unloaded notes in the run directory why the load never began.
func (r *session) unloaded(err error) error {
	end := measure.Broken(fmt.Errorf("before the load began: %w", err))
	if why := r.in.ending(); r.in.finish.Err() != nil {
		end.Outcome, end.Reason = why.Outcome, why.Reason
	}
	return r.out.Event(end.Event(time.Now(), 0))
}

// ready does what comes before the load.
func (r *session) ready(m *results.Manifest) error {
	err := r.again(m)
	if err == nil {
		err = r.prepare()
	}
	if err == nil && r.troop != nil {
		err = r.troop.keep(r.config.Files)
	}
	if err == nil {
		err = r.tellCopies()
	}
	return err
}

// openDir makes the run directory, or takes that of the run that is resumed.
func (r *session) openDir(dir string) error {
	if r.resumed != nil {
		r.out = r.resumed.out
		return nil
	}
	a, err := about(r.plan.Work.Verify < 1)
	if err != nil {
		return err
	}
	a.Scratch, a.Links = r.copies.about(), r.links.about()
	r.out, err = results.Create(dir, r.plan, a)
	return err
}

// about says what measures, and where. discard tells whether payload may be
// dropped in the kernel.
func about(discard bool) (results.About, error) {
	env, err := json.Marshal(monitor.About())
	return results.About{
		Weir: version(), Command: append([]string{"weir"}, os.Args[1:]...), Clock: results.ReadClock(), Discard: discard, Environment: env,
	}, err
}

// prepare finds or makes the files; the first interrupt ends it.
func (r *session) prepare() (err error) {
	if r.troop != nil && r.troop.found {
		r.config.Files = r.troop.files
		return nil
	}
	r.config.Files, err = engine.Prepare(r.in.finish, r.config, r.files, r.live.advance)
	r.live.end()
	if r.plan.BuiltIn && r.plan.Files.Listing {
		r.config.Files = invented(r.config.Files)
	}
	if err != nil && r.in.finish.Err() != nil {
		return fmt.Errorf("%w before the load began: nothing was measured", errFinishing)
	}
	if small := workload.Small(r.plan.Work, r.config.Files); err == nil && small > 0 {
		return r.warn(fmt.Sprintf("%d of %s are smaller than %s of %v: reads of them ask for fewer bytes than workload.part says",
			small, say.Plural(len(r.config.Files), "file"), say.Plural(max(r.plan.Work.Part.Count, 1), "part"), r.plan.Work.Part.Size))
	}
	return err
}

// drive watches the hosts and runs the load.
func (r *session) drive(ctx context.Context, dir string, processes int) error {
	servers, closeServers := r.reporter(ctx)
	defer closeServers()
	watch, err := monitor.Start(ctx, watchedHosts(r.plan), monitor.Options{Target: r.plan.Target, Children: true, Reporter: servers, Apart: r.links.pids(), With: r.troop.pids(), Balancer: r.plan.Balancer}, both{r.out, r.live, r.find})
	if err != nil {
		return err
	}
	r.config.Sink = &tee{out: r.out, live: r.live, watch: watch, links: r.links, begins: r.begins(dir)}
	r.links.watched(both{r.out, r.live, r.find})
	defer r.links.watched(nil)
	if g := analysis.NewGate(r.ahead()); g != nil {
		finish, stop := context.WithCancel(r.in.finish)
		defer stop()
		gate := &gated{Sink: r.config.Sink, gate: g, finish: finish, stop: stop}
		r.config.Finish, r.config.Sink = finish.Done(), gate
		r.config.Why = func() measure.Ending { return gate.ending(r.in) }
	}
	if begins(r.plan) && r.resumed == nil {
		if err := r.tell("run", "the first step begins at "+r.plan.Steps[0].Begin.Local().Format("15:04:05")); err != nil {
			return errors.Join(err, watch.Stop())
		}
		r.config.Pilot = &punctual{Pilot: engine.Alone(r.plan), finish: r.in.finish, warn: r.warn}
	}
	if err = r.goOn(); err != nil {
		return errors.Join(err, watch.Stop())
	}
	r.loaded = true
	r.live.load()
	defer watchStops(r.stopped)()
	err = r.links.during(ctx, r, func(ctx context.Context) error { return r.load(ctx, dir, processes) })
	r.live.end()
	if errors.Is(context.Cause(ctx), errStopped) {
		err = nil // what was asked for; the run's end event tells it
	}
	return errors.Join(err, watch.Stop())
}

// begins is what is done when the load begins: from then on runs/latest leads to
// the run, or to the campaign that it is of.
func (r *session) begins(dir string) func() {
	if r.of.dir != "" {
		dir = r.of.dir
	}
	return sync.OnceFunc(func() { linkLatest(dir) })
}

// tell writes an event of a kind, and shows it to who looks on.
func (r *session) tell(kind, text string) error {
	return r.told(measure.Event{Time: time.Now().UTC(), Kind: kind, Text: text})
}

func (r *session) told(e measure.Event) error { return errors.Join(r.out.Event(e), r.live.Event(e)) }

func (r *session) warn(text string) error { return r.tell("warning", text) }

// stopped warns that this process was stopped for a time.
func (r *session) stopped(missed time.Duration) {
	_ = r.warn(stoppedText(missed)) // a directory that cannot be written to ends the run by itself
}

// load runs the load in this process, or in several.
func (r *session) load(ctx context.Context, dir string, processes int) error {
	if r.troop != nil {
		return r.troop.control(ctx, r)
	}
	if processes <= 1 && r.links == nil {
		return engine.Run(ctx, r.config)
	}
	command, err := selfCommand("worker")
	if err != nil {
		return err
	}
	manifest := ""
	if workload.Writes(r.plan.Work) {
		if manifest, err = filepath.Abs(dir); err != nil {
			return err
		}
	}
	if r.links != nil {
		return cluster.Control(ctx, r.config, r.links.peers(), manifest)
	}
	return cluster.Local(ctx, r.config, processes, command, manifest, r.err)
}

// clean removes what the run has made, unless it is to be kept.
func (r *session) clean(m *results.Manifest) error {
	if keep(r.plan) {
		return nil
	}
	return r.sweep(m)
}

// sweep removes what the manifest names, and warns of what stays.
func (r *session) sweep(m *results.Manifest) error {
	left, err := sweep(r.in, r.config, m, "this run", r.out.Dir(), r.live.advance)
	r.live.end()
	if left == nil {
		return err
	}
	return r.warn(left.Error())
}
