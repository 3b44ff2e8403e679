// Package run carries out a plan and fills a run directory: from the links and
// the service over the preparation of files, the load and its monitoring to
// the analysis. It also resumes runs, searches for the best number of clients,
// and does the runs of campaigns.
//
// Run is the sequence of steps; read it downward. The caller provides the display of the load and
// the destination of the numbers: see View and Exporter.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/cluster/batch"
	systems "weir/loadtest/cluster/batch/all"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/report"
	"weir/loadtest/results"
	"weir/loadtest/run/search"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage/all"
)

// A Config configures a run and its output.
type Config struct {
	Plan      *scenario.Plan
	Dir       string // run directory: new, or that of the run to resume
	Processes int    // client processes on this machine; 0: as many as the limit of open files requires
	Version   string // of this program
	Series    Series // the runs of the same campaign
	Console   Console
	Interrupts
	Watched bool // the directory is also kept if the run fails before its load: a live page reads it
	// View returns the view of the load of plan, the part of the plan that is still to be done.
	View func(dir string, plan *scenario.Plan, of Series) View
	// Export returns the exporter of the numbers. If it is nil, nothing is sent.
	Export func(context.Context) (Exporter, error)
	// Report shows the result to people. It is also called for a run that ended
	// early, if there was load. If it is nil, the run is not analyzed.
	Report func(Result) error
}

// A Series describes the runs of a campaign around one of them. The zero value describes a single
// run.
type Series struct {
	Dir         string        // of the campaign
	Number, All int           // of the run, from 1, and of all runs
	Spent       time.Duration // by the runs before
	Ahead       time.Duration // for the runs after, as far as it is known
}

// A Console shows people the progress of a command, apart from the load.
type Console struct {
	Stderr  io.Writer // of processes that are started
	Secrets *redact.Values
	Say     func(format string, args ...any) // progress
	Warn    func(format string, args ...any) // shown with --quiet as well
	// Working shows the current activity until done is called.
	Working func(what string) (advance engine.Advance, done func())
}

// line returns the text of err in one line that a terminal can show.
func (c *Console) line(err error) string { return say.Plain(c.Secrets.Text(err.Error())) }

// A View shows the load while it goes on. It receives the records that are written into the run
// directory. Its methods may be called by several goroutines at once.
type View interface {
	measure.Sink
	monitor.Sink
	Start(processes int)
	Advance(what string, done, total int) // of preparation and clean-up, an engine.Advance
	Waiting(what string)                  // for the first response of the target
	Load()                                // the load begins
	End()                                 // the preparation, or the load, has ended
	Workers(summary func() string)        // the clients are on other machines
	Search(e measure.Event, best *search.Optimum)
	Stop()
}

// An Exporter sends the numbers of a run elsewhere. Its errors after Begin are not errors of the
// run.
type Exporter interface {
	Begin(ctx context.Context, dir string, resumed bool) error
	Finish(ctx context.Context)
}

// A Result is the result of a run.
type Result struct {
	Dir      string
	Page     string // path of its report; "" if it could not be written
	Findings *analysis.Findings
	Series   *analysis.Series
	Search   string // the reason for the end of a search; "" if the run was no search
}

// A UsageError is a wrong call, or a plan that cannot be carried out. Nothing
// was measured.
type UsageError struct{ Err error }

// Error implements error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *UsageError) Unwrap() error { return e.Err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// Run carries out c.Plan in a new run directory. A plan with Find is a search.
func Run(c Config) error { return newSession(c).run() }

// run carries out the plan, from the links to the report.
func (r *session) run() (err error) {
	ctx := r.Stop
	defer func() { err = r.explain(ctx, errors.Join(err, r.discard(err))) }()
	system, err := r.check()
	if err != nil {
		return err
	}
	processes, err := r.processes()
	if err != nil {
		return err
	}
	if r.links, err = openLinks(ctx, r.Plan, processes, r.Console.Stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.links.close()) }()
	server, err := r.startBuiltIn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	r.Plan = withAddresses(ctx, r.Plan, lookUpAddresses)
	if err := r.readList(); err != nil {
		return err
	}
	if r.Export != nil {
		if r.exports, err = r.Export(ctx); err != nil {
			return err
		}
		defer func() { r.exports.Finish(r.Finish) }()
	}
	err = r.measure(ctx, system, processes)
	if err == nil {
		return r.report()
	}
	if r.loaded { // the measurements until then are useful
		err = errors.Join(err, r.report())
	}
	return r.noSpace(err)
}

