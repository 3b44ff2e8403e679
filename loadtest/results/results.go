// Package results reads and writes a run directory: it is written once during the run, append-only,
// and read by everything after it, also if the run was interrupted.
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
	PlanFile      = "plan.json"       // the plan
	AboutFile     = "about.json"      // the program, the time and the machine
	IntervalsFile = "intervals.jsonl" // measurements of the clients, per second
	HostsFile     = "hosts.jsonl"     // samples of the hosts, per second
	EventsFile    = "events.jsonl"    // single events
	ManifestFile  = "manifest.jsonl"  // files created on the target
	TransfersFile = "transfers.jsonl" // copies between sites, one line per attempt
	LinksFile     = "links.jsonl"     // of data challenges: links between sites, per interval

	FindingsFile     = "findings.json" // computed from the files above, like all that follow
	CurveFile        = "curve.csv"
	IntervalsCSVFile = "intervals.csv"
	HostsCSVFile     = "hosts.csv"
	BackendsCSVFile  = "backends.csv" // of runs with several servers that shared the load

	ChallengeCSVFile     = "challenge.csv"         // of data challenges: the links
	ChallengeMinutesFile = "challenge-minutes.csv" // of data challenges: the links, minute by minute
	ReportFile           = "report.html"
)

// FormatVersion is the version of the run directory's format that this program writes and reads.
const FormatVersion = 3

// A Run is a run directory opened for reading: the run may be over, interrupted, or still active.
// It holds no open file; each iterator opens its own.
type Run struct {
	Dir   string
	Plan  *scenario.Plan
	About About
	Torn  []string // a sentence for each file whose last line is incomplete; the line is left out

	// GoesOn is set by a caller if the run is still being written. The rest of the run then does
	// not count as missing.
	GoesOn bool
}

// IsRun reports whether dir is a run directory.
func IsRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, AboutFile))
	return err == nil && info.Mode().IsRegular()
}

// Open reads the description and the plan of dir. It returns an error if dir is not a run
// directory, or has another version of the format.
func Open(dir string) (*Run, error) {
	r := &Run{Dir: dir, Plan: &scenario.Plan{}}
	if err := onlyFiles(dir); err != nil {
		return nil, err
	}
	if err := readJSON(dir, AboutFile, &r.About); err != nil {
		return nil, err
	}
	if err := scenario.CheckVersion("the run directory", r.About.Format, FormatVersion); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := readJSON(dir, PlanFile, r.Plan); err != nil {
		return nil, err
	}
	if err := scenario.CheckVersion("plan.json", r.Plan.Version, scenario.PlanVersion); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range []string{IntervalsFile, HostsFile, EventsFile, TransfersFile, LinksFile} {
		note, err := torn(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if note != "" {
			r.Torn = append(r.Torn, note)
		}
	}
	return r, nil
}

// onlyFiles returns an error for files that cannot be read to an end, such as a pipe.
func onlyFiles(dir string) error {
	for _, name := range []string{AboutFile, PlanFile, IntervalsFile, HostsFile, EventsFile, ManifestFile, TransfersFile, LinksFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: %s", filepath.Join(dir, name), info.Mode())
		}
	}
	return nil
}

func readJSON(dir, name string, v any) error {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a run directory, or its run never began: it has no %s: %w", dir, name, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Intervals yields the lines of intervals.jsonl in their order, each as a new value. An error,
// which contains file and line, ends the iteration.
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

// Transfers yields the lines of transfers.jsonl as Intervals does. Most runs have no such file.
func (r *Run) Transfers() iter.Seq2[*Transfer, error] {
	return lines(filepath.Join(r.Dir, TransfersFile), checkTransfer)
}
