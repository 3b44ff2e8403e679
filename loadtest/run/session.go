package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/cluster"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/engine"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A session is one run, from its plan to its report.
type session struct {
	Config
	drivers  []storage.Driver
	list     []workload.File // the plan's list of files
	links    *links          // nil: the network as it is
	commands *commands       // the plan's events
	exports  Exporter        // nil: no export
	copies   *scratch.Place  // of staged jobs on this machine
	out      *results.Writer
	view     View
	engine   engine.Config
	workers  *cluster.RemoteWorkers // nil: the clients are on this machine
	find     *finder                // nil: this is no search
	resumed  *resumed               // nil: this run is new
	loaded   bool                   // the load has begun
	left     bool                   // workers may be left on other machines
	made     string                 // topmost folder that was made for the run directory, "" if it existed before
}

// measure does everything that leads to a complete run directory. Measurements are kept, whichever
// step fails.
func (r *session) measure(ctx context.Context, system batch.System, processes int) (err error) {
	service, err := cluster.OpenService(ctx, r.Plan, r.drivers, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	if system == nil { // otherwise each worker has a place of its own
		if r.copies, err = scratch.OpenPlace(r.Plan.Works(), r.Plan.MostClients()); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, r.copies.Close()) }()
	if err := r.openDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.out.Close()) }()
	manifest, err := results.OpenManifest(r.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manifest.Close()) }()
	r.engine = engine.Config{
		Plan: r.Plan, Service: service, Folder: Folder(r.out.About()),
		Manifest: manifest, Scratch: r.copies.Path(), Room: scratch.NewRoom(r.copies.Quota()), Finish: r.Finish.Done(), Why: r.Ending,
	}
	r.view = r.View(r.Dir, r.ahead(), r.Series)
	if r.exports != nil {
		if err := r.exports.Begin(ctx, r.Dir, r.resumed != nil); err != nil {
			return err
		}
	}
	r.view.Start(processes)
	defer r.view.Stop()
	if system != nil {
		if err := r.startWorkers(ctx, system); err != nil {
			return err
		}
		defer func() {
			left := r.workers.Close()
			r.left, err = left != nil, errors.Join(err, left)
		}()
	}
	if err = r.ready(manifest); err == nil {
		err = r.drive(ctx, processes)
	}
	if err != nil && !r.loaded && r.resumed == nil {
		err = errors.Join(err, r.noteUnloaded(err))
	}
	if !Keeps(r.Plan) {
		err = errors.Join(err, r.sweep(manifest))
	}
	return err
}

// openDir makes the run directory, or takes the directory of the run that is resumed.
func (r *session) openDir() error {
	if r.resumed != nil {
		r.out = r.resumed.out
	} else {
		a, err := About(r.Version, slices.ContainsFunc(r.Plan.Works(), func(w workload.Work) bool { return w.Verify < 1 }))
		if err != nil {
			return err
		}
		a.Scratch, a.Links = r.copies.About(), r.links.about()
		r.made = results.Missing(filepath.Clean(r.Dir))
		if r.out, err = results.Create(r.Dir, r.Plan, a); err != nil {
			return err
		}
	}
	r.out.Hide(r.Plan.Secrets()...)
	r.out.Hide(withQuery(r.list)...)
	return nil
}

// About describes the measuring program and its machine. discard reports whether payload may be
// dropped in the kernel.
func About(version string, discard bool) (results.About, error) {
	env, err := json.Marshal(monitor.About())
	return results.About{
		Weir: version, Command: append([]string{"weir"}, os.Args[1:]...), Clock: results.ReadClock(), Discard: discard, Environment: env,
	}, err
}

