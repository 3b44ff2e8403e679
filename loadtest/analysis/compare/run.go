// Package compare says whether groups of runs differ, by how much, and how sure that is. What is counted are runs:
// the seconds of one run resemble each other and are never taken for repetitions.
//
// Its functions are pure: the same runs give the same comparison.
package compare

import (
	"encoding/json"
	"fmt"
	"strings"
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

	campaign   string
	properties []property        // that must not differ within a group
	details    map[string]string // all known values of the plan and the machine
}

// A property is a value on which results depend. Planned properties follow from the plan.
type property struct {
	name, value string
	planned     bool
}

// NewRun returns the run of dir with its findings.
func NewRun(dir string, about results.About, plan *scenario.Plan, f *analysis.Findings) *Run {
	host := hostText(about.Environment)
	r := &Run{Dir: dir, Name: f.Run, Start: f.Start, Status: f.Validity.Status, Found: f, details: details(about, plan)}
	r.properties = []property{
		{"target", f.Target, true}, {"workload", f.Work, true}, {"load model", string(f.Model), true},
		{"files", filesText(plan.Files), true}, {"ramp and warm-up", settleText(plan.Steps), true},
		{"version of weir", about.Weir, false}, {"host that generates the load", host, false},
	}
	return r
}

// Of makes r a run of the campaign in folder dir: repetition block, with these levels of its
// factors. Runs of one block of one campaign were done one after the other.
func (r *Run) Of(dir string, block int, levels map[string]string) *Run {
	r.campaign, r.Block, r.Levels = dir, block, levels
	return r
}

// hostText returns the machine of an environment, as far as it is recorded.
func hostText(environment json.RawMessage) string {
	var e struct {
		Host   string `json:"hostname"`
		Kernel string `json:"kernel"`
		CPU    string `json:"cpu_model"`
		Cores  int    `json:"cores_used"`
	}
	if json.Unmarshal(environment, &e) != nil {
		return "unknown"
	}
	return strings.TrimSpace(fmt.Sprintf("%s, kernel %s, %d cores %s", e.Host, e.Kernel, e.Cores, e.CPU))
}

func filesText(f scenario.Files) string {
	switch {
	case f.Make != nil:
		size, err := json.Marshal(f.Make.Size)
		if err != nil {
			return "made"
		}
		return fmt.Sprintf("%d made, size %s", f.Make.Count, size)
	case f.Listing:
		return "found on the target" + selectionText(f)
	case f.List != "":
		return "list " + f.List + selectionText(f)
	}
	return "none"
}

// selectionText returns a text that distinguishes selections of files.
func selectionText(f scenario.Files) string {
	if len(f.Include)+len(f.Exclude)+f.Sample == 0 {
		return ""
	}
	return fmt.Sprintf(", include %q, exclude %q, sample %d", f.Include, f.Exclude, f.Sample)
}

// settleText returns the beginning of the steps as a text, if all steps begin alike.
func settleText(steps []scenario.Step) string {
	text := ""
	for _, s := range steps {
		one := s.Ramp.String() + " and " + s.Warmup.String()
		if text != "" && text != one {
			return "not the same in all steps"
		}
		text = one
	}
	return text
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
