// Package campaign keeps campaign.json: which runs of a folder belong together
// as repetitions and variants of one scenario, and in which order they were
// planned. Each run is an ordinary run directory below that folder.
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

// File is the name of the file that makes a folder a campaign's.
const File = "campaign.json"

// Version is the version of the format of campaign.json that this program
// writes. It reads this one and all before it.
const Version = 1

// A Campaign is all runs of one scenario with repetitions or a matrix, done or
// not. It is written before the first run begins.
type Campaign struct {
	Version int      `json:"version"` // Version; filled in by Write
	Name    string   `json:"name"`
	Repeat  int      `json:"repeat"`  // blocks: repetitions of each variant
	Seed    uint64   `json:"seed"`    // the order of the runs follows from it
	Factors []Factor `json:"factors"` // none: one variant, repeated
	Runs    []Run    `json:"runs"`    // in the order in which they are done
}

// A Factor is a key of the scenario that is varied.
type Factor struct {
	Key    string   `json:"key"`    // as in the scenario: auth.method
	Levels []string `json:"levels"` // at least one, each another; the first is what others are compared with
}

// A Run is one run of a campaign.
type Run struct {
	Number   int               `json:"number"`  // from 1, the order in time
	Block    int               `json:"block"`   // from 1: repetition; all variants of a block are done one after the other
	Variant  string            `json:"variant"` // the same name for the same levels
	Levels   map[string]string `json:"levels"`  // level of each factor, by its key
	Dir      string            `json:"dir"`     // run directory, below the campaign's folder; may not be there yet
	Scenario string            `json:"scenario"`
	Error    string            `json:"error,omitempty"` // why it failed; runs that did not run yet have none either
}

// Variants returns the names of all variants in the order of their levels, the
// last factor's changing fastest: the one with the first level of every factor
// comes first. Without factors they come as the runs name them.
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

// Is says whether dir is a campaign's folder.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, File))
	return err == nil && info.Mode().IsRegular()
}

// Read reads dir's campaign.json. It refuses what a newer version of the
// program wrote, and what does not fit together. The error wraps
// fs.ErrNotExist if there is none.
func Read(dir string) (*Campaign, error) {
	path := filepath.Join(dir, File)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("campaign: %s is not a regular file: %s", path, info.Mode())
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("campaign: %s is not a campaign's folder: it has no %s: %w", dir, File, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("campaign: %w", err)
	}
	c, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("campaign: %s: %w", path, err)
	}
	return c, nil
}

// Write writes c as dir's campaign.json, whole or not at all; dir must exist.
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
		return fmt.Errorf("campaign: %w", err)
	}
	return results.WriteFile(dir, File, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(&whole)
	})
}

// Needed reports whether scenarios ask for more than one run.
func Needed(scenarios []*scenario.Scenario) bool {
	sc := scenarios[0]
	return len(scenarios) > 1 || sc.Repeat*sc.Matrix.Variants() > 1 || len(sc.Matrix) > 0
}