// check refuses plans that cannot be carried out here. It returns the batch system that starts the
// workers, nil if the clients are on this machine.
func (r *session) check() (batch.System, error) {
	if err := r.Plan.ValidateRemote(); err != nil {
		return nil, usage(err)
	}
	if r.Plan.On.Batch == "" {
		return nil, nil
	}
	system, err := openSystem(r.Plan.On)
	if err != nil {
		return nil, err
	}
	_, _, err = r.Plan.Portable()
	return system, usage(err)
}

func openSystem(on scenario.On) (batch.System, error) {
	system, err := systems.Open(on.Batch)
	if err != nil {
		return nil, usage(fmt.Errorf("on.batch: %w", err))
	}
	return system, nil
}

// readList reads the plan's list of files, if it has one.
func (r *session) readList() error {
	if r.Plan.Files.List == "" {
		return nil
	}
	list, err := scenario.ReadList(r.Plan.Files.List, r.Plan.FilesAt())
	if err != nil {
		return usage(err)
	}
	r.list = list.Files
	r.Console.Secrets.Learn(withQuery(r.list)...)
	return nil
}

// maxQueries bounds the secrets of a list of files that are known literally.
// Others are removed from texts only by their form.
const maxQueries = 500

// withQuery returns the paths of files that have a query, which may be a secret.
func withQuery(files []workload.File) (paths []string) {
	for i := range files {
		if strings.ContainsAny(files[i].Path, "?=") && len(paths) < maxQueries {
			paths = append(paths, files[i].Path)
		}
	}
	return paths
}

// report analyzes the run and shows the result.
func (r *session) report() error {
	if r.Report == nil {
		return nil
	}
	result, err := Analyze(r.Dir, r.Console)
	if result.Findings == nil {
		return err
	}
	if r.find != nil {
		result.Search = r.find.ending()
	}
	return errors.Join(err, r.Report(result))
}

// Analyze analyzes the run in dir and writes its findings, tables and report. If they cannot be
// written, the result is complete nevertheless, and err is not nil.
func Analyze(dir string, c Console) (Result, error) {
	_, done := c.Working("analyzing " + dir)
	defer done()
	result := Result{Dir: dir}
	of, err := results.Open(dir)
	if err != nil {
		return result, err
	}
	f, series, written, err := analysis.Write(of)
	if err != nil {
		return result, err
	}
	page := results.WriteFile(dir, results.ReportFile, func(w io.Writer) error { return report.HTML(w, f, series) })
	result.Findings, result.Series = f, series
	if page == nil {
		result.Page = filepath.Join(dir, results.ReportFile)
	}
	return result, NoSpace(dir, errors.Join(written(), page), "free space there, then repeat weir report "+dir)
}

// NewDir returns the directory to measure into: out, or a new one below runs.
func NewDir(out, name string, now time.Time) string {
	if out != "" {
		return out
	}
	out = filepath.Join("runs", name+"-"+now.Format("20060102-150405"))
	for i := 2; ; i++ {
		if _, err := os.Lstat(out); err != nil {
			return out
		}
		out = filepath.Join("runs", fmt.Sprintf("%s-%s-%d", name, now.Format("20060102-150405"), i))
	}
}

// linkLatest makes runs/latest lead to dir. It does nothing if links cannot be made, or something
// else has that name.
func linkLatest(dir string) {
	link := filepath.Join("runs", "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return
	}
	if filepath.Dir(dir) == "runs" {
		_ = os.Remove(link)                      // it may not exist
		_ = os.Symlink(filepath.Base(dir), link) // optional
	}
}

func newSession(c Config) *session {
	c.Console.Secrets.Learn(c.Plan.Secrets()...)
	r := &session{Config: c, drivers: all.Drivers()}
	if c.Plan.Find != nil {
		r.find = newFinder(c.Plan.Find, c.Dir)
	}
	return r
}
