// Package results keeps a run directory: written once while the run goes on,
// append-only, read by everything after it, also when the run was cut off.
//
// The format is public and versioned; docs/results.md is its specification.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// Names of the files in a run directory.
const (
	PlanFile      = "plan.json"       // what was asked for
	AboutFile     = "about.json"      // by whom, when and where it was done
	IntervalsFile = "intervals.jsonl" // what the clients saw, second by second
	HostsFile     = "hosts.jsonl"     // what the hosts went through, second by second
	EventsFile    = "events.jsonl"    // what happened once
	ManifestFile  = "manifest.jsonl"  // what the run created on the target
	TransfersFile = "transfers.jsonl" // what was copied between sites, attempt by attempt

	FindingsFile     = "findings.json" // made from the files above, like all that follow
	CurveFile        = "curve.csv"
	IntervalsCSVFile = "intervals.csv"
	HostsCSVFile     = "hosts.csv"
	BackendsCSVFile  = "backends.csv" // of runs in which several servers shared the load
	ReportFile       = "report.html"
)

// FormatVersion is the version of the run directory's format that this
// program writes and reads.
const FormatVersion = 3

// A Run is a run directory that is read: of a run that is over, was broken
// off, or still goes on. It holds no open file; each iterator opens its own.
type Run struct {
	Dir   string
	Plan  *scenario.Plan
	About About
	Torn  []string // a sentence for each file whose last line is not whole; the line is left out

	// GoesOn is set by a caller who knows that the run is being written: what is
	// still to come is not missing then.
	GoesOn bool
}

// IsRun reports whether dir is a run directory.
func IsRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, AboutFile))
	return err == nil && info.Mode().IsRegular()
}

// Open reads what dir is about. It refuses a folder that is no run directory
// and one in another version of the format.
func Open(dir string) (*Run, error) {
	r := &Run{Dir: dir, Plan: &scenario.Plan{}}
	if err := onlyFiles(dir); err != nil {
		return nil, err
	}
	if err := readJSON(dir, AboutFile, &r.About); err != nil {
		return nil, err
	}
	if err := scenario.CheckVersion("the run directory", r.About.Format, FormatVersion); err != nil {
		return nil, fmt.Errorf("results: %s: %w", dir, err)
	}
	if err := readJSON(dir, PlanFile, r.Plan); err != nil {
		return nil, err
	}
	if err := scenario.CheckVersion("plan.json", r.Plan.Version, scenario.PlanVersion); err != nil {
		return nil, fmt.Errorf("results: %s: %w", dir, err)
	}
	for _, name := range []string{IntervalsFile, HostsFile, EventsFile, TransfersFile} {
		note, err := torn(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
		if note != "" {
			r.Torn = append(r.Torn, note)
		}
	}
	return r, nil
}

// onlyFiles refuses what would be opened and never end, such as a pipe.
func onlyFiles(dir string) error {
	for _, name := range []string{AboutFile, PlanFile, IntervalsFile, HostsFile, EventsFile, ManifestFile, TransfersFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("results: %s is not a regular file: %s", filepath.Join(dir, name), info.Mode())
		}
	}
	return nil
}

func readJSON(dir, name string, v any) error {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("results: %s is not a run directory, or its run never began: it has no %s: %w", dir, name, fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("results: %s: %w", path, err)
	}
	return nil
}

// Intervals yields the lines of intervals.jsonl in their order, each a new
// value. An error, which names file and line, ends it.
func (r *Run) Intervals() iter.Seq2[*measure.Interval, error] {
	return lines(filepath.Join(r.Dir, IntervalsFile), checkInterval)
}

// Samples yields the lines of hosts.jsonl as Intervals does.
func (r *Run) Samples() iter.Seq2[*monitor.Sample, error] {
	return lines(filepath.Join(r.Dir, HostsFile), checkSample)
}

// Events yields the lines of events.jsonl as Intervals does.
func (r *Run) Events() iter.Seq2[*measure.Event, error] {
	return lines(filepath.Join(r.Dir, EventsFile), func(*measure.Event) error { return nil })
}

// Transfers yields the lines of transfers.jsonl as Intervals does. Most runs have
// none.
func (r *Run) Transfers() iter.Seq2[*Transfer, error] {
	return lines(filepath.Join(r.Dir, TransfersFile), checkTransfer)
}
