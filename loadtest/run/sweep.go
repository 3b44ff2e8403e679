package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/loadtest/analysis/campaign"
	"weir/loadtest/challenge/conduct"
	"weir/loadtest/cluster"
	"weir/loadtest/engine"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/storage"
	"weir/storage/all"
)

// sweepTimeout is the time limit for the removal of a run's files and folders.
const sweepTimeout = 10 * time.Minute

// Keeps reports whether the files and folders of a run shall stay.
func Keeps(p *scenario.Plan) bool {
	return p.Keeps() || p.Files.Make != nil && p.Files.Make.Keep
}

// Folder returns the folder below its target in which a run makes files.
func Folder(a results.About) string { return "weir-" + a.Run }

// leftovers returns the paths of the manifest that were not removed.
func leftovers(m *results.Manifest) ([]string, error) {
	made, err := m.Left()
	paths := make([]string, len(made))
	for i, f := range made {
		paths[i] = f.Path
	}
	return paths, err
}

// Sweep removes the files and folders in the manifest of the run in dir. left reports paths that
// could not be removed, with their maker (the parameter who) in the text; err reports that not even
// these are known.
func Sweep(in Interrupts, c engine.Config, m *results.Manifest, who, dir string, advance engine.Advance) (left, err error) {
	paths, err := leftovers(m)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(in.cleaning(), sweepTimeout)
	defer cancel()
	if failed, first := remove(ctx, c, m, paths, advance); failed > 0 {
		left = fmt.Errorf("%d of %d files and folders that %s made could not be removed (weir clean %s tries again): %w", failed, len(paths),
			who, dir, first)
	}
	return left, nil
}

// remove removes paths with c's service and, if that is a program, the rest with weir's own client
// of the target's protocol: most programs remove no folders.
func remove(ctx context.Context, c engine.Config, m *results.Manifest, paths []string, advance engine.Advance) (failed int, first error) {
	if failed, first = engine.Clean(ctx, c, paths, advance); failed == 0 {
		return failed, first
	}
	own, err := cluster.OpenOwnClient(ctx, c.Plan, all.Drivers())
	if own == nil || err != nil {
		return failed, errors.Join(first, err)
	}
	defer own.Close()
	if paths, err = leftovers(m); err != nil {
		return failed, err
	}
	c.Service = own
	return engine.Clean(ctx, c, paths, advance)
}

// sweep removes the files and folders in the manifest, and warns of the paths that stay.
func (r *session) sweep(m *results.Manifest) error {
	left, err := Sweep(r.Interrupts, r.engine, m, "this run", r.Dir, r.view.Advance)
	r.view.End()
	if left == nil {
		return err
	}
	return r.warn(left.Error())
}

