// Package campaign reads and writes campaign.json: it lists the runs of a folder that belong
// together as repetitions and variants of one scenario, in the planned order. Each run is an
// ordinary run directory below that folder.
//
// The format is public and versioned; docs/results.md is its specification.
package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// File is the name of the file that marks a folder as a campaign.
const File = "campaign.json"

// Version is the version of the format of campaign.json that this program writes. It reads this
// version and all earlier versions.
const Version = 1

// A Campaign lists all runs of one scenario with repetitions or a matrix, whether finished or not.
// It is written before the first run begins.
type Campaign struct {
	Version int      `json:"version"` // Version; filled in by Write
	Name    string   `json:"name"`
	Repeat  int      `json:"repeat"`  // blocks: repetitions of each variant
	Seed    uint64   `json:"seed"`    // determines the order of the runs
	Factors []Factor `json:"factors"` // empty: one variant, repeated
	Runs    []Run    `json:"runs"`    // in the order of execution
}

// A Factor is a key of the scenario that is varied.
type Factor struct {
	Key    string   `json:"key"`    // as in the scenario: auth.method
	Levels []string `json:"levels"` // at least one, all different; the first level is the baseline
}

// A Run is one run of a campaign.
type Run struct {
	Number   int               `json:"number"`  // from 1, the order in time
	Block    int               `json:"block"`   // from 1: repetition; the runs of a block are consecutive
	Variant  string            `json:"variant"` // the same name for the same levels
	Levels   map[string]string `json:"levels"`  // level of each factor, by its key
	Dir      string            `json:"dir"`     // run directory, below the campaign's folder; may not exist yet
	Scenario string            `json:"scenario"`
	Error    string            `json:"error,omitempty"` // reason of a failure; also empty before the run begins
}

// Variants returns the names of all variants in the order of their levels, with the levels of the
// last factor changing fastest: the variant with the first level of every factor comes first.
// Without factors the order is the order of the runs.
func (c *Campaign) Variants() []string {
	var names []string
	place := map[string][]int{}
	for i := range c.Runs {
		r := &c.Runs[i]
		if place[r.Variant] != nil {
			continue
		}
		names = append(names, r.Variant)
		place[r.Variant] = []int{}
		for _, f := range c.Factors {
			place[r.Variant] = append(place[r.Variant], slices.Index(f.Levels, r.Levels[f.Key]))
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Compare(place[a], place[b]) })
	return names
}

// Is reports whether dir is the folder of a campaign.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, File))
	return err == nil && info.Mode().IsRegular()
}

// Read reads dir's campaign.json. It returns an error if a newer version of the program wrote the
// file or if its content is inconsistent. The error wraps fs.ErrNotExist if the file does not
// exist.
func Read(dir string) (*Campaign, error) {
	path := filepath.Join(dir, File)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: %s", path, info.Mode())
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a campaign's folder: it has no %s: %w", dir, File, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	c, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Write writes c to dir's campaign.json atomically; dir must exist.
func Write(dir string, c *Campaign) error {
	whole := *c
	whole.Version = Version
	if whole.Factors == nil {
		whole.Factors = []Factor{}
	}
	if whole.Runs == nil {
		whole.Runs = []Run{}
	}
	if err := whole.check(); err != nil {
		return err
	}
	return results.WriteFile(dir, File, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(&whole)
	})
}

// Needed reports whether scenarios require more than one run.
func Needed(scenarios []*scenario.Scenario) bool {
	sc := scenarios[0]
	return len(scenarios) > 1 || sc.Repeat*sc.Matrix.Variants() > 1 || len(sc.Matrix) > 0
}