// startWorkers starts the workers on other machines, or finds the workers of the run that is
// resumed.
func (r *session) startWorkers(ctx context.Context, system batch.System) (err error) {
	state, err := cluster.StateDir(r.out.About().Run)
	if err != nil {
		return err
	}
	w := cluster.NewRemoteWorkers(cluster.RemoteOptions{Plan: r.Plan, System: system, Dir: r.Dir, State: state, WriteEvent: r.write,
		Shutdown: r.Leave})
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	for _, text := range r.Plan.RemoteWarnings() {
		if err := r.warn(text); err != nil {
			return err
		}
	}
	if r.resumed != nil {
		if err := w.Find(ctx, r.resumed.run.Events()); err != nil {
			return err
		}
		if err := r.resumed.with(w.Found); err != nil {
			return err
		}
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	r.view.Workers(w.Summary)
	r.workers = w
	return nil
}

// foundWorkers reports whether the workers belong to the run that is resumed.
func (r *session) foundWorkers() bool { return r.workers != nil && r.workers.Found }

// ready makes all preparations for the load.
func (r *session) ready(m *results.Manifest) error {
	err := r.warn(CredentialWarnings(r.Plan, r.ahead().Time())...)
	if err == nil {
		err = r.cleanTarget(m)
	}
	if err == nil {
		err = r.prepare()
	}
	if err == nil && r.workers != nil {
		err = r.workers.KeepFiles(r.engine.Files)
	}
	if err == nil {
		err = r.copies.Refuse(r.engine.Files)
	}
	if err != nil {
		return err
	}
	return r.warn(append(r.copies.Leftovers(true), r.copies.Warnings(r.Plan.MostClients(), r.engine.Files)...)...)
}

// prepare finds or makes the files; the first interrupt ends it.
func (r *session) prepare() (err error) {
	if r.foundWorkers() {
		r.engine.Files = r.workers.Files
		return nil
	}
	c := r.engine
	c.Waiting, c.Sink = r.view.Waiting, &tee{out: r.out, view: r.view} // of warnings: there are no steps yet
	r.engine.Files, err = engine.Prepare(r.Finish, c, r.list, r.view.Advance)
	r.view.End()
	if r.Plan.BuiltIn && r.Plan.Files.Listing {
		r.engine.Files = withSeeds(r.engine.Files)
	}
	if err != nil && r.Finish.Err() != nil {
		return fmt.Errorf("%w before the load began: nothing was measured", ErrInterrupted)
	}
	if small := workload.Small(r.Plan.Work, r.engine.Files); err == nil && small > 0 {
		return r.warn(fmt.Sprintf("%d of %s are smaller than %s of %v: reads of them ask for fewer bytes than workload.part says",
			small, say.Plural(len(r.engine.Files), "file"), say.Plural(max(r.Plan.Work.Part.Count, 1), "part"), r.Plan.Work.Part.Size))
	}
	return err
}

// drive monitors the hosts and runs the load.
func (r *session) drive(ctx context.Context, processes int) (err error) {
	watch, closeServers, err := r.startMonitor(ctx)
	if err != nil {
		return err
	}
	defer closeServers()
	defer r.links.watched(nil)
	r.commands = newCommands(ctx, r.Plan.Events, r.write)
	defer func() { err = errors.Join(err, r.commands.end()) }()
	defer r.setSink(watch)()
	if err := r.setSteps(); err != nil {
		return errors.Join(err, watch.Stop())
	}
	r.loaded = true
	r.view.Load()
	defer watchSuspension(func(missed time.Duration) {
		_ = r.warn(suspendedText(missed)) // a directory that cannot be written to ends the run by itself
	})()
	err = r.links.during(ctx, r, func(ctx context.Context) error { return r.load(ctx, processes) })
	r.view.End()
	if errors.Is(context.Cause(ctx), ErrStopped) {
		err = nil // as requested; the run's end event reports it
	}
	return errors.Join(err, watch.Stop())
}

// setSink makes the measurements of clients go to the run directory and the view, and lets
// thresholds end the load. release frees the resources for that.
func (r *session) setSink(watch *monitor.Watch) (release func()) {
	latest := r.Dir
	if r.Series.Dir != "" {
		latest = r.Series.Dir
	}
	r.engine.Sink = &tee{out: r.out, view: r.view, watch: watch, links: r.links, begins: sync.OnceFunc(func() {
		linkLatest(latest)
		r.commands.begin()
	})}
	g := analysis.NewGate(r.ahead())
	if g == nil {
		return func() {}
	}
	finish, stop := context.WithCancel(r.Finish)
	sink := &abortSink{Sink: r.engine.Sink, gate: g, finish: finish, stop: stop}
	r.engine.Finish, r.engine.Sink = finish.Done(), sink
	r.engine.Why = func() measure.Ending { return sink.ending(r.Interrupts) }
	return stop
}

// setSteps selects the steps: the plan's steps, the remaining steps of a resumed run, or the steps
// of the search.
func (r *session) setSteps() error {
	if r.find != nil {
		r.engine.Steps = r.find.steps(r)
	}
	return r.resumeSteps()
}

// load runs the load in this process, or in several.
func (r *session) load(ctx context.Context, processes int) error {
	if r.workers != nil {
		return r.controlWorkers(ctx)
	}
	if processes <= 1 && r.links == nil && len(r.Plan.Populations) == 0 {
		return engine.Run(ctx, r.engine)
	}
	command, err := cluster.SelfCommand("worker")
	if err != nil {
		return err
	}
	manifest := ""
	if r.Plan.Writes() {
		if manifest, err = filepath.Abs(r.Dir); err != nil {
			return err
		}
	}
	if r.links != nil {
		return cluster.Control(ctx, r.engine, r.links.peers(), manifest)
	}
	return cluster.Local(ctx, r.engine, processes, command, manifest, r.Console.Stderr)
}

// controlWorkers runs the load on other machines.
func (r *session) controlWorkers(ctx context.Context) error {
	driver := storage.DriverNamed(r.drivers, r.Plan.Driver)
	options := cluster.WorkerOptions{FilesPerClient: driver.ClientFiles(r.Plan.InFlight()), Version: r.Version,
		Samples: samples{r.out, r.view, nil}}
	if r.foundWorkers() {
		options.ResumeState = r.resumed.past(r.Version)
		if r.find == nil { // a search goes on from the steps that are complete
			options.ResumeState.Broken = r.resumed.broken
		}
	}
	if r.links != nil {
		options.Reach = r.links.forward
	}
	if r.Plan.Writes() {
		options.Manifest = r.engine.Manifest
	}
	return r.workers.Control(ctx, r.engine, options)
}

// discard removes the run directory if err, the error of the run, ended a new run before its load.
func (r *session) discard(err error) error {
	if err == nil || r.loaded || r.Watched || r.out == nil || r.resumed != nil || r.left {
		return nil
	}
	return errors.Join(cluster.DiscardSubmissions(r.Dir), results.Discard(filepath.Clean(r.Dir), r.made))
}

// noteUnloaded writes the reason for which the load never began into the run directory.
func (r *session) noteUnloaded(err error) error {
	end := measure.Broken(fmt.Errorf("before the load began: %w", err))
	if why := r.Ending(); r.Finish.Err() != nil {
		end.Outcome, end.Reason = why.Outcome, why.Reason
	}
	return r.out.Event(end.Event(time.Now(), 0))
}

// writeEvent writes an event of a kind, and shows it.
func (r *session) writeEvent(kind measure.EventKind, text string) error {
	return r.write(measure.Event{Time: time.Now().UTC(), Kind: kind, Text: text})
}

func (r *session) write(e measure.Event) error { return errors.Join(r.out.Event(e), r.view.Event(e)) }

// warn records warnings.
func (r *session) warn(texts ...string) (err error) {
	for _, text := range texts {
		err = errors.Join(err, r.writeEvent(measure.EventWarning, text))
	}
	return err
}