// Cleaned is the result of Clean.
type Cleaned struct {
	Run     string `json:"run"`    // its directory
	Target  string `json:"target"` // "" if it could not be looked at
	Named   int    `json:"named"`  // files and folders in the manifest that were not removed yet
	Removed int    `json:"removed"`
	// Outcomes of copies that killed runs had left in the scratch folders of this run.
	Scratch []string `json:"scratch,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// WriteText writes the result for people.
func (c *Cleaned) WriteText(w io.Writer) error {
	if c.Target == "" {
		return nil
	}
	text := fmt.Sprintf("removed %d of %d files and folders from %s\n", c.Removed, c.Named, c.Target)
	for _, s := range c.Scratch {
		text += s + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// scratchFolders returns the folders of this machine in which the run's jobs had their copies of files.
func scratchFolders(run *results.Run) (all []string) {
	if at := run.About.Scratch; at != nil {
		all = append(all, at.Folder)
	}
	host, err := os.Hostname()
	if err != nil {
		return all
	}
	for e, err := range run.Events() {
		if err == nil && e.Worker != nil && e.Worker.Scratch != nil && e.Worker.Host == host && !slices.Contains(all, e.Worker.Scratch.Folder) {
			all = append(all, e.Worker.Scratch.Folder)
		}
	}
	return all
}

// Clean removes everything that the run in dir has left: its workers, copies of staged jobs, and
// the paths of its manifest on the target. target is the target of the run if the plan lacks its
// secrets, or "".
func Clean(ctx context.Context, dir, target string, console Console) (c Cleaned, err error) {
	c.Run = dir
	defer func() {
		if err != nil {
			c.Error = console.line(err)
		}
	}()
	run, err := results.Open(dir)
	if err != nil {
		return c, err
	}
	m, err := results.OpenManifest(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if run.Plan.Challenge != nil {
		return cleanChallenge(ctx, run, m, c, console)
	}
	if err := removeWorkers(ctx, run); err != nil {
		return c, err
	}
	for _, folder := range scratchFolders(run) {
		for _, l := range scratch.Clear(folder) {
			c.Scratch = append(c.Scratch, l.String())
		}
	}
	left, err := leftovers(m)
	if err != nil {
		return c, err
	}
	if err := within(left, Folder(run.About)); err != nil {
		return c, err
	}
	if len(left) == 0 {
		c.Target = run.Plan.Target
		return c, nil
	}
	plan, service, err := openTarget(ctx, run.Plan, target, console)
	if err != nil {
		return c, explain(ctx, run.Plan, err, false)
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	advance, done := console.Working("removing what " + dir + " has left")
	failed, first := remove(ctx, engine.Config{Plan: plan, Service: service, Manifest: m}, m, left, advance)
	done()
	c.Target, c.Named, c.Removed = run.Plan.Target, len(left), len(left)-failed
	if failed > 0 {
		return c, explain(ctx, plan, fmt.Errorf("%d are left: %w", failed, first), len(plan.Command) == 0)
	}
	return c, nil
}

// cleanChallenge removes the files of a data challenge from its sites.
func cleanChallenge(ctx context.Context, run *results.Run, m *results.Manifest, c Cleaned, console Console) (Cleaned, error) {
	f, err := results.Follow(run.Dir)
	if err == nil && !f.Over() {
		err = fmt.Errorf("%s still goes on: interrupt it first", run.Dir)
	}
	if err != nil {
		return c, err
	}
	of := run.Plan.Challenge
	_, done := console.Working("removing what " + run.Dir + " has left")
	defer done()
	c.Target = run.Plan.Target
	c.Named, c.Removed, err = conduct.Clean(ctx, run.Dir, of, m, challengeParts(&of.Inject))
	if err != nil {
		err = fmt.Errorf("%d are left: %w", c.Named-c.Removed, err)
	}
	return c, err
}

// CleanAll cleans the run in dir, or all runs of the campaign in dir, including the runs that were
// set aside.
func CleanAll(ctx context.Context, dir, target string, console Console) (all []Cleaned, err error) {
	if !campaign.Is(dir) {
		one, err := Clean(ctx, dir, target, console)
		return []Cleaned{one}, err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if _, no := os.Stat(filepath.Join(name, results.AboutFile)); no != nil {
			continue
		}
		one, e := Clean(ctx, name, target, console)
		if all = append(all, one); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, e))
		}
	}
	return all, err
}

// removeWorkers removes the workers of a killed run from the batch system, and their secrets.
func removeWorkers(ctx context.Context, run *results.Run) error {
	if run.Plan.On.Batch == "" {
		return nil
	}
	f, err := results.Follow(run.Dir)
	if err != nil {
		return err
	}
	if !f.Over() {
		return fmt.Errorf("%s still goes on, with its workers: interrupt it first", run.Dir)
	}
	system, err := openSystem(run.Plan.On)
	if err != nil {
		return err
	}
	if err := cluster.RemoveWorkers(ctx, system, run.Dir); err != nil {
		return fmt.Errorf("the workers of %s: %w", run.Dir, err)
	}
	state, err := cluster.StateDir(run.About.Run)
	if err != nil {
		return err
	}
	return os.RemoveAll(state)
}

// openTarget opens the service of a run's plan, with the secrets of target.
func openTarget(ctx context.Context, plan *scenario.Plan, target string, console Console) (*scenario.Plan, storage.Service, error) {
	plan, err := withSecrets(plan, target)
	if err != nil {
		return nil, nil, usage(err)
	}
	console.Secrets.Learn(plan.Secrets()...)
	service, err := cluster.OpenService(ctx, plan, all.Drivers(), nil)
	return plan, service, err
}

// withSecrets returns plan with the secrets of target. A plan that lacks no secret needs no target.
func withSecrets(plan *scenario.Plan, target string) (*scenario.Plan, error) {
	if len(plan.Redacted()) == 0 {
		target = ""
	}
	return plan.Complete(target)
}

// within refuses paths that a run cannot have made: all its paths are in its own folder. A manifest
// is a file like others, and may have been changed.
func within(paths []string, folder string) error {
	if strings.Contains(folder, "/") {
		return fmt.Errorf("about.json: no run is called %q: nothing was removed", folder)
	}
	for _, p := range paths {
		p, _ := strings.CutPrefix(p, storage.AtOrigin)
		plain := strings.TrimSuffix(p, "/")
		if path.Clean(plain) != plain || p != folder+"/" && !strings.HasPrefix(plain, folder+"/") {
			return fmt.Errorf("the manifest names %q, which is not in the run's folder %s: nothing was removed", p, folder)
		}
	}
	return nil
}
