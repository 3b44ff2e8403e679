// Package compare says whether groups of runs differ, by how much, and how sure that is. What is counted are runs:
// the seconds of one run resemble each other and are never taken for repetitions.
//
// Its functions are pure: the same runs give the same comparison.
package compare

import (
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// A Run is one run to compare, with the properties on which its result may depend.
type Run struct {
	Dir    string             `json:"dir"`
	Name   string             `json:"run"` // unique name of the run
	Start  time.Time          `json:"start"`
	Status string             `json:"status"` // as in its validity
	Block  int                `json:"block"`  // repetition in a campaign, from 1; 0: no campaign
	Value  *float64           `json:"value"`  // first metric, mean over the common steps; nil: it lacks a step
	Levels map[string]string  `json:"levels,omitempty"`
	Found  *analysis.Findings `json:"-"`

	campaign string
	details  map[string]string // all known values of the plan and the machine, by key
	planned  map[string]bool   // keys of the plan
}

// NewRun returns the run of dir with its findings.
func NewRun(dir string, about results.About, plan *scenario.Plan, f *analysis.Findings) *Run {
	r := &Run{Dir: dir, Name: f.Run, Start: f.Start, Status: f.Validity.Status, Found: f, details: details(about), planned: map[string]bool{}}
	for key, value := range planDetails(plan) {
		r.details[key], r.planned[key] = value, true
	}
	return r
}

// Of makes r a run of the campaign in folder dir: repetition block, with these levels of its
// factors. Runs of one block of one campaign were done one after the other.
func (r *Run) Of(dir string, block int, levels map[string]string) *Run {
	r.campaign, r.Block, r.Levels = dir, block, levels
	return r
}

// A Group is a set of runs of the same plan: repetitions.
type Group struct {
	Name    string            `json:"name"`
	Levels  map[string]string `json:"levels,omitempty"` // of a campaign's variant
	Runs    []*Run            `json:"runs"`
	Missing []string          `json:"missing,omitempty"` // the texts of Lost
	Lost    []fact.Fact       `json:"-"`                 // run directories that could not be read, and why
}

// Lose adds a run that could not be read.
func (g *Group) Lose(why fact.Fact) {
	g.Lost, g.Missing = append(g.Lost, why), append(g.Missing, why.Text)
}
